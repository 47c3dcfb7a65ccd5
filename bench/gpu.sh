#!/usr/bin/env bash
# Measures every candidate that bench/build.sh made, on a machine with a GPU. Needs neither
# network, toolkit nor Rust.
#
#   bench/gpu.sh [DIR] [OUT] [SECONDS] [EXAMPLE…]
#
# DIR: .candidates; OUT: bench/results/<gpu>-<date>.json; SECONDS of timing per kernel: 8;
# EXAMPLES: only these folders of DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1:-.candidates}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${2:-bench/results/$gpu-$(date -u +%F).json}
seconds=${3:-8}
shift $(($# < 3 ? $# : 3))

mkdir -p "$(dirname "$out")"
if [ $# -gt 0 ]; then
    chosen=$(mktemp -d)
    trap 'rm -rf "$chosen"' EXIT
    for name in "$@"; do cp -r "$dir/$name" "$chosen/"; done
else
    chosen=$dir
fi
"$dir/warpwright" tune --measure-only "$chosen" --exhaustive --budget "$seconds" --output "$out"
