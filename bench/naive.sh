#!/usr/bin/env bash
# Times the naive kernels of examples/naive, what was made of them and what libraries take, on a machine with a
# GPU, nvcc and PyTorch; bench/naive.py says how.
#   bench/naive.sh [OUT] [CANDIDATES]
# OUT: bench/results/<gpu>-<date>-naive.json; CANDIDATES: a folder with NAME/*.cu, docs/gallery if not given.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${1:-bench/results/$gpu-$(date -u +%F)-naive.json}
mkdir -p "$(dirname "$out")"
python3 bench/naive.py --out "$out" --candidates "${2:-docs/gallery}"
