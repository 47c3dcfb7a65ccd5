#!/usr/bin/env bash
# Measures every version of the eight stencils of Table 1 of Rawat et al. (PPoPP 2018): the kernel as written and unrolled
# over block shapes and register limits, the scheduled one, and the streaming kernels that the model likes best. All
# versions of a stencil take turns in one process, and each is compared with the host at odd sizes first. Two of the
# stencils are measured in the form in which they were published, too; they stand apart from the means.
#
#   bench/stencils.sh build FOLDER [WARPWRIGHT]                 needs nvcc and no GPU; ten programs, 24 MB
#   bench/stencils.sh measure FOLDER OUT [WARPWRIGHT] [SECONDS]  needs a GPU; writes OUT and OUT-published
#
# WARPWRIGHT: the binary, built if it is not given; GPU=h200: what the model and nvcc build for; SECONDS of timing per
# stencil: 4. What is measured is kept, also where the rest never is.
set -euo pipefail
mode=$1 folder=$(realpath -m "$2")
shift 2
[ "$mode" = build ] || { out=$(realpath -m "$1"); shift; }
binary=$(realpath -m "${1:-$(dirname "$0")/../target/release/warpwright}")
seconds=${2:-4}
cd "$(dirname "$0")/.."
[ -x "$binary" ] || cargo build --release --locked --package warpwright

# The paper's domains, and the halo around them.
build() { # KIND NAME SIZE…
    local kind=$1 name=$2 sizes=()
    shift 2
    for size in "$@"; do sizes+=(--grid "$size"); done
    local input=examples/stencils/$name.stencil file=${name##*/}
    [ -e "$input" ] || input=examples/stencils/$name.cu
    "$binary" tune "$input" "${sizes[@]}" --exhaustive --fp reassociate --gpu "${GPU:-h200}" \
        -o "$file.best.cu" --build-only "$folder/$kind/$file" || { echo "$input failed"; failed=1; }
}

measure() { # KIND RESULT
    mkdir -p "$(dirname "$2")"
    "$binary" tune --measure-only "$folder/$1" --budget "$seconds" -o "$2" || failed=1
}

failed=0
if [ "$mode" = build ]; then
    build published published/2d81pt n=8200
    build published published/derivative N=304
    build own 2d25pt M=8196 N=8196
    build own 2d64pt M=8200 N=8200
    build own 2d81pt M=8200 N=8200
    build own 3d27pt L=514 M=514 N=514
    build own 3d125pt L=516 M=516 N=516
    build own hypterm L=308 M=308 N=308
    build own rhs4th3fort L=304 M=304 N=304
    build own derivative L=304 M=304 N=304
else
    measure published "${out%.json}-published.json"
    measure own "$out"
fi
exit $failed
