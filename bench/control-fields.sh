#!/usr/bin/env bash
# Does code with control fields of ours compute the same bits, and how fast is it? ptxas's own code of each example
# beside the same instructions in the same order with all control fields made anew; with ptxas's stall counts; with
# ptxas's scoreboards and waits; without reuse flags; in another order (`schedule`). Decides `target::EditedCode::ControlFields` (docs/scheduling.md).
#
#   bench/control-fields.sh build [DIR] [GPU]              CUDA C -> DIR/full/NAME/ (manifest.json, a cubin per way);
#                                                          needs nvcc and ptxas, may run on another machine
#   bench/control-fields.sh measure [DIR] [OUT] [SECONDS]  runs them: needs a GPU and Python, neither toolkit nor Rust
#   bench/control-fields.sh all [DIR] [GPU] [OUT] [SECONDS]
#
# All ways of a kernel take turns in one process, and the results of each are compared with those of ptxas's build bit
# for bit: first at small, odd sizes, then at the sizes that are timed. WAYS="nothing place" takes only some of them.
#
# JOBS kernels are built, or measured, at a time: one if nothing is said; more is no way to take times.
# DIR: .control-fields, GPU: h200, OUT: bench/results/<gpu>-<date>-control-fields.json, SECONDS of timing per kernel: 3.
# DIR/warpwright and DIR/warpwright-sassmine are the binaries; they are built if they are not there.
set -euo pipefail
cd "$(dirname "$0")/.."
step=${1:-all}
dir=${2:-.control-fields}
mkdir -p "$dir/full" "$dir/small"

build() {
    local gpu=$1
    if [ ! -x "$dir/warpwright" ] || [ ! -x "$dir/warpwright-sassmine" ]; then
        cargo build --release --locked --package warpwright --package warpwright-sassmine
        cp target/release/warpwright target/release/warpwright-sassmine "$dir/"
    fi
    export dir gpu
    for folder in examples/*/; do
        basename "$folder"
    done | xargs -P "${JOBS:-1}" -I{} bash -c 'one {}'
}

one() {
    local name=$1 source
    source=examples/$name/$name
    [ -f "$source.cu" ] || return 0
    echo "building $name"
    "$dir/warpwright" tune "$source.cu" --launch "$source.toml" --size full --gpu "$gpu" \
        --peers "${PEERS:-spills}" --build-only "$dir/full/$name"
    # shellcheck disable=SC2086
    python3 bench/control_fields.py ways "$dir" "$dir/full/$name" ${WAYS:-}
}

measured() { # SIZE BUDGET NAME
    "$dir/warpwright" tune --measure-only "$dir/$1/$3" --exhaustive --budget "$2" --fresh --output "$dir/results/$1/$3.json"
}
export -f one measured

measure() {
    local out=$1 seconds=$2
    mkdir -p "$(dirname "$out")"
    for folder in "$dir"/full/*/; do
        local small
        small=$dir/small/$(basename "$folder")
        mkdir -p "$small"
        ln -f "$folder"*.cubin "$small/"
        sed 's/"size": "full"/"size": "small"/' "${folder}manifest.json" > "$small/manifest.json"
    done
    export dir
    for size in small full; do
        local budget=0.05
        [ "$size" = full ] && budget=$seconds
        rm -rf "$dir/results/$size"
        mkdir -p "$dir/results/$size"
        # What fails leaves no result, and the others go on.
        find "$dir/$size" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort |
            xargs -P "${JOBS:-1}" -I{} bash -c "measured $size $budget {}" || echo "some were not measured"
    done
    python3 bench/control_fields.py table "$dir" "$out"
}

gpu_name() {
    nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//'
}

case $step in
build) build "${3:-h200}" ;;
measure) measure "${3:-bench/results/$(gpu_name)-$(date -u +%F)-control-fields.json}" "${4:-3}" ;;
all)
    build "${3:-h200}"
    measure "${4:-bench/results/$(gpu_name)-$(date -u +%F)-control-fields.json}" "${5:-3}"
    ;;
*)
    echo "usage: bench/control-fields.sh build|measure|all …" >&2
    exit 2
    ;;
esac
