#!/usr/bin/env bash
# Generated kernels through every pass on both levels, with planted mistakes inside (lab/fuzz/README.md), on many cores.
#   cargo build --release -p warpwright-fuzz
#   OUT=DIR CALL=1 LIMIT=450 CORES=60 EVERY=13 bash bench/fuzz-passes.sh target/release
# The one argument is the binary or its folder. CALL chooses the seeds: the parts of runs with different numbers add up
# (`warpwright-fuzz merge`). PLANS=rare,strata are the plans of the parts in turn. Of EVERY kernels one is assembled with
# PTXAS; without a ptxas none is. Processes of four threads each: they share nothing. OUT gets the sum, passes-CALL.json,
# and failures/, a file for each. A part that is ended (60 seconds after LIMIT) counts as far as it came.
set -u
bin=$(realpath "${1:?the binary or its folder}")
[ -d "$bin" ] && bin=$bin/warpwright-fuzz
out=$(realpath -m "${OUT:-.}")
call=${CALL:-1} limit=${LIMIT:-450} cores=${CORES:-$(nproc)}
IFS=, read -r -a plans <<< "${PLANS:-rare,strata}"
mkdir -p "$out"
work=$(mktemp -d)
export WARPWRIGHT_CACHE=$work/cache PATH=$PATH:/usr/local/cuda/bin
ptxas=${PTXAS:-$(command -v ptxas)}
parts=$(((cores + 3) / 4))
for i in $(seq 0 $((parts - 1))); do
  from=$((call * 100000000 + i * 1000000))
  { timeout $((limit + 60)) "$bin" passes --plan "${plans[$((i % ${#plans[@]}))]}" --seeds $from..$((from + 1000000)) \
    --jobs 4 --seconds "$limit" ${ptxas:+--ptxas "$ptxas" --every "${EVERY:-13}"} --json "$work/part-$i.json" \
    --out "$out/failures" > "$work/part-$i.log" 2>&1; echo $? > "$work/part-$i.ended"; } &
done
wait
missing=0 ended=0
for i in $(seq 0 $((parts - 1))); do
  case $(cat "$work/part-$i.ended") in
    0 | 1) ;;
    *) ended=$((ended + 1)); tail -n 2 "$work/part-$i.log" ;;
  esac
  [ -s "$work/part-$i.json" ] || missing=$((missing + 1))
done
"$bin" merge "$work"/part-*.json -o "$out/passes-$call.json"
right=$?
echo "of $parts parts $ended did not end, $missing left nothing"
rm -rf "$work"
[ "$ended" -eq 0 ] && exit "$right"
exit 1
