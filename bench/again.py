#!/usr/bin/env python3
"""How many slots does demotion save by computing values again? Builds alone: nothing runs, no GPU is needed.

    bench/again.py OUT [--tool DIR] [--first N] [--per-family N] [--foreign DIR]... [--stairs N] [--jobs N] [--seconds S]

The kernels are bench/made's families at numbers from --first on, and all that nvcc builds of the sources below --foreign, each
for sm_90 without a bound; blocks of foreign kernels without a description beside them are taken to have 256 threads. Each that does not spill and that registers limit
is demoted to each of its next stairs on an H200, by slots (`again=on`: constants and indices are computed again) and with all that
costs less computed again (`again=all`). A result counts if `warpwright pass` proves it and finds no hazard. TOOL: folder with
`warpwright` (target/debug)."""
import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench/made")]
from families import kernels  # noqa: E402

WAYS = ("on", "all")
THREADS = 256   # of a foreign kernel's block
FEWEST = 32     # registers: no stair lies below that RegDem goes to
USAGE = re.compile(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
NOTE = re.compile(r"(\d+) instead of \d+ registers: (\d+) values? demoted, (\d+) loads?, (\d+) stores?, (\d+) computed again, (\d+) bytes")


def said(command, seconds):
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def stairs(options, registers, threads, shared):
    """Registers with which one block more resides, two more, and so on."""
    done = said([options.tool / "warpwright", "occupancy", "--gpu", "h200", "--regs", str(registers), "--block", str(threads),
                 "--smem", str(shared), "--json"], 60)
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    if "occupancy" not in found:
        return []
    resident = found["occupancy"]["blocks"]
    above = sorted((stair["blocks"], stair["regs"]) for stair in found["staircase"] if stair["blocks"] > resident)
    return [regs for _, regs in above if FEWEST <= regs < registers][:options.stairs]


def demoted(options, cubin, kernel, threads, registers, again, folder):
    """What comes of it; a text says why nothing does."""
    made = Path(folder) / f"{kernel[:40]}-{registers}-{again}.cubin"
    done = said([options.tool / "warpwright", "pass", "demote", cubin, "--set", f"registers={registers}", "--set", f"again={again}",
                 "--kernel", kernel, "--gpu", "h200", "--block", str(threads), "--dynamic-smem", "0", "-o", made], options.longest)
    if done is None:
        return "takes too long"
    text = done.stdout + done.stderr
    note = NOTE.search(text)
    if done.returncode or not note or not made.exists():
        return re.sub(r"^.*?(unchanged|not proved)", r"\1", text.strip(), flags=re.S)[:160]
    keys = ("registers", "values", "loads", "stores", "again", "bytes")
    return dict(zip(keys, map(int, note.groups())))


def built(options, name, source, include, folder, rows):
    """The kernels of the cubin that nvcc makes of a source: name, registers, bytes of stack, of shared and of local memory."""
    cubin, text = Path(folder) / "k.cubin", source if isinstance(source, Path) else Path(folder) / "k.cu"
    if text is not source:
        text.write_text(source)
    done = said(["nvcc", "-O3", "-arch=sm_90", "-w", "-cubin", *[f"-I{path}" for path in include], text, "-o", cubin], 120)
    if done is None or done.returncode:
        rows.append(dict(kernel=name, why="nvcc does not build it"))
        return []
    used = said(["cuobjdump", "-res-usage", cubin], 60)
    return [(kernel, *map(int, numbers)) for kernel, *numbers in USAGE.findall(used.stdout if used else "")]


def one(options, job, deadline):
    name, source, threads, include = job
    if time.time() > deadline:
        return [dict(kernel=name, why="no time was left")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kernel, registers, stack, shared, local in built(options, name, source, include, folder, rows):
            if stack or local:
                rows.append(dict(kernel=name, why="spills or has a frame"))
                continue
            goals = stairs(options, registers, threads, shared)
            if not goals:
                rows.append(dict(kernel=name, why="registers do not limit it"))
            for goal in goals:
                cubin = Path(folder) / "k.cubin"
                ways = {way: demoted(options, cubin, kernel, threads, goal, way, folder) for way in WAYS}
                rows.append(dict(kernel=name, function=kernel, threads=threads, registers=registers, stair=goal,
                                 number=1 + goals.index(goal), **ways))
    return rows


def jobs(options):
    for kernel in kernels(options.first + options.per_family):
        if int(kernel.name.rsplit("_", 1)[1]) >= options.first:
            yield kernel.name, kernel.head + "\n" + kernel.source, kernel.block, ()
    for folder in options.foreign:
        for source in sorted(folder.rglob("*.cu")):
            described = source.with_suffix(".toml")
            block = re.search(r"^block = \[([\d, ]+)\]", described.read_text(), re.M) if described.exists() else None
            threads = math.prod(map(int, block[1].split(","))) if block else THREADS
            yield f"{folder.name}/{source.relative_to(folder)}", source, threads, options.include


def summary(rows):
    stair_rows = [row for row in rows if "stair" in row]

    def sums(chosen):
        reached = {way: [row for row in chosen if isinstance(row[way], dict)] for way in WAYS}
        both = [row for row in chosen if all(isinstance(row[way], dict) for way in WAYS)]
        total = lambda way, key: sum(row[way][key] for row in both)  # noqa: E731
        fewer = [row for row in both if row["all"]["bytes"] < row["on"]["bytes"]]
        return dict(limited=len(chosen), reached={way: len(reached[way]) for way in WAYS}, by_both=len(both), with_fewer_slots=len(fewer),
                    with_more_slots=sum(row["all"]["bytes"] > row["on"]["bytes"] for row in both),
                    without_slots={way: sum(row[way]["bytes"] == 0 for row in both) for way in WAYS},
                    bytes={way: total(way, "bytes") for way in WAYS},
                    accesses={way: total(way, "loads") + total(way, "stores") for way in WAYS},
                    again={way: total(way, "again") for way in WAYS})

    left_out = collections.Counter(row["why"] for row in rows if "why" in row)
    refused = {way: collections.Counter(str(row[way])[:60] for row in stair_rows if not isinstance(row[way], dict)) for way in WAYS}
    return dict(next_stair=sums([row for row in stair_rows if row["number"] == 1]), all_stairs=sums(stair_rows), left_out=dict(left_out),
                refused={way: dict(found.most_common(8)) for way, found in refused.items()})


def arguments(text, per_family):
    """The options of scripts that build these kernels."""
    parser = argparse.ArgumentParser(description=text.split("\n\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--tool", type=Path, default=ROOT / "target/debug")
    parser.add_argument("--first", type=int, default=500)
    parser.add_argument("--per-family", type=int, default=per_family)
    parser.add_argument("--foreign", type=Path, action="append", default=[])
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--longest", type=float, default=60, help="seconds for one build")
    parser.add_argument("--seconds", type=float, default=3600, help="no kernel is begun later")
    return parser


def all_rows(options, one):
    """What `one` makes of each kernel, as many at a time as are asked for."""
    options.tool, deadline = options.tool.resolve(), time.time() + options.seconds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda job: one(options, job, deadline), list(jobs(options)))
        return [row for rows in found for row in rows]


def write(options, schema, summary, rows):
    """The result: where it comes from, its sums, the rows of the kernels that were lowered."""
    ptxas = re.search(r"V([\d.]+)", said(["ptxas", "--version"], 60).stdout)
    head = dict(schema=schema, date=str(datetime.date.today()), gpu="h200", ptxas=ptxas and ptxas[1], first=options.first,
                per_family=options.per_family, foreign=[folder.name for folder in options.foreign], summary=summary)
    text = ",\n".join(json.dumps(row) for row in rows if "stair" in row)
    options.out.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "rows": [\n{text}\n]}}\n')
    print(json.dumps(head["summary"], indent=1))


def main():
    parser = arguments(__doc__, per_family=2)
    parser.add_argument("--stairs", type=int, default=2)
    options = parser.parse_args()
    rows, seen = [], set()
    for row in all_rows(options, one):
        # Suites hold the same file more than once.
        key = hashlib.sha256(json.dumps({k: v for k, v in row.items() if k != "kernel"}).encode()).hexdigest()
        if "stair" not in row or key not in seen:
            rows.append(row)
            seen.add(key)
    write(options, "warpwright.again/1", summary(rows), rows)


if __name__ == "__main__":
    main()
