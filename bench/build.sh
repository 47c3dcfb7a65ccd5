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
# DIR: .candidates, GPU: h200, PEERS: usual. DIR/warpwright is the binary; it is built if it is not there. JOBS kernels
# (1) are built at a time; DIR/built/NAME.log has what was said, and a kernel that takes over SECONDS_EACH (600) is left out.
# WARPWRIGHT_TOOLKIT names the toolkit, as always.
set -euo pipefail
cd "$(dirname "$0")/.."
step=${1:-all}
dir=${2:-.candidates}
gpu=${3:-h200}
peers=${PEERS:-usual}
mkdir -p "$dir/ptx"

if [ ! -x "$dir/warpwright" ]; then
    cargo build --release --locked --package warpwright
    cp target/release/warpwright "$dir/warpwright"
fi
names=$(for folder in examples/*/; do name=$(basename "$folder"); [ ! -f "$folder$name.cu" ] || echo "$name"; done)

# What to do for one example; fails with its last words.
one() {
    local name=$1 log=$dir/built/$1.log
    {
        case $step in ptx | all)
            timeout "$seconds" "$dir/warpwright" pass print "examples/$name/$name.cu" --launch "examples/$name/$name.toml" \
                --gpu "$gpu" --output "$dir/ptx/$name.ptx" ;;
        esac &&
            case $step in cubins | all)
                timeout "$seconds" "$dir/warpwright" tune "$dir/ptx/$name.ptx" --launch "examples/$name/$name.toml" \
                    --size full --gpu "$gpu" --peers "$peers" --build-only "$dir/$name" ;;
            esac
    } >"$log" 2>&1 || { rm -rf "${dir:?}/$name"; echo "$name is not built: $(tail -n 1 "$log")"; exit 1; }
}
export -f one
export step dir gpu peers seconds=${SECONDS_EACH:-600}
mkdir -p "$dir/built"
printf '%s\n' $names | xargs -P "${JOBS:-1}" -I{} bash -c 'one {}'
