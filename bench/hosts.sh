#!/usr/bin/env bash
# The hosts of docs/build.md, really: an application built by CMake, scripts with Triton, CuPy and JAX, an extension of
# PyTorch; plain and through Warpwright, outputs compared, times taken in the same run. On a machine that has them all.
#
#   bench/hosts.sh [TOOL] [OUT] [WHEEL]
#
# TOOL: folder with `warpwright`, `warpwright-ptxas` and `libwarpwright_in*.so` (target/release); OUT:
# bench/results/hosts-<gpu>-<date>.json; WHEEL: the Python package, if it is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=${1:-target/release}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${2:-bench/results/hosts-$gpu-$(date -u +%F).json}
exec python3 bench/hosts/run.py "$tool" "$out" "${@:3}"
