#!/usr/bin/env python3
"""What is a pass worth where nobody measures? Times it beside ptxas's own build, `opt`'s choice and the drop-in's.

    bench/unmeasured.py PASS [TOOL] [OUT] [--first N] [--per-family N] [--jobs N] [--seconds S] [--alone] [--cubins FILE]

PASS is `promote`, with the kernels of bench/made/kept.py, or `specialize`, with those of known.py; both were written before any
of them was timed. All builds of a kernel are timed in turns in one process. TOOL: folder with `warpwright` and `warpwright-ptxas`
(target/release); OUT: bench/results/PASS-<gpu>-<date>.json; `--cubins` keeps the builds (tar.xz) for the model. Needs nvcc,
ptxas and a GPU."""
import argparse
import concurrent.futures
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/made")]
import kept  # noqa: E402
import known  # noqa: E402
from collect import TURNS, device, text_of, timer  # noqa: E402
from safe import NOISE, Builds, description, mean  # noqa: E402


def stated(kernel, guarded):
    """The launch as constants, but for the floating-point number."""
    return (f"specialize(block={kernel.block}x1x1,grid={kernel.grid}x1x1,params=param4={kernel.n}&param5={kernel.m}"
            f"{',guarded=yes' if guarded else ''})")


PASSES = {
    "promote": (kept.kernels, {"promote": lambda kernel: "promote"}),
    "specialize": (known.kernels, {"specialize": lambda kernel: stated(kernel, False), "guarded": lambda kernel: stated(kernel, True)}),
}


def passed(builds, source, name, recipe):
    """The build of a recipe, and what is predicted of it; none where the pass finds nothing."""
    toml = description(builds.kernel, builds.folder)
    done = subprocess.run([builds.tool / "warpwright", "opt", source, "--gpu", "h200", "--launch", toml, "--json", "--recipe", recipe,
                           "-o", builds.file(name)], capture_output=True, text=True, env=builds.environment, timeout=200)
    if done.returncode:
        return None
    kernel = json.loads(done.stdout)["kernels"][0]
    score = kernel["candidates"][kernel["chosen"]]["score"]
    return builds.row(name, said=score and score["relative_time"])


def all_builds(tool, kernel, recipes, folder, is_alone):
    builds = Builds(tool, kernel, folder)
    source = builds.folder / "k.ptx"
    default = builds.plain("default", source)
    if default is None:
        raise RuntimeError("ptxas does not take it")
    alone = [passed(builds, source, name, recipe(kernel)) for name, recipe in recipes.items()]
    chosen = [] if is_alone else [builds.opt("opt", source), builds.safe("safe", source)]
    found = [default, *alone, *chosen]
    return [build for build in found if build]


def record(kernel, builds, times):
    default = times["default"]
    row = dict(kernel=kernel.name, type=kernel.type, iterations=kernel.m, grid=kernel.grid, block=kernel.block,
               registers=builds[0]["registers"], us=default[1])
    for build in builds[1:]:
        its = times.get(build["build"], default)
        row[build["build"]] = dict(relative_time=round(its[1] / default[1], 4), apart=its[2] < default[0] or its[0] > default[2],
                                   said=build["said"], recipe=build.get("recipe"))
    return row


def summary(records, recipes):
    found = {}
    for by in [*recipes, "opt", "safe"]:
        rows = [(r["kernel"], r[by]) for r in records if by in r]
        times = [row["relative_time"] for _, row in rows]
        slower = [f'{name}: {row["relative_time"]}' for name, row in rows if row["apart"] and row["relative_time"] > 1 + NOISE]
        found[by] = dict(kernels=len(rows), geomean=mean(times), changed=sum(t != 1 for t in times), fastest=min(times, default=None),
                         slowest=max(times, default=None), slower=slower)
    families = sorted({r["kernel"].rsplit("_", 1)[0] for r in records})
    for by in recipes:
        found[by + ", by family"] = {f: mean([r[by]["relative_time"] for r in records if by in r and r["kernel"].startswith(f + "_")])
                                     for f in families}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=PASSES)
    parser.add_argument("tool", nargs="?", type=Path, default=ROOT / "target/release")
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--per-family", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--cubins", type=Path)
    parser.add_argument("--alone", action="store_true", help="the pass alone, no choices: to make a rule from")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    gpu, named = device()
    out = options.out or ROOT / f"bench/results/{options.what}-{named}-{datetime.date.today()}.json"
    work, failures, records = Path(tempfile.mkdtemp()), [], []
    runner = timer(work)
    kernels, recipes = PASSES[options.what]
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)

    def build(kernel):
        try:
            return all_builds(options.tool.resolve(), kernel, recipes, work / kernel.name, options.alone) if time.time() < deadline else "no time was left"
        except Exception as error:  # noqa: BLE001: one kernel that does not build is no reason to stop
            return str(error)

    chosen = list(kernels(options.per_family, options.first))
    # Nothing is built while something is timed.
    for kernel, builds in zip(chosen, list(pool.map(build, chosen))):
        if isinstance(builds, str):
            failures.append(dict(kernel=kernel.name, why=builds[-300:]))
            continue
        different = [b for n, b in enumerate(builds) if n == 0 or b["code"] != builds[0]["code"]]
        answer = runner.job(kernel, different, work / kernel.name, TURNS)
        if not answer or any(t["error"] for t in answer):
            failures.append(dict(kernel=kernel.name, why=str(answer)))
            continue
        records.append(record(kernel, builds, {b["build"]: t["us"] for b, t in zip(different, answer)}))
    nvcc = re.search(r"release [\d.]+, V([\d.]+)", text_of("nvcc --version").stdout)
    head = dict(schema="warpwright.unmeasured/1", what=options.what, gpu=gpu[0] if gpu else None, nvcc=nvcc and nvcc[1], date=str(datetime.date.today()),
                first=options.first, per_family=options.per_family, failures=failures, summary=summary(records, recipes))
    rows = ",\n".join(json.dumps(r) for r in records)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "records": [\n{rows}\n]}}\n')
    if options.cubins:
        with tarfile.open(options.cubins, "w:xz") as archive:
            for path in sorted(work.glob("*/*.cubin")):
                archive.add(path, path.relative_to(work))
    shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(head["summary"], indent=1), len(failures), "failures")


if __name__ == "__main__":
    main()
