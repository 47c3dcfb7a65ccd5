#!/usr/bin/env bash
# Measures every version of the eight stencils of Table 1 of Rawat et al. (PPoPP 2018), on a machine with
# a GPU and nvcc: the kernel as written and unrolled over block shapes and register limits, the scheduled
# one, and the streaming kernels that the model likes best. All versions of a stencil take turns in one
# process, and each is compared with the host at odd sizes first.
#
#   bench/stencils.sh [OUT] [WARPWRIGHT] [SECONDS]
#
# OUT: bench/results/<gpu>-<date>-stencils.json; WARPWRIGHT: the binary, built if it is not given;
# SECONDS of timing per stencil: 4.
set -euo pipefail
cd "$(dirname "$0")/.."
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
out=${1:-bench/results/$gpu-$(date -u +%F)-stencils.json}
binary=${2:-}
seconds=${3:-4}
if [ -z "$binary" ]; then
    cargo build --release --locked --package warpwright
    binary=target/release/warpwright
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$(dirname "$out")"
gather() { # NAME…
    local first=1
    printf '{"schema":"warpwright.stencils/1","stencils":[\n'
    for name in "$@"; do
        grep -qs '"schema": "warpwright.stencil/1"' "$work/$name.json" || continue
        [ $first = 1 ] || printf ',\n'
        first=0
        cat "$work/$name.json"
    done
    printf ']}\n'
}

# The paper's domains, and the halo around them. What is measured is kept, also where the rest never is.
one() {
    local name=$1
    shift
    local sizes=()
    for size in "$@"; do sizes+=(--grid "$size"); done
    local input=examples/stencils/$name.stencil file=${name//\//-}
    [ -e "$input" ] || input=examples/stencils/$name.cu
    # What fails is said, and does not take the others along.
    "$binary" tune "$input" "${sizes[@]}" --exhaustive --budget "$seconds" \
        --fp reassociate --json -o "$work/$file.cu" > "$work/$file.json" || { echo "$input failed"; failed=1; }
    # Other texts of two of the eight stand apart from their means.
    gather 2d25pt 2d64pt 2d81pt 3d27pt 3d125pt hypterm rhs4th3fort derivative > "$out"
    gather published-2d81pt published-derivative > "${out%.json}-published.json"
}
failed=0
# In the form in which they were published.
one published/2d81pt n=8200
one published/derivative N=304
one 2d25pt M=8196 N=8196
one 2d64pt M=8200 N=8200
one 2d81pt M=8200 N=8200
one 3d27pt L=514 M=514 N=514
one 3d125pt L=516 M=516 N=516
one hypterm L=308 M=308 N=308
one rhs4th3fort L=304 M=304 N=304
one derivative L=304 M=304 N=304
echo "wrote $out and ${out%.json}-published.json"
exit $failed
