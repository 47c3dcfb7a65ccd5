#!/usr/bin/env python3
"""What warpwright-ptxas (policy `safe`, an empty cache) costs a build beside the real ptxas, on two cores.

    bench/dropin.py [TOOL] [OUT] [EXAMPLE…]

Each example becomes PTX that promises the block size of its launch, as Triton's does: without it nothing is tried.
Then it is assembled by ptxas and by the drop-in with the default budget and with none, in turns. Writes seconds of
each, what the drop-in did, and how often the default budget was spent. TOOL: folder with `warpwright` and
`warpwright-ptxas` (target/release); OUT: bench/results/dropin-two-cores-<date>.json. CORES: 0,1. Needs nvcc and ptxas, no GPU."""
import datetime
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
words = dict(enumerate(sys.argv))
TOOL = Path(words.get(1, "target/release")).resolve()
OUT = Path(words.get(2, f"bench/results/dropin-two-cores-{datetime.date.today()}.json")).resolve()
NAMES = sys.argv[3:] or sorted(p.parent.name for p in ROOT.glob("examples/*/*.cu") if p.stem == p.parent.name)
CORES = os.environ.get("CORES", "0,1")
PTXAS = shutil.which("ptxas")
TURNS = 3


def run(command, env=None):
    pinned = ["taskset", "-c", CORES, *map(str, command)]
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(pinned, capture_output=True, text=True, env={**os.environ, **(env or {})})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (time.monotonic() - begin, cpu), done


def ptx_of(name, folder):
    """PTX that promises a block size, or why there is none."""
    folder, example = Path(folder), ROOT / "examples" / name
    plain, ptx = folder / f"{name}-plain.ptx", folder / f"{name}.ptx"
    description = example / f"{name}.toml"
    block = tomllib.loads(description.read_text())["launch"]["block"]
    launch = ["--gpu", "sm_90", "--launch", description]
    for step in ([TOOL / "warpwright", "pass", "print", example / f"{name}.cu", *launch, "-o", plain],
                 [TOOL / "warpwright", "pass", f"maxntid({math.prod(block)})", plain, *launch, "-o", ptx]):
        _, done = run(step)
        if done.returncode:
            return None, done.stderr[-300:]
    return ptx, None


def main():
    version = subprocess.run([PTXAS, "--version"], capture_output=True, text=True).stdout
    document = {"schema": "warpwright.dropin/1", "ptxas": re.search(r"V([0-9.]+)", version)[1], "cores": CORES,
                "date": str(datetime.date.today()), "kernels": []}
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            ptx, why = ptx_of(name, folder)
            if ptx is None:
                print(f"{name}: {why}")
                continue
            kernels = ptx.read_text().count(".entry")
            lines = [line.strip() for line in ptx.read_text().splitlines()]
            instructions = sum(line.endswith(";") and not line.startswith((".", "//")) for line in lines)
            row = {"example": name, "kernels": kernels, "instructions": instructions, "said": {}}
            row |= {f"{kind}_{what}": [] for kind in ("ptxas", "default", "unlimited") for what in ("s", "cpu_s")}
            for turn in range(TURNS):
                for kind, more in {"ptxas": None, "default": {}, "unlimited": {"WARPWRIGHT_PTXAS_BUDGET": "600"}}.items():
                    out, log, cache = (Path(folder, f"{kind}-{turn}{ending}") for ending in (".cubin", ".log", ".cache"))
                    env = None if more is None else {**more, "WARPWRIGHT_PTXAS": "safe", "WARPWRIGHT_REAL_PTXAS": PTXAS,
                                                     "WARPWRIGHT_PTXAS_LOG": str(log), "WARPWRIGHT_CACHE": str(cache)}
                    program = PTXAS if more is None else TOOL / "warpwright-ptxas"
                    took, done = run([program, "-arch=sm_90", ptx, "-o", out], env)
                    if done.returncode:
                        raise SystemExit(f"{name}: {kind}: {done.stderr}")
                    row[f"{kind}_s"].append(round(took[0], 4))
                    row[f"{kind}_cpu_s"].append(round(took[1], 4))
                    if more is not None:
                        row["said"].setdefault(kind, []).append(log.read_text().strip().split(": ", 1)[-1][:160] if log.exists() else "")
            least = {kind: min(row[f"{kind}_s"]) for kind in ("ptxas", "default", "unlimited")}
            row["more_s_a_kernel"] = round((least["default"] - least["ptxas"]) / kernels, 4)
            row["unlimited_more_s_a_kernel"] = round((least["unlimited"] - least["ptxas"]) / kernels, 4)
            row["spent"] = sum("is spent" in said for said in row["said"]["default"])
            document["kernels"].append(row)
        print(f"{name}: ptxas {least['ptxas']:.2f} s, the drop-in {least['default']:.2f}, without a budget {least['unlimited']:.2f}; {row['said']['default'][0]}", flush=True)
    more = sorted(row["more_s_a_kernel"] for row in document["kernels"])
    free = sorted(row["unlimited_more_s_a_kernel"] for row in document["kernels"])
    if more:
        document["summary"] = {
            "more_s_a_kernel": {"median": statistics.median(more), "most": more[-1]},
            "unlimited_more_s_a_kernel": {"median": statistics.median(free), "most": free[-1]},
            "budget_spent": sum(row["spent"] == TURNS for row in document["kernels"]), "of": len(more)}
        print(document["summary"])
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(document, indent=1) + "\n")


main()
