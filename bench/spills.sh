#!/usr/bin/env bash
# Compares the ways to spill at each register limit that makes ptxas spill: slots in local memory, ptxas's own in
# shared memory (enable_smem_spilling), and spill-to-shared, all slots and the hottest ones.
#
#   bench/spills.sh build [DIR] [GPU]           CUDA C -> DIR/full/NAME/ (manifest.json, a cubin per way);
#                                               needs nvcc and ptxas, may run on another machine
#   bench/spills.sh measure [DIR] [OUT] [SECONDS]   runs them: needs a GPU, neither toolkit nor Rust
#   bench/spills.sh all [DIR] [GPU] [OUT] [SECONDS]
#
# All ways of a kernel take turns in one process, and the results of each are compared with those of the default
# build bit for bit: first at small, odd sizes, then at the sizes that are timed.
#
# DIR: .spills, GPU: h200, OUT: bench/results/<gpu>-<date>-spills.json (and -spills-small.json beside it), SECONDS
# of timing per kernel: 4. DIR/warpwright is the binary; it is built if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
step=${1:-all}
dir=${2:-.spills}
mkdir -p "$dir/full" "$dir/small"

build() {
    local gpu=$1
    if [ ! -x "$dir/warpwright" ]; then
        cargo build --release --locked --package warpwright
        cp target/release/warpwright "$dir/warpwright"
    fi
    for folder in examples/*/; do
        local name
        name=$(basename "$folder")
        [ -f "$folder$name.cu" ] || continue
        echo "building $name"
        "$dir/warpwright" tune "$folder$name.cu" --launch "$folder$name.toml" --size full --gpu "$gpu" \
            --peers spills --build-only "$dir/full/$name"
    done
}

measure() {
    local out=$1 seconds=$2
    mkdir -p "$(dirname "$out")"
    for folder in "$dir"/full/*/; do
        local name
        name=$(basename "$folder")
        mkdir -p "$dir/small/$name"
        ln -f "$folder"*.cubin "$dir/small/$name/"
        sed 's/"size": "full"/"size": "small"/' "$folder/manifest.json" > "$dir/small/$name/manifest.json"
    done
    "$dir/warpwright" tune --measure-only "$dir/small" --exhaustive --budget 0.1 --fresh --output "${out%.json}-small.json"
    "$dir/warpwright" tune --measure-only "$dir/full" --exhaustive --budget "$seconds" --fresh --output "$out"
}

default_out() {
    local gpu
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
    echo "bench/results/$gpu-$(date -u +%F)-spills.json"
}

case $step in
    build) build "${3:-h200}" ;;
    measure) measure "${3:-$(default_out)}" "${4:-4}" ;;
    all)
        build "${3:-h200}"
        measure "${4:-$(default_out)}" "${5:-4}"
        ;;
    *)
        echo "usage: bench/spills.sh build|measure|all …" >&2
        exit 2
        ;;
esac
