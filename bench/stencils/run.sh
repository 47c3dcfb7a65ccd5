#!/bin/bash
# usage: run.sh RESULTS.jsonl : the cubins are built already; builds the runner and measures all.
export PATH=/usr/local/cuda/bin:$PATH
cd "$(dirname "$0")"; O=$(realpath -m "${1:?}")
nvcc -O2 -arch=sm_90 runner.cu -o runner || exit 1
for m in *.manifest; do ./runner $m "$O" || echo "FAILED $m"; done
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv | tail -1; wc -l "$O"
