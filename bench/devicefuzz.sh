#!/usr/bin/env bash
# Random stencils or naive kernels: originals against what is made of them, on a GPU, plainly and under compute-sanitizer.
# The programs, from the root of the repository:
#   cargo run --release -p warpwright-stencilgen -- gpu --count 300 --seed 7 --out PROGRAMS
#   cargo run --release -p warpwright-naivegen -- device --count 240 --seed 23 --gallery docs/gallery --out PROGRAMS
#   OUT=RESULT.json LIMIT=225 bash bench/devicefuzz.sh PROGRAMS      LIMIT: no program is begun after so many seconds
set -u
out=$(realpath -m "${OUT:-devicefuzz.json}")
mkdir -p "$(dirname "$out")"
cd "${1:?the folder of the programs}"
work=$(mktemp -d)
export PATH=$PATH:/usr/local/cuda/bin
export work out
begin=$(date +%s)
build() { nvcc -O2 -std=c++17 -arch=sm_90 -fmad=false -o "$work/$1" "$1.cu" > "$work/$1.build" 2>&1 || echo "BUILD $1 failed: $(head -3 "$work/$1.build" | tr '\n' ' ')"; }
plain() { timeout 60 "$work/$1" "$1.bin" > "$work/$1.plain" 2>&1; echo "rc $?" >> "$work/$1.plain"; }
check() { # TOOL NAME
  timeout 100 compute-sanitizer --tool "$1" --error-exitcode 9 "$work/$2" "$2.bin" > "$work/$2.$1" 2>&1
  echo "rc $?" >> "$work/$2.$1"
}
export -f build plain check
names=$(ls ./*.cu | sed 's|^\./||; s/\.cu$//')
printf '%s\n' $names | xargs -P 16 -I{} bash -c 'build {}'
built=$(date +%s)
for name in $names; do [ -x "$work/$name" ] && plain "$name"; done
limit=$((begin + ${LIMIT:-225}))
for tool in memcheck racecheck; do
  command -v compute-sanitizer > /dev/null || { echo "no compute-sanitizer"; break; }
  printf '%s\n' $names | xargs -P 8 -I{} bash -c "[ \$(date +%s) -lt $limit ] && [ -x $work/{} ] && check $tool {}"
done
end=$(date +%s)
python3 - "$work" "$out" $((built - begin)) $((end - built)) $names <<'P'
import json, os, re, subprocess, sys
work, out, build, run, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
r = {"schema": "warpwright.devicefuzz/1", "programs": len(names), "built": 0, "build_s": build, "run_s": run,
     "comparisons": 0, "differences": 0, "errors": 0, "kernels": 0, "failed": [], "memcheck": {}, "racecheck": {}, "messages": []}
def text(path):
    try: return open(path, errors="replace").read()
    except OSError: return None
for n in names:
    r["kernels"] += len(set(re.findall(r'\.compare\("(\w+)', text(n + ".cu"))))
    if os.access(f"{work}/{n}", os.X_OK): r["built"] += 1
    else: r["failed"].append(n + ": " + (text(f"{work}/{n}.build") or "")[:400]); continue
    t = text(f"{work}/{n}.plain") or ""
    m = re.search(r'\{"comparisons".*\}', t)
    if m:
        d = json.loads(m.group(0))
        for k in ("comparisons", "differences", "errors"): r[k] += d[k]
    else: r["failed"].append(n + ": " + t[-400:])
    r["messages"] += [f"{n}: {l}" for l in t.splitlines() if l.startswith(("DIFFERS", "ERROR"))]
    for tool in ("memcheck", "racecheck"):
        t = text(f"{work}/{n}.{tool}")
        key = "not run" if t is None else "clean" if t.rstrip().endswith("rc 0") else "timeout" if t.rstrip().endswith("rc 124") else "findings"
        r[tool][key] = r[tool].get(key, 0) + 1
        if key == "findings": r["messages"].append(f"{n} {tool}: " + " | ".join(l for l in t.splitlines() if "=====" in l)[:1200])
for key, command in (("gpu", ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]), ("nvcc", ["nvcc", "--version"])):
    try: r[key] = subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    except Exception as e: r[key] = str(e)
r["messages"] = r["messages"][:60]
json.dump(r, open(out, "w"), indent=1)
print(json.dumps(r, indent=1))
P
