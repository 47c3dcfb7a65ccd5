#!/usr/bin/env bash
# What another block alone is worth to a naive kernel, predicted and measured (docs/naive.md).
#
#   bench/block-alone.sh [TOOL] [OUT]
#
# TOOL: `warpwright`; OUT: bench/results/block-alone-<gpu>-<date>.json
set -euo pipefail
cd "$(dirname "$0")/.."
tool=${1:-target/release/warpwright}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${2:-bench/results/block-alone-$gpu-$(date -u +%F).json}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for source in bench/block-alone/*.cu; do
    "$tool" tune "$source" -o "$scratch/$(basename "$source")" --budget 25 --json >"$scratch/$(basename "$source" .cu).json"
done
python3 - "$out" "$scratch"/*.json <<'PYTHON'
import json
import sys

out, *files = sys.argv[1:]
documents = [json.load(open(file)) for file in files]
with open(out, "w") as file:
    json.dump({"schema": "warpwright.bench.block-alone/1", "documents": documents}, file, indent=1)
    file.write("\n")
PYTHON
