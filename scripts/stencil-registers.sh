#!/bin/sh
# Rewrites the table of docs/stencil-scheduling.md with the toolkit that is found
# (WARPWRIGHT_TOOLKIT). No GPU is needed.
set -eu
cd "$(dirname "$0")/.."
table=$(mktemp)
trap 'rm -f "$table"' EXIT
cargo run -q --release -p warpwright-cuda --example stencil_registers examples/stencils > "$table"
python3 - "$table" <<'PYTHON'
import sys
path = "docs/stencil-scheduling.md"
text = open(path).read()
begin, end = "<!-- registers: begin -->\n", "<!-- registers: end -->"
before, rest = text.split(begin)
_, after = rest.split(end)
open(path, "w").write(before + begin + open(sys.argv[1]).read() + end + after)
PYTHON
