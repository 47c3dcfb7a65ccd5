#!/usr/bin/env bash
# Programs run plain, traced, tuned inside themselves, and with their winners, on a machine with a GPU.
#
#   bench/inplace.sh [TOOL] [OUT] [PROGRAM…]
#
# TOOL: folder with `warpwright` and `libwarpwright_in*.so` (target/release); OUT:
# bench/results/inplace-<gpu>-<date>.json; PROGRAMS of bench/inplace: fields graphs streams train autotune
# arrays waves. nvcc builds the first three; the others need PyTorch, Triton, CuPy and JAX, or are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=${1:-target/release}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${2:-bench/results/inplace-$gpu-$(date -u +%F).json}
shift $(($# < 2 ? $# : 2))
exec python3 bench/inplace/campaign.py "$tool" "$out" "$@"
