#!/usr/bin/env bash
# What `opt` costs beside the ptxas runs: each example's PTX is optimised with an empty build cache
# and again with a full one, where every build is a file read. The second time is what opt adds to
# the builds. Prints a table; needs a toolkit, no GPU.
#
#   bench/overhead.sh [DIR]     DIR: .candidates, as made by `bench/build.sh ptx`
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1:-.candidates}
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export WARPWRIGHT_CACHE=$cache
milliseconds() {
    local start end
    start=$(date +%s%N)
    "$dir/warpwright" opt "$1" --gpu h200 --launch "$2" --output "$cache/out.cubin" >/dev/null
    end=$(date +%s%N)
    echo $(((end - start) / 1000000))
}
total=0
extra=0
printf '%-18s %10s %10s\n' example 'cold ms' 'warm ms'
for ptx in "$dir"/ptx/*.ptx; do
    name=$(basename "$ptx" .ptx)
    rm -rf "$cache/builds"
    cold=$(milliseconds "$ptx" "examples/$name/$name.toml")
    warm=$(milliseconds "$ptx" "examples/$name/$name.toml")
    printf '%-18s %10d %10d\n' "$name" "$cold" "$warm"
    total=$((total + cold))
    extra=$((extra + warm))
done
echo "all: $total ms with builds, $extra ms without: $((100 * extra / (total - extra)))% added"
