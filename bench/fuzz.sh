#!/usr/bin/env bash
# The big counts of lab/fuzz/README.md, on a machine with CUDA, a GPU and many cores, all at once: generated kernels
# through every pass, random stencils through every family of rewrites, ptxas under pressure.
#   cargo build --release -p warpwright-fuzz -p warpwright-stencilgen
#   OUT=DIR CALL=1 LIMIT=300 CORES=40 bash bench/fuzz.sh target/release
# CALL chooses the seeds: runs of different numbers have none in common, so their counts add up.
# SHARE=passes,stencils,ptxas are parts of the cores, 6,3,3 if nothing is said. PTXAS is the ptxas to use.
# Planted mistakes go along (a tenth of the cores): one that is proved, or a class that is never caught, fails the run.
# BUILT=DIR are kernels that another ptxas built (`warpwright-fuzz ptxas-build`), compared in the end.
# EVERY=N: of N kernels one is assembled, too, and goes through the passes over machine code.
set -u
bin=$(realpath "${1:?the folder of the binaries}")
out=$(realpath -m "${OUT:-.}")
call=${CALL:-1} limit=${LIMIT:-300} cores=${CORES:-$(nproc)}
IFS=, read -r a b c <<< "${SHARE:-6,3,3}"
part() { echo $(((cores - cores / 10 - 1) * $1 / (a + b + c))); }
mkdir -p "$out"
work=$(mktemp -d)
export WARPWRIGHT_CACHE=$work/cache PATH=$PATH:/usr/local/cuda/bin
ptxas=${PTXAS:-$(command -v ptxas)}
begin=$(date +%s)

if [ "$a" -gt 0 ]; then
  from=$((call * 10000000))
  timeout $((limit + 40)) "${PASSES:-$bin/warpwright-fuzz}" passes --seeds $from..$((from + 5000000)) --jobs "$(part "$a")" \
    --seconds "$limit" --json "$work/passes.json" ${EVERY:+--ptxas "$ptxas" --every "$EVERY"} --out "$work/failures" \
    > "$work/passes.log" 2>&1 &
fi

from=$((call * 10000000 + 5000000))
timeout $((limit + 40)) "$bin/warpwright-fuzz" controls --from $from --count 5000000 --seconds "$limit" \
  --jobs $((cores / 10 + 1)) --machine-code --output "$work/controls.json" > "$work/controls.log" 2>&1 &
controls=$!

if [ "$b" -gt 0 ]; then
  n=$(part "$b")
  mkdir -p "$work/stencils"
  for i in $(seq 0 $((n - 1))); do
    timeout "$limit" "$bin/warpwright-stencilgen" run --seed 11 --from $((call * 100000 + i * 1000)) --count 1000 \
      --batch "${BATCH:-6}" --json "$work/stencils/$i.json" --failures "$work/stencil-failures/$i" \
      > "$work/stencils/$i.log" 2>&1 &
  done
fi

if [ "$c" -gt 0 ]; then
  n=$(part "$c")
  timeout $((limit + 60)) "$bin/warpwright-fuzz" ptxas --from $((call * 1000000)) --count 1000000 --seconds $((limit - 60)) \
    --jobs "$n" --workers 6 --output "$work/ptxas.json" > "$work/ptxas.log" 2>&1
  # The first findings, reduced.
  python3 - "$work/ptxas.json" << 'P' > "$work/found"
import json, sys
try: report = json.load(open(sys.argv[1]))
except (OSError, ValueError): sys.exit()
groups = {}
for finding in report["findings"]:
    ways = sorted(finding["ways"])
    groups.setdefault(tuple(ways), []).append((finding["seed"], "O3" if "O3" in ways else ways[0]))
# Rare combinations of ways first: they may have another cause than the others.
rare = sorted(groups.values(), key=len)
chosen = [group[n] for n in range(8) for group in rare if n < len(group)]
for seed, way in chosen[:16]: print(seed, way)
P
  shrink() {
    timeout 50 "$bin/warpwright-fuzz" ptxas-shrink "$1" "$2" --budget 250 > "$out/ptxas-$1-$2.ptx" 2>&1
    [ -s "$out/ptxas-$1-$2.ptx" ] || rm -f "$out/ptxas-$1-$2.ptx"
  }
  export -f shrink
  export bin out
  xargs -r -P 8 -L 1 bash -c 'shrink $0 $1' < "$work/found"
fi
if [ -n "${BUILT:-}" ]; then
  for seeds in ${SEEDS:-0:100000}; do
    timeout 90 "$bin/warpwright-fuzz" ptxas --built "$BUILT" --from "${seeds%:*}" --count "${seeds#*:}" --jobs 4 --workers 6 \
      --output "$work/built-${seeds%:*}.json" >> "$work/built.log" 2>&1
  done
fi
wait "$controls"
caught=$?
wait
python3 - "$work" "$out" "$call" "$limit" "$cores" $(($(date +%s) - begin)) << 'P'
import glob, json, os, shutil, subprocess, sys
work, out, call, limit, cores, seconds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])
def load(path):
    try: return json.load(open(path))
    except (OSError, ValueError): return None
def tail(path, n=3):
    try: return [line[:300] for line in open(path, errors="replace").read().splitlines()[-n:]]
    except OSError: return []
def add(sum, new):
    for key, value in new.items():
        if isinstance(value, dict): add(sum.setdefault(key, {}), value)
        elif isinstance(value, (int, float)): sum[key] = sum.get(key, 0) + value
stencils, logs = {}, []
for path in sorted(glob.glob(f"{work}/stencils/*.json")): add(stencils, load(path) or {})
for path in sorted(glob.glob(f"{work}/stencils/*.log")):
    logs += [line for line in tail(path, 400) if " of " not in line and not line.startswith(("{", "}", " "))]
def first(command):
    try: return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    except (OSError, IndexError) as e: return str(e)
result = {
    "schema": "warpwright.fuzz/1", "call": call, "cores": cores, "limit_s": limit, "seconds": seconds,
    "gpu": first(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]),
    "nvcc": first(["nvcc", "--version"]),
    "controls": load(f"{work}/controls.json"),
    "built_elsewhere": [load(path) for path in sorted(glob.glob(f"{work}/built-*.json"))],
    "passes": load(f"{work}/passes.json"), "stencils": stencils or None, "ptxas": load(f"{work}/ptxas.json"),
}
json.dump(result, open(f"{out}/fuzz-{call}.json", "w"), indent=1)
for folder in ("failures", "stencil-failures"):
    files = sorted(f for f in glob.glob(f"{work}/{folder}/**", recursive=True) if os.path.isfile(f))
    for file in files[:40]:
        os.makedirs(f"{out}/{folder}", exist_ok=True)
        shutil.copy(file, f"{out}/{folder}/" + os.path.relpath(file, f"{work}/{folder}").replace("/", "-"))
    if files: print(len(files), folder)
print(seconds, "seconds")
print("stencils:", json.dumps(stencils)[:900])
for line in logs[:4]: print("  ", line)
for name in ("passes", "controls", "built", "ptxas"):
    for line in tail(f"{work}/{name}.log", 17)[-17:]: print(f"{name}:", line[:160])
P
rm -rf "$work"
exit "$caught"
