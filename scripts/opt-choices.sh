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
  exec python3 - "$2" "$3" <<'PY'
import sys
def read(path):
    rows = (line.rstrip("\n").split("\t") for line in open(path))
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}
before, after = map(read, sys.argv[1:])
worse = 0
for kernel, (choice, time) in sorted(before.items()):
    new = after.get(kernel, ("missing", "-"))
    if new != (choice, time):
        print(*kernel, choice, time, "->", *new)
    worse += new[1] == "-" or (time != "-" and float(new[1]) > float(time) + 0.005)
sys.exit(worse > 0)
PY
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
    recipe = chosen["recipe"]
    if not isinstance(recipe, str):
        # The first version wrote a list of decisions.
        text = {"max-registers": "maxnreg({registers})", "block-bound": "maxntid({threads})",
                "min-blocks": "minnctapersm({blocks})", "shared-spilling": "smem-spilling",
                "register-usage-level": "usage-level({level})", "reduce": "reduce({registers})",
                "allocate": "allocate({registers}, blocks={blocks})", "throttle": "throttle({blocks})",
                "spill-to-shared": "spill-to-shared", "spill-hottest-to-shared": "spill-to-shared(blocks={blocks})"}
        recipe = "; ".join(text[d["decision"]].format(**d) for d in recipe) or "default"
    time = (chosen.get("score") or {}).get("relative_time")
    print(name, kernel["name"], recipe, "-" if time is None else f"{time:.4f}", f"{float(end) - float(start):.2f}", sep="\t")
PY
done
