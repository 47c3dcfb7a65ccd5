#!/usr/bin/env python3
"""Does measuring go faster on more GPUs of a host, with the same choices?

    bench/gpus.py [DIR] [OUT] [SECONDS] [EXAMPLE…]

Measures the candidates in the folders of DIR (`bench/build.sh` makes them) on one GPU, on two, on four and so on;
writes how long it took, how many candidates a minute that is, and what was chosen. DIR: .candidates; OUT:
bench/results/<gpu>-<date>-gpus.json; SECONDS of timing for each kernel: 4. Needs no toolkit.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path


def ask(what):
    words = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def write(out, gpus, runs):
    document = {"schema": "warpwright.gpus/1", "gpu": gpus[0], "driver": ask("driver_version")[0],
                "date": str(date.today()), "runs": runs}
    out.write_text(json.dumps(document, indent=1) + "\n")


def main():
    words = dict(enumerate(sys.argv))
    gpus = ask("name")
    name = gpus[0].lower().replace("nvidia ", "").replace(" ", "-")
    root = Path(words.get(1, ".candidates"))
    out = Path(words.get(2, f"bench/results/{name}-{date.today()}-gpus.json"))
    seconds = words.get(3, "4")
    wanted = sys.argv[4:] or sorted(p.parent.name for p in root.glob("*/manifest.json"))
    tool = os.path.abspath(root / "warpwright")
    runs = []
    counts = [count for count in (1, 2, 4, 8) if count <= len(gpus)]
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            candidates = Path(folder, "candidates")
            for kernel in wanted:
                shutil.copytree(root / kernel, candidates / kernel)
            visible = ",".join(str(index) for index in range(count))
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": visible, "WARPWRIGHT_CACHE": folder}
            result = Path(folder, "result.json")
            begin = time.monotonic()
            subprocess.run(
                [tool, "tune", "--measure-only", candidates, "--exhaustive", "--budget", seconds, "-o", result],
                check=True, env=environment, stdout=subprocess.DEVNULL)
            took = time.monotonic() - begin
            found = json.loads(result.read_text())
        chosen = {
            kernel["report"]["name"]: [
                kernel["measurements"]["chosen"],
                next((v["ratio"]["median"] for v in kernel["measurements"]["variants"]
                      if v["id"] == kernel["measurements"]["chosen"] and v.get("ratio")), 1.0),
            ]
            for kernel in found["kernels"]
        }
        measured = sum(len(kernel["measurements"]["variants"]) for kernel in found["kernels"])
        # Where the time went: seconds of each session by device. The rest of a device's time is data, contexts, idling.
        sessions = {}
        for kernel in found["kernels"]:
            device = kernel["measurements"]["environment"]["device"]["ordinal"]
            sessions.setdefault(str(device), {})[kernel["report"]["name"]] = round(kernel["measurements"]["seconds"], 2)
        runs.append({
            "gpus": count, "seconds": round(took, 2), "candidates": measured,
            "candidates_a_minute": round(60 * measured / took, 1), "chosen": chosen, "sessions": sessions,
            "failures": found["failures"],
        })
        write(out, gpus, runs)
        print(f"{count} GPU: {took:.1f} s, {measured} candidates, {60 * measured / took:.0f} a minute")
    first = runs[0]["chosen"]
    for run in runs[1:]:
        pairs = {kernel: [first[kernel], run["chosen"].get(kernel)] for kernel in first}
        others = {kernel: pair for kernel, pair in pairs.items() if pair[1] is None or pair[0][0] != pair[1][0]}
        speed = run["candidates_a_minute"] / runs[0]["candidates_a_minute"]
        print(f"{run['gpus']} GPU: {speed:.2f} times as many a minute; another choice for {others or 'no kernel'}")


if __name__ == "__main__":
    main()
