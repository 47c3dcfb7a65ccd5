#!/usr/bin/env python3
"""Does machine code of ours beat all that ptxas offers? Times both on kernels that spill at their launch bounds.

    bench/machine_code.py build DIR [TOOL] [--first N] [--per-family N] [--jobs N] [--seconds S]    # nvcc, ptxas; no GPU
    bench/machine_code.py time DIR [OUT] [--seconds S]                                # a GPU and nvcc
    bench/machine_code.py show OUT                                                    # the summary again

The kernels are bench/made's families at numbers from --first on, with blocks asked for that make registers scarce: one more
than fit, or where ptxas spills at none of these, twice as many. Kernels that do not spill there are left out, by a count.
Their builds are those of `warpwright tune --build-only --peers spills`: ptxas's own (limits, levels, bounds, its spilling to
shared memory), its spills moved, values demoted in their place, other orders. All builds of a kernel are timed in turns in one
process, which says whether each leaves the bytes that the default leaves. DIR is left for another machine to time. OUT:
bench/results/machine-code-<gpu>-<date>.json. TOOL: folder with `warpwright` (target/release)."""
import argparse
import concurrent.futures
import datetime
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/made")]
from collect import TURNS, device, text_of, timer, with_directives  # noqa: E402
from families import kernels  # noqa: E402
from safe import Builds, description, mean  # noqa: E402

GAIN = 0.03    # what the issue on machine code calls a gain
LONGEST = 600  # seconds for the builds of one kernel
FIELDS = ("name", "type", "n", "m", "grid", "block", "dynamic")


def bounded(builds, name, blocks):
    """The PTX with launch bounds, and ptxas's build of it."""
    source = builds.folder / f"{name}.ptx"
    least = f".minnctapersm {blocks}\n" if blocks else ""
    source.write_text(with_directives(builds.ptx, f".maxntid {builds.kernel.block}, 1, 1\n{least}"))
    return source, builds.plain(name, source)


