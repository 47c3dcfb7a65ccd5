#!/usr/bin/env bash
# How long `opt` takes on two cores, and what it chooses beside an older release: every example, and whatever
# else is named. Kernels whose choice differs are built in both ways and, if there is a GPU, timed in turns within
# one process. Needs a CUDA toolkit; no Rust.
#
#   bench/opt.sh AFTER [BEFORE] [OUT] [FILE…]
#
# FILE… are only timed. CORES: the cores of the timing, the first two. SECONDS_OF_TIMING per kernel: 3. LIMIT: seconds for
# one run of `opt`, 120. DEADLINE: nothing more is timed on the GPU after so many seconds.
set -uo pipefail
cd "$(dirname "$0")/.."
after=$(realpath "$1"); before=${2:+$(realpath "$2")}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${3:-bench/results/${gpu:-none}-$(date -u +%F)-opt.json}
shift $(($# < 3 ? $# : 3))
exec python3 bench/opt/compare.py "$after" "$before" "$out" "$@"
