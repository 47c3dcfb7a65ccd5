#!/usr/bin/env bash
# Builds the candidates of every example for a GPU.
#
#   bench/build.sh ptx [DIR]          CUDA C -> DIR/ptx/NAME.ptx; needs nvcc
#   bench/build.sh cubins [DIR] [GPU] PTX -> DIR/NAME/ (manifest.json, a cubin per candidate);
#                                     needs ptxas, may run on another machine
#   bench/build.sh all [DIR] [GPU]    both
#
# PEERS (usual, all or none) says which of the limits that people sweep by hand are built beside our own
# candidates; all of them take about three times as long to measure.
#
# DIR: .candidates, GPU: h200, PEERS: usual. DIR/warpwright is the binary; it is built if it is not there.
# WARPWRIGHT_TOOLKIT names the toolkit, as always.
set -euo pipefail
cd "$(dirname "$0")/.."
step=${1:-all}
dir=${2:-.candidates}
gpu=${3:-h200}
peers=${PEERS:-usual}
mkdir -p "$dir/ptx"

if [ ! -x "$dir/warpwright" ]; then
    cargo build --release --locked --package warpwright-cli
    cp target/release/warpwright "$dir/warpwright"
fi
names=$(for folder in examples/*/; do name=$(basename "$folder"); [ ! -f "$folder$name.cu" ] || echo "$name"; done)
if [ "$step" = ptx ] || [ "$step" = all ]; then
    for name in $names; do
        "$dir/warpwright" pass print "examples/$name/$name.cu" --launch "examples/$name/$name.toml" \
            --gpu "$gpu" --output "$dir/ptx/$name.ptx"
    done
fi
if [ "$step" = cubins ] || [ "$step" = all ]; then
    for name in $names; do
        [ -f "$dir/ptx/$name.ptx" ] || continue
        echo "building candidates of $name"
        "$dir/warpwright" tune "$dir/ptx/$name.ptx" --launch "examples/$name/$name.toml" --size full \
            --gpu "$gpu" --peers "$peers" --build-only "$dir/$name"
    done
fi
