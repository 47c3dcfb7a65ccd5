#!/usr/bin/env bash
# Random stencils through every family of rewrites in the PTX emulator, on a machine with nvcc and many cores.
#   cargo build --release -p warpwright-stencilgen
#   OUT=RESULT.json SEED=51 LIMIT=240 CORES=30 bash bench/stencilgen.sh target/release
# SEED chooses the kernels; each core takes a thousand of its own from FROM on. FAILURES=DIR gets the kernels that fail.
set -u
bin=$(realpath "${1:?the folder of the binary}")/warpwright-stencilgen
out=$(realpath -m "${OUT:?the result}")
seed=${SEED:-51} from=${FROM:-0} limit=${LIMIT:-240} cores=${CORES:-$(nproc)}
work=$(mktemp -d)
export WARPWRIGHT_CACHE=$work/cache PATH=$PATH:/usr/local/cuda/bin RAYON_NUM_THREADS=1
begin=$(date +%s)
for i in $(seq 0 $((cores - 1))); do
  timeout "$limit" "$bin" run --seed "$seed" --from $((from + i * 1000)) --count 1000 --batch "${BATCH:-16}" --level "${LEVEL:-1}" \
    --json "$work/$i.json" --failures "${FAILURES:-$work/failures}/$i" > "$work/$i.log" 2>&1 &
done
wait
python3 - "$work" "$out" "$seed" "$from" "$cores" $(($(date +%s) - begin)) << 'P'
import glob, json, subprocess, sys
work, out, (seed, start, cores, seconds) = sys.argv[1], sys.argv[2], map(int, sys.argv[3:7])
def add(sum, new):
    for key, value in new.items():
        if isinstance(value, dict): add(sum.setdefault(key, {}), value)
        else: sum[key] = sum.get(key, 0) + value
total = {}
for path in glob.glob(f"{work}/*.json"):
    try: add(total, json.load(open(path)))
    except ValueError: pass  # cut off while it was written
for path in sorted(glob.glob(f"{work}/*.log")):
    for line in open(path, errors="replace"):
        if "panicked" in line or ": " in line and " of " not in line and not line.startswith((" ", "{")): print(line[:300].rstrip())
def first(command):
    try: return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    except (OSError, IndexError): return None
result = {"schema": "warpwright.stencilgen/1", "seed": seed, "from": start, "cores": cores, "seconds": seconds,
          "nvcc": first(["nvcc", "--version"]), **total}
json.dump(result, open(out, "w"), indent=1)
print(json.dumps(result))
P
rm -rf "$work"
