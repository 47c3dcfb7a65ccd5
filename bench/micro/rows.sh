#!/usr/bin/env bash
# The costs of spill slots on a GPU, as a row of crates/target/src/rows/spills.rs.
#
#   bench/micro/rows.sh build [DIR] [GPU]    cubins into DIR; needs a toolkit
#   bench/micro/rows.sh measure [DIR]        runs them on the local GPU and prints the row
#
# DIR: .candidates (bench/build.sh has put the program there, too), GPU: h200.
set -euo pipefail
cd "$(dirname "$0")/../.."
step=${1:-measure}
dir=${2:-.candidates}
gpu=${3:-h200}
kinds="none local shared"

if [ "$step" = build ]; then
    for kind in $kinds; do
        "$dir/warpwright" opt bench/micro/spill_cost.cu --launch "bench/micro/spill_$kind.toml" \
            --kernel "spill_$kind" --gpu "$gpu" --no-database --keep "$dir/micro" \
            --output "$dir/micro/chosen.cubin" >/dev/null
    done
    exit
fi

# Cycles of lane 0 for the whole chain.
cycles() {
    "$dir/warpwright" run "$dir/micro/spill_$1.default.cubin" --gpu --size full \
        --launch "bench/micro/spill_$1.toml" | sed -n 's/^  cycles u32\[32\]: \([0-9]*\).*/\1/p'
}
steps=4096
none=$(cycles none)
# Each step has a store and a load; rounded to the nearest cycle.
cost() { echo $((($(cycles "$1") - none + steps) / (2 * steps))); }
local=$(cost local)
shared=$(cost shared)
device=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader | head -1)
sm=$(echo "${device##*, }" | tr -d .)
source="bench/micro (${device%, *})"
cat <<ROW
    (
        $sm,
        SpillCosts {
            local: cycles($local, "$source"),
            shared: cycles($shared, "$source"),
        },
    ),
ROW
