#!/usr/bin/env bash
# What `opt` chooses for every example, and how long it takes: one line each (example, kernel, choice,
# predicted time over the default's, seconds). With a second argument: only the examples named in it.
#
#   scripts/opt-choices.sh BINARY > choices.tsv          the build cache is empty at the start
#   scripts/opt-choices.sh --compare BEFORE.tsv AFTER.tsv
#
# --compare prints the examples whose choice differs, and fails where the prediction got worse.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --compare ]; then
  sort -k1,2 "$2" > /tmp/before.$$; sort -k1,2 "$3" > /tmp/after.$$
  join -j1 -a1 -a2 -e missing -o 0,1.3,1.4,2.3,2.4 \
    <(awk -F'\t' '{print $1"/"$2"\t"$0}' OFS='\t' /tmp/before.$$ | awk -F'\t' '{print $1"\t"$3"\t"$4"\t"$5}') \
    <(awk -F'\t' '{print $1"/"$2"\t"$0}' OFS='\t' /tmp/after.$$ | awk -F'\t' '{print $1"\t"$3"\t"$4"\t"$5}') |
    awk '{ if ($2 != $4 || $3 != $5) print; if ($5 == "missing" || $5 + 0 > $3 + 0.005) bad = 1 } END { exit bad }'
  exit
fi

binary=$(realpath "$1")
only="${2:-}"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
for toml in examples/*/*.toml; do
  name=$(basename "$(dirname "$toml")")
  [ "$name" = reference ] || [ "$name" = stencils ] && continue
  [ -z "$only" ] || [[ " $only " == *" $name "* ]] || continue
  file="${toml%.toml}.cu"
  [ -f "$file" ] || continue
  start=$(date +%s.%N)
  if ! WARPWRIGHT_CACHE="${OPT_CACHE:-$out/cache}" "$binary" opt "$file" --launch "$toml" --gpu h200 --no-database \
      --json -o "$out/$name.cubin" > "$out/$name.json" 2> "$out/$name.err"; then
    printf '%s\t-\tfailed: %s\t-\t-\n' "$name" "$(head -c 200 "$out/$name.err" | tr '\n\t' '  ')"
    continue
  fi
  end=$(date +%s.%N)
  python3 - "$name" "$out/$name.json" "$start" "$end" <<'PY'
import json, sys
name, path, start, end = sys.argv[1:]
for kernel in json.load(open(path))["kernels"]:
    chosen = kernel["candidates"][kernel["chosen"]]
    # The label, whether recipes are written as text or as the first version's list.
    label = kernel.get("choice") or chosen["recipe"]
    if not isinstance(label, str):
        short = {"max-registers": "maxnreg-{registers}", "block-bound": "maxntid-{threads}",
                 "min-blocks": "minblocks-{blocks}", "shared-spilling": "smem",
                 "register-usage-level": "level-{level}", "reduce": "reduce-{registers}",
                 "allocate": "allocate-{registers}x{blocks}", "throttle": "throttle-{blocks}",
                 "spill-to-shared": "spill-to-shared", "spill-hottest-to-shared": "spill-to-shared-x{blocks}"}
        label = "+".join(short[d["decision"]].format(**d) for d in label) or "default"
    time = (chosen.get("score") or {}).get("relative_time")
    print(name, kernel["name"], label, "-" if time is None else f"{time:.4f}", f"{float(end) - float(start):.2f}", sep="\t")
PY
done
