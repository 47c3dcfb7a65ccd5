#!/usr/bin/env python3
"""Are the sectors and passes that the emulator counts those of the hardware?

    bench/accesses.py build DIR [WARPWRIGHT]      needs a toolkit and no GPU
    bench/accesses.py measure DIR [OUT]           needs a GPU and ncu, and no toolkit

For every kernel of examples/ at its small size: the counts of `warpwright run --accesses`, beside those of Nsight
Compute for ptxas's default build: sectors of global loads, stores and reductions at the first-level cache, and passes
(wavefronts) over shared memory. The PTX is what the emulator runs, so what ptxas adds or leaves out (vectors of loads,
copies of loops, loads of one address twice) counts as a difference. OUT: bench/results/accesses-<gpu>-<date>.json
"""
import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECTORS = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "red", "atom")]
SHARED = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")]


def described():
    for path in sorted(ROOT.glob("examples/*/*.toml")):
        launch = tomllib.loads(path.read_text())
        if "small" in launch.get("sizes", {}) and str(launch.get("source", "")).endswith(".cu"):
            yield path, launch


def build(folder, tool):
    folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for path, launch in described():
        source = path.parent / launch["source"]
        words = [tool, "run", source, "--launch", path, "--size", "small", "--accesses", "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            print(f"{path.stem}: {done.stderr.strip().splitlines()[0]}", file=sys.stderr)
            continue
        found = json.loads(done.stdout)
        cubin = folder / f"{path.stem}.cubin"
        words = [tool, "nvcc", "--policy", "off", "--", "-cubin", "-arch=sm_90", "-o", cubin, source]
        subprocess.run([*words, *launch.get("nvcc", [])], check=True, cwd=path.parent)
        accesses = found.get("accesses") or {}
        kernels.append({"name": path.stem, "launch": str(path.relative_to(ROOT)), "kernel": found["kernel"],
                        "sectors": accesses.get("sectors", {}).get("taken", 0),
                        "passes": accesses.get("passes", {}).get("taken", 0)})
    (folder / "kernels.json").write_text(json.dumps(kernels, indent=1) + "\n")


def counters(words):
    done = subprocess.run(words, capture_output=True, text=True)
    text = done.stdout[done.stdout.find('"ID"'):] if '"ID"' in done.stdout else ""
    found = {}
    for row in csv.DictReader(io.StringIO(text)):
        if row.get("ID") == "0":
            found[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return found, done.stdout[-400:] + done.stderr[-400:]


def measure(folder, out):
    query = lambda what: subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"],
                                        capture_output=True, text=True, check=True).stdout.splitlines()[0]
    gpu = query("name")
    out = out or ROOT / f"bench/results/accesses-{gpu.lower().replace(' ', '-')}-{date.today()}.json"
    tool = os.path.abspath(folder / "warpwright")
    known = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True).stdout.split()
    metrics = [name for name in SECTORS + SHARED if name.removesuffix(".sum") in known]
    rows, failed = [], []
    for kernel in json.loads((folder / "kernels.json").read_text()):
        words = ["ncu", "--csv", "--target-processes", "all", "--clock-control", "none", "--launch-count", "1",
                 "-k", kernel["kernel"], "--kernel-name-base", "mangled", "--metrics", ",".join(metrics),
                 tool, "run", folder / f"{kernel['name']}.cubin", "--gpu", "--launch", ROOT / kernel["launch"],
                 "--size", "small"]
        found, said = counters(words)
        if not found:
            failed.append({"name": kernel["name"], "said": said})
            continue
        of = lambda names: sum(found.get(name, 0.0) for name in names)
        rows.append({**{key: kernel[key] for key in ("name", "sectors", "passes")},
                     "gpu_sectors": of(SECTORS), "gpu_passes": of(SHARED), "counters": found})
        out.parent.mkdir(parents=True, exist_ok=True)
        near = lambda key: sum(abs(row[key] - row["gpu_" + key]) <= 0.05 * max(row["gpu_" + key], 1) for row in rows)
        document = {"schema": "warpwright.accesses/1", "gpu": gpu, "driver": query("driver_version"),
                    "date": str(date.today()), "metrics": metrics, "kernels": rows, "failed": failed,
                    "within_5_percent": {key: near(key) for key in ("sectors", "passes")}}
        out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(rows)} kernels, {len(failed)} failed; wrote {out}")


def main():
    match sys.argv[1:]:
        case ["build", folder, *tool]:
            build(Path(folder).resolve(), tool[0] if tool else "warpwright")
        case ["measure", folder, *out]:
            measure(Path(folder), Path(out[0]) if out else None)
        case _:
            sys.exit(__doc__)


main()