def spilling(builds, natural):
    """The bound under which ptxas spills: its name, PTX and build; none if it spills under neither."""
    block = builds.kernel.block
    warps = -(-block // 32)
    resident = max(1, min(32, 64 // warps, 65536 // (warps * 32 * -(-natural // 8) * 8)))
    for case, blocks in {"tight": resident + 1, "scarce": 2 * resident}.items():
        if blocks * warps > 64:
            continue
        source, default = bounded(builds, case, blocks)
        if default and default["spilled"]:
            return case, source, default
    return None


def kind_of(recipe):
    """What has made the build: the last step that is not ptxas's."""
    for word, kind in {"schedule(": "order", "demote(": "demote", "spill-to-shared": "moved"}.items():
        if word in recipe:
            return kind
    return "ptxas"


def build(kernel, tool, folder):
    """The builds of a kernel, as `time` wants them; a text says why there are none."""
    builds = Builds(tool, kernel, folder)
    free = builds.plain("free", builds.folder / "k.ptx")
    found = free and spilling(builds, free["registers"])
    if not found:
        return "no bound makes it spill"
    case, source, default = found
    begun = time.time()
    done = subprocess.run([builds.tool / "warpwright", "tune", source, "--gpu", "h200", "--launch", description(kernel, builds.folder),
                           "--peers", "spills", "--build-only", builds.folder / "tuned"],
                          capture_output=True, text=True, env=builds.environment, timeout=LONGEST)
    if done.returncode:
        return f"tune: {done.stderr[-300:]}"
    manifest = json.loads((builds.folder / "tuned/manifest.json").read_text())
    rows = []
    for candidate, file in zip(manifest["report"]["candidates"], manifest["files"]):
        if candidate["rejected"] or candidate["same_code_as"] or not file:
            continue
        score = candidate["score"]
        rows.append(dict(recipe=candidate["recipe"] or "default", kind=kind_of(candidate["recipe"]),
                         registers=candidate["resources"]["registers"], blocks=candidate["residency"]["blocks"],
                         predicted=score and round(score["relative_time"], 4), file=f"tuned/{Path(file).stem}"))
    return dict({field: getattr(kernel, field) for field in FIELDS}, case=case, free=free["registers"],
                bound=[default["registers"], default["spilled"]], seconds=round(time.time() - begun, 1), builds=rows)


def build_all(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    tool, deadline = options.tool.resolve(), time.time() + options.seconds
    chosen = [k for k in kernels(options.first + options.per_family) if int(k.name.rsplit("_", 1)[1]) >= options.first]

    def one(kernel):
        if time.time() > deadline:
            return "no time was left"
        try:
            return build(kernel, tool, options.folder / kernel.name)
        except Exception as error:  # noqa: BLE001: one kernel that does not build is no reason to stop
            return str(error)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        built = list(zip(chosen, pool.map(one, chosen)))
    left_out = {kernel.name: why for kernel, why in built if isinstance(why, str)}
    made = [rows for _, rows in built if not isinstance(rows, str)]
    version = text_of(f"{tool}/warpwright --version").stdout.splitlines()[:1]
    ptxas = re.search(r"V([\d.]+)", text_of("ptxas --version").stdout)
    document = dict(first=options.first, per_family=options.per_family, warpwright=version, ptxas=ptxas and ptxas[1], left_out=left_out, made=made)
    (options.folder / "built.json").write_text(json.dumps(document, indent=1))
    print(f"{len(made)} kernels, {sum(len(rows['builds']) for rows in made)} builds; left out: {len(left_out)}")


class Timed:
    """A kernel as `runner.cpp` wants it."""

    def __init__(self, row):
        self.__dict__.update({field: row[field] for field in FIELDS})


def time_all(options):
    document = json.loads((options.folder / "built.json").read_text())
    deadline = time.time() + options.seconds
    gpu, named = device()
    out = options.out or ROOT / f"bench/results/machine-code-{named}-{datetime.date.today()}.json"
    runner = timer(options.folder)
    failures, made = [], []
    for row in document.pop("made"):
        if time.time() > deadline:
            failures.append(dict(kernel=row["name"], why="no time was left"))
            continue
        builds = [{**b, "dynamic": 0} for b in row["builds"]]
        times = runner.job(Timed(row), builds, options.folder / row["name"], TURNS)
        if not times or times[0]["error"]:
            failures.append(dict(kernel=row["name"], why=str(times and times[0]["error"])))
            continue
        rows = []
        for built, timed in zip(row["builds"], times):
            if timed["error"]:
                failures.append(dict(kernel=row["name"], build=built["recipe"], why=timed["error"]))
                continue
            rows.append({key: value for key, value in built.items() if key != "file"} | dict(same=timed["same"], us=timed["us"]))
        made.append({**row, "builds": rows})
    head = dict(schema="warpwright.machine-code/1", gpu=gpu[0] if gpu else None, date=str(datetime.date.today()), **document,
                failures=failures, summary=summary(made))
    rows = ",\n".join(json.dumps(row) for row in made)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "made": [\n{rows}\n]}}\n')
    print(json.dumps(head["summary"], indent=1), len(failures), "failures")


def best(builds, is_wanted):
    times = [b["us"][1] for b in builds if is_wanted(b)]
    return min(times, default=None)


def summary(made):
    """Ratios are times over ptxas's best: below 1, ours is faster."""
    # A build that leaves other bytes than the default: either is wrong, or the kernel races (bench/made/README.md). No figure is made
    # of these, and each wants to be looked at.
    differ = [row["name"] for row in made if not all(b["same"] for b in row["builds"])]
    rows = [row for row in made if row["name"] not in differ]
    ratios, alone, regret, default = {}, [], [], []
    for row in rows:
        ptxas = best(row["builds"], lambda b: b["kind"] == "ptxas")
        ours = best(row["builds"], lambda b: b["kind"] != "ptxas")
        if ptxas is None or ours is None:
            continue
        ratios[row["name"]] = round(min(ours, ptxas) / ptxas, 4)
        alone.append(ours / ptxas)
        default.append(min(ours, ptxas) / row["builds"][0]["us"][1])
        predicted = [b for b in row["builds"] if b["predicted"]]
        choice = min(predicted, key=lambda b: b["predicted"])
        regret.append(choice["us"][1] / min(ours, ptxas))
    gains = sorted(((ratio, name) for name, ratio in ratios.items() if ratio <= 1 / (1 + GAIN)))
    return dict(kernels=len(ratios), left_out_since_builds_differ=differ, best_over_ptxas=mean(list(ratios.values())), ours_alone_over_ptxas=mean(alone),
                best_over_default=mean(default), gains=[f"{name}: {ratio}" for ratio, name in gains], regret=mean(regret),
                worst_regret=round(max(regret, default=1), 4), seconds=sorted(row["seconds"] for row in made)[len(made) // 2] if made else None,
                most_seconds=max((row["seconds"] for row in made), default=None))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build")
    make.add_argument("folder", type=Path)
    make.add_argument("tool", nargs="?", type=Path, default=ROOT / "target/release")
    make.add_argument("--first", type=int, default=500)
    make.add_argument("--per-family", type=int, default=4)
    make.add_argument("--jobs", type=int, default=os.cpu_count())
    make.add_argument("--seconds", type=float, default=3600, help="no kernel is begun later")
    run = commands.add_parser("time")
    run.add_argument("folder", type=Path)
    run.add_argument("out", nargs="?", type=Path)
    run.add_argument("--seconds", type=float, default=400)
    show = commands.add_parser("show")
    show.add_argument("out", type=Path)
    options = parser.parse_args()
    match options.command:
        case "build":
            build_all(options)
        case "time":
            time_all(options)
        case "show":
            print(json.dumps(summary(json.loads(options.out.read_text())["made"]), indent=1))


if __name__ == "__main__":
    main()
