#!/usr/bin/env bash
# How long `opt X.cu -o Y.cu` takes for the eight stencils of Table 1 of Rawat et al. (PPoPP 2018), in both of their texts
# and in the published form of two, at the sizes of Table 1: everything that `opt` does, nvcc's runs and the comparison
# in the emulator among it, on two cores with an empty cache. Needs a CUDA toolkit; no Rust, no GPU.
#
#   bench/stencil-opt.sh WARPWRIGHT [OUT]
#
# OUT: bench/results/<cores>-cores-<date>-stencil-opt.json. CORES: which cores, the first two. RUNS of each: 3; the
# longest counts. Fails if one takes ten seconds or more, or is not checked.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
cores=${CORES:-$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep=",")')}
count=$(tr ',' '\n' <<< "$cores" | wc -l)
out=${2:-bench/results/$count-cores-$(date -u +%F)-stencil-opt.json}
exec python3 - "$binary" "$cores" "$out" "${RUNS:-3}" << 'P'
import json, os, resource, subprocess, sys, tempfile, time
from datetime import datetime, timezone

binary, cores, out, runs = *sys.argv[1:4], int(sys.argv[4])
SIZES = {"2d25pt": 8196, "2d64pt": 8200, "2d81pt": 8200, "3d27pt": 514, "3d125pt": 516, "hypterm": 308,
         "rhs4th3fort": 304, "derivative": 304, "published/2d81pt": 8200, "published/derivative": 304}

def first(command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()

# The toolkit stays where it is, whatever the cache is.
nvcc = next(line.split()[-1] for line in first([binary, "toolkit"]) if line.startswith("nvcc"))
os.environ["CUDA_HOME"] = os.path.dirname(os.path.dirname(nvcc))

def once(source, grid, permission):
    """Wall and processor seconds of a run with an empty cache, and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["taskset", "-c", cores, binary, "opt", source, *grid, *permission, "--gpu", "h200", "--no-database",
                   "--json", "-o", f"{folder}/out.cu"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "WARPWRIGHT_CACHE": f"{folder}/cache"})
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, run

rows = []
for name, size in SIZES.items():
    for ending in ("stencil", "cu"):
        source = f"examples/stencils/{name}.{ending}"
        if not os.path.exists(source): continue
        if ending == "stencil":
            grid = [f"--grid={axis}={size}" for axis in ("LMN" if not name.startswith("2d") else "MN")]
        else:
            grid = []
        for permission in ([], ["--fp", "reassociate"]):
            found = [once(source, grid, permission) for _ in range(runs)]
            row = {"input": source, "reassociate": bool(permission), "seconds": round(max(f[0] for f in found), 2),
                   "processor_seconds": round(max(f[1] for f in found), 2), "exit": found[0][2].returncode}
            try: row["chosen"] = json.loads(found[0][2].stdout).get("chosen")
            except ValueError: row["failed"] = found[0][2].stderr[-300:]
            rows.append(row)
            print(json.dumps(row), flush=True)
cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), None)
slowest = max(row["seconds"] for row in rows)
result = {"schema": "warpwright.stencil-opt-times/1", "date": datetime.now(timezone.utc).strftime("%FT%TZ"),
          "cores": len(cores.split(",")), "cpu": cpu, "load": os.getloadavg()[0], "version": first([binary, "--version"]),
          "toolkit": first([binary, "toolkit"])[:2], "runs": runs, "slowest_seconds": slowest, "stencils": rows}
json.dump(result, open(out, "w"), indent=1)
print(f"slowest {slowest} s; wrote {out}")
sys.exit(not (slowest < 10 and all(row["exit"] == 0 for row in rows)))
P
