#!/usr/bin/env bash
# Generated kernels through every pass on both levels, with planted mistakes inside (lab/fuzz/README.md), on many cores.
#   cargo build --release -p warpwright-fuzz
#   OUT=DIR CALL=1 LIMIT=450 CORES=60 EVERY=13 bash bench/fuzz-passes.sh target/release
# CALL chooses the seeds: the parts of runs with different numbers add up (`warpwright-fuzz merge`). Of EVERY kernels
# one is assembled with PTXAS. Processes of four threads each: they share nothing.
set -u
bin=$(realpath "${1:?the folder of the binaries}")/warpwright-fuzz
out=$(realpath -m "${OUT:-.}")
call=${CALL:-1} limit=${LIMIT:-450} cores=${CORES:-$(nproc)}
mkdir -p "$out"
work=$(mktemp -d)
export WARPWRIGHT_CACHE=$work/cache PATH=$PATH:/usr/local/cuda/bin
ptxas=${PTXAS:-$(command -v ptxas)}
parts=$(((cores + 3) / 4))
for i in $(seq 0 $((parts - 1))); do
  from=$((call * 100000000 + i * 1000000))
  timeout $((limit + 60)) "$bin" passes --plan strata --seeds $from..$((from + 1000000)) --jobs 4 --seconds "$limit" \
    ${ptxas:+--ptxas "$ptxas" --every "${EVERY:-13}"} --json "$work/part-$i.json" --out "$out/failures" > "$work/part-$i.log" 2>&1 &
done
wait
missing=0
for i in $(seq 0 $((parts - 1))); do
  [ -s "$work/part-$i.json" ] || { missing=$((missing + 1)); tail -n 2 "$work/part-$i.log"; }
done
"$bin" merge "$work"/part-*.json -o "$out/passes-$call.json"
ended=$?
echo "$missing of $parts parts did not end"
rm -rf "$work"
[ "$missing" -eq 0 ] && exit "$ended"
exit 1
