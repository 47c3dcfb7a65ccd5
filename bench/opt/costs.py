"""What ptxas takes for the builds of `opt`: processor seconds of every build of every example, beside the instructions
of the build that was written. Other load on the machine hardly counts. Needs a CUDA toolkit and readelf.

    python3 bench/opt/costs.py WARPWRIGHT TOOLKIT-FOLDER OUT.json [WORK]

WORK keeps what is done, so that a run that was broken off goes on.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

WRAPPER = """#!/bin/bash
[ "$1" = --version ] && exec {ptxas} "$@"
TIMEFORMAT="cpu %U %S"
exec 3>&1 4>&2
said=$( {{ time {ptxas} "$@" 1>&3 2>&4; echo "rc $?" 1>&2; }} 2>&1 )
echo $said "$@" >> "$COSTS_LOG"
exit $(echo "$said" | sed -n 's/^rc //p')
"""


def wrapped(toolkit, work):
    """A toolkit whose ptxas writes down what it takes."""
    folder = work / "toolkit"
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    for place, into in ((toolkit, folder), (toolkit / "bin", folder / "bin")):
        for entry in place.iterdir():
            link = into / entry.name
            if entry.name not in ("bin", "ptxas") and not link.exists():
                link.symlink_to(entry)
    ptxas = folder / "bin" / "ptxas"
    ptxas.write_text(WRAPPER.format(ptxas=toolkit / "bin" / "ptxas"))
    ptxas.chmod(0o755)
    return folder


def instructions(cubin):
    text = subprocess.run(["readelf", "-SW", cubin], capture_output=True, text=True).stdout
    sizes = re.findall(r"\.text\.\S+\s+PROGBITS\s+\S+\s+\S+\s+([0-9a-f]+)", text)
    return sum(int(size, 16) for size in sizes) // 16


def builds(log):
    """Processor seconds of each build; nvcc's own trial of its PTX is none."""
    found = re.findall(r"cpu +([\d.]+) +([\d.]+) +rc 0 (.*)", log.read_text())
    return [round(float(user) + float(system), 3) for user, system, rest in found if "-arch=" not in rest]


binary, toolkit, out = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[3]
work = Path(sys.argv[4] if len(sys.argv) > 4 else tempfile.mkdtemp(prefix="costs-")).resolve()
os.chdir(Path(__file__).resolve().parents[2])
folder = wrapped(toolkit, work)
examples = []
for launch in sorted(Path("examples").glob("*/*.toml")):
    source, name = launch.with_suffix(".cu"), launch.parent.name
    if name in ("reference", "stencils") or not source.exists():
        continue
    log, cubin = work / f"{name}.log", work / f"{name}.out"
    if not cubin.exists():
        log.unlink(missing_ok=True)
        subprocess.run([binary, "--toolkit", folder, "opt", source, "--launch", launch, "--gpu", "h200",
                        "--no-database", "-q", "-o", cubin], check=False, capture_output=True,
                       env={**os.environ, "COSTS_LOG": str(log), "WARPWRIGHT_CACHE": str(work / "cache")})
    if not cubin.exists() or not log.exists():
        continue
    seconds, size = builds(log), instructions(cubin)
    if seconds and size:
        examples.append({"name": name, "instructions": size, "builds": len(seconds), "first": seconds[0],
                         "mean": round(statistics.mean(seconds), 3), "most": max(seconds)})
smallest = min(example["mean"] for example in examples)
each = [(example["mean"] - 0.015) / example["instructions"] * 1e6 for example in examples]
version = subprocess.run([toolkit / "bin" / "ptxas", "--version"], capture_output=True, text=True).stdout
result = {
    "schema": "warpwright.build-costs/1",
    "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "ptxas": re.search(r"V([\d.]+)", version)[1],
    "unit": "seconds of one core, user and system",
    "smallest_build": smallest,
    "microseconds_an_instruction_beyond_15_ms": {
        "median": round(statistics.median(each)), "least": round(min(each)), "most": round(max(each))},
    "examples": examples,
}
Path(out).write_text(json.dumps(result, indent=1) + "\n")
print(json.dumps({key: value for key, value in result.items() if key != "examples"}, indent=1))
