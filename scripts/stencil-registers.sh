#!/bin/sh
# Rewrites the tables of bench/results/stencils.md with the toolkit that is found
# (WARPWRIGHT_TOOLKIT). No GPU is needed.
set -eu
cd "$(dirname "$0")/.."
tables=$(mktemp -d)
trap 'rm -rf "$tables"' EXIT
cargo build -q --release -p warpwright-stencil --example stencil_registers
target/release/examples/stencil_registers examples/stencils > "$tables/registers"
target/release/examples/stencil_registers examples/stencils limits > "$tables/spills"
python3 - "$tables" <<'PYTHON'
import sys
path = "bench/results/stencils.md"
text = open(path).read()
for name in ["registers", "spills"]:
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    text = before + begin + open(f"{sys.argv[1]}/{name}").read() + end + after
open(path, "w").write(text)
PYTHON
