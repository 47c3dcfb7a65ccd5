#!/usr/bin/env bash
# The gallery: what `warpwright opt` makes of the naive kernels, with the explanation that it prints.
#
#   bash scripts/gallery.sh [--check] [WARPWRIGHT] [KERNEL …]
#
# Writes docs/gallery/KERNEL/opt.cu and opt.txt; with --check compares what is committed with what is made now, and
# writes nothing. WARPWRIGHT: the binary, built if it is not given. Without names, all kernels of examples/naive, or with
# --check those that are in the gallery.
set -euo pipefail
cd "$(dirname "$0")/.."
check=
if [ "${1:-}" = --check ]; then
    check=1
    shift
fi
binary=${1:-}
[ $# -gt 0 ] && shift
if [ -z "$binary" ]; then
    cargo build --release --locked --package warpwright
    binary=target/release/warpwright
fi
names=("$@")
if [ ${#names[@]} = 0 ]; then
    if [ -n "$check" ]; then
        for path in docs/gallery/*/; do names+=("$(basename "$path")"); done
    else
        for path in examples/naive/*.cu; do names+=("$(basename "$path" .cu)"); done
    fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stale=0
for name in "${names[@]}"; do
    # What is refused stays out, with the reason in the text.
    "$binary" opt "examples/naive/$name.cu" --gpu h200 -o "$work/opt.cu" > "$work/opt.txt" 2> "$work/errors" ||
        cat "$work/errors" >> "$work/opt.txt"
    sed -i "s#$work/##g" "$work/opt.txt"
    folder=docs/gallery/$name
    if [ -n "$check" ]; then
        for file in opt.cu opt.txt; do
            if ! cmp -s "$work/$file" "$folder/$file" && { [ -e "$work/$file" ] || [ -e "$folder/$file" ]; }; then
                echo "stale: $folder/$file"
                stale=1
            fi
        done
    else
        mkdir -p "$folder"
        rm -f "$folder"/*
        for file in opt.cu opt.txt; do
            if [ -e "$work/$file" ]; then cp "$work/$file" "$folder/$file"; fi
        done
        echo "$name"
    fi
    rm -f "$work"/*
done
exit $stale
