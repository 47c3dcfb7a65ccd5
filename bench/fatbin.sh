#!/usr/bin/env bash
# Does a cubin that was replaced inside a linked program run? Programs are linked in several ways, then
# `spill-to-shared` replaces their machine code; the outputs must stay the same, and the driver must say
# that the spill slots have moved, which only the new code can make it say.
#
#   bench/fatbin.sh build DIR [WARPWRIGHT]   needs nvcc and a C++ compiler, no GPU
#   bench/fatbin.sh run DIR [OUT]            needs a GPU, neither nvcc nor Warpwright
#
# DIR: .fatbin; WARPWRIGHT: the one on the PATH; OUT: a JSON file. ARCH=sm_90 is the architecture.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command=${1:?build or run}
dir=${2:-.fatbin}
arch=${ARCH:-sm_90}

# How the machine code is replaced: warpwright pass FILE -> OUT.
replace() {
    "$warpwright" pass spill-to-shared "$1" --gpu "$arch" --kernel spills -o "$2" >>"$2.log" 2>&1
}

build() {
    warpwright=${1:-warpwright}
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$0" "$dir/fatbin.sh"
    cd "$dir"
    local source=$here/fatbin
    compile() { nvcc -arch="$arch" -I"$source" "$@"; }
    compile -o plain.before "$source/spills.cu" "$source/main.cu"
    compile --compress-mode=size -o compressed.before "$source/spills.cu" "$source/main.cu"
    compile -rdc=true -o separable.before "$source/spills.cu" "$source/main.cu"
    # A shared library, and a host object that is linked afterwards.
    mkdir -p library.dir/before library.dir/after
    compile -Xcompiler -fPIC -shared -o library.dir/before/libspills.so "$source/spills.cu"
    for version in before after; do
        compile -o "library.$version" "$source/main.cu" -Llibrary.dir/before -lspills \
            -Xlinker "-rpath=\$ORIGIN/library.dir/$version"
    done
    compile -c -o spills.o "$source/spills.cu"
    compile -o object.before spills.o "$source/main.cu"
    for way in plain compressed separable; do
        replace "$way.before" "$way.after" || echo "$way: refused"
    done
    replace library.dir/before/libspills.so library.dir/after/libspills.so || echo "library: refused"
    if replace spills.o replaced.o; then
        compile -o object.after replaced.o "$source/main.cu"
    else
        echo "object: refused"
    fi
}

# One fact that a program has printed.
fact() {
    awk -v name="$2" '$1 == name { print $2 }' "$1"
}

run_way() {
    local way=$1 before=$dir/$1.before.out after=$dir/$1.after.out verdict
    if [ ! -x "$dir/$way.after" ]; then
        printf '  {"way": "%s", "verdict": "refused"}' "$way"
        return
    fi
    "$dir/$way.before" >"$before" 2>&1 || true
    "$dir/$way.after" >"$after" 2>&1 || true
    if grep -q ^error "$before" "$after" || [ -z "$(fact "$after" digest)" ]; then
        verdict="failed: $(grep -h ^error "$before" "$after" | head -1)"
    elif [ "$(fact "$before" digest)" != "$(fact "$after" digest)" ]; then
        verdict="another output"
    elif [ "$(fact "$after" shared)" -gt "$(fact "$before" shared)" ] &&
        [ "$(fact "$after" local)" -lt "$(fact "$before" local)" ]; then
        verdict="same output, new code"
    else
        verdict="same output, old code"
    fi
    printf '  {"way": "%s", "verdict": "%s"' "$way" "$verdict"
    for version in before after; do
        printf ', "%s": {"digest": "%s"' "$version" "$(fact "$dir/$way.$version.out" digest)"
        for name in shared local registers ms; do
            printf ', "%s": %s' "$name" "$(fact "$dir/$way.$version.out" "$name" | grep . || echo null)"
        done
        printf '}'
    done
    printf '}'
}

run() {
    local out=${1:-/dev/stdout} first=1
    {
        printf '{"schema": "warpwright.fatbin-check/1", "gpu": "%s", "driver": "%s", "date": "%s", "ways": [\n' \
            "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)" \
            "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)" "$(date -u +%F)"
        for way in plain compressed separable library object; do
            [ $first = 1 ] || printf ',\n'
            first=0
            run_way "$way"
        done
        printf '\n]}\n'
    } >"$out"
}

case $command in
build) build "${3:-}" ;;
run) run "${3:-}" ;;
*)
    echo "build or run" >&2
    exit 2
    ;;
esac
