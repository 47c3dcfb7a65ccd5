#!/usr/bin/env python3
"""Measures files of candidates on many GPUs; Dask spreads them (pip install distributed).

    warpwright tune FILE --launch L.toml --jobs DIR       build, on any machine
    scripts/spread.py OUT DIR/*.job                       measure, one worker for each GPU of this host
    scripts/spread.py OUT DIR/*.job --scheduler tcp://HOST:8786
    warpwright tune --import OUT/*.json                   into the database

Workers on other hosts are started by whatever starts programs there, each with one GPU and its architecture:

    CUDA_VISIBLE_DEVICES=0 dask worker tcp://HOST:8786 --nthreads 1 --resources sm_90=1

A job goes to a worker of its architecture; a worker that is lost costs its job one more try elsewhere, at most
three times. Jobs travel as bytes: no shared folder is needed. `warpwright` must be on the workers' PATH, or --tool.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from distributed import Client, Nanny, Scheduler, SpecCluster, as_completed

INPUT_IS_WRONG = 1


def measure(job, tool, budget):
    """The measurements of a job as text; or a complaint, if another try would end in the same."""
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder, "a.job"), Path(folder, "a.json")
        path.write_bytes(job)
        command = [tool, "measure", path, "-o", result, "--budget", str(budget)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode == INPUT_IS_WRONG:
            return None, run.stderr
        run.check_returncode()
        return result.read_text(), None


def architectures():
    """`sm_90` and the like of this host's GPUs, in the driver's order; empty without nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return ["sm_" + line.strip().replace(".", "") for line in listed.splitlines()]


def here(count):
    """A cluster of this host: one process for each GPU."""
    known = architectures()
    def worker(index):
        return {
            "cls": Nanny,
            "options": {
                "nthreads": 1,
                "env": {"CUDA_VISIBLE_DEVICES": str(index)},
                "resources": {known[index]: 1} if known else {},
            },
        }
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "port": 0, "dashboard": False}}
    workers = {index: worker(index) for index in range(count or len(known) or 1)}
    return SpecCluster(workers=workers, scheduler=scheduler, asynchronous=False), bool(known)


def architecture(job):
    """The architecture that a job was built for."""
    return re.search(r"sm_\d+", json.loads(job)["manifest"]["gpu"])[0]


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("out", type=Path)
    words.add_argument("jobs", type=Path, nargs="+")
    words.add_argument("--scheduler", help="address of a Dask scheduler [default: workers on this host]")
    words.add_argument("--workers", type=int, help="workers on this host [default: one for each GPU]")
    words.add_argument("--tool", default="warpwright")
    words.add_argument("--budget", type=float, default=20.0, help="seconds of measuring for each job")
    args = words.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cluster, by_kind = (args.scheduler, True) if args.scheduler else here(args.workers)
    failed = 0
    with Client(cluster) as client:
        names = {}
        for path in args.jobs:
            job = path.read_bytes()
            wants = {architecture(job): 1} if by_kind else {}
            future = client.submit(
                measure, job, args.tool, args.budget, resources=wants, retries=3, pure=False)
            names[future] = path.stem
        for future in as_completed(names):
            name = names[future]
            result, complaint = (None, future.exception()) if future.status == "error" else future.result()
            if result is None:
                failed += 1
                print(f"{name}: {complaint}", file=sys.stderr)
                continue
            (args.out / f"{name}.json").write_text(result)
            print(f"{name}: measured", flush=True)
    if not args.scheduler:
        cluster.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
