#!/usr/bin/env python3
"""Is what nobody measured faster? Times what the drop-in's policy `safe`, which knows no launch, and `opt`, which does, make
of kernels that nothing was fitted on, beside ptxas's own build.

    bench/safe.py [TOOL] [OUT] [--first N] [--per-family N] [--seconds S] [--jobs N] [--families A,B] [--candidates N]

The kernels are bench/made's families at numbers from --first on (100: those below 19 were fitted, chosen or judged on).
Each is built as it is (for `opt` alone), with the block size that its PTX promises (as Triton's does), and with blocks besides
that make registers scarce (as `__launch_bounds__(threads, blocks)` has it): one more than would fit, and twice as many. All builds of
a kernel are timed in turns in one process. With --candidates, so many of `opt`'s candidates that promise most are timed as
well, of kernels that spill (`by` is `candidate` there). TOOL: folder with `warpwright` and `warpwright-ptxas` (target/release); OUT:
bench/results/safe-<gpu>-<date>.json. Needs nvcc, ptxas and a GPU."""
import argparse
import collections
import concurrent.futures
import datetime
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/made"))
from collect import TURNS, code_of, device, text_of, timer, with_directives  # noqa: E402
from families import kernels  # noqa: E402

NOISE = 0.02    # a build within this share of the default's time is as fast
SECONDS = 10    # the drop-in's budget, as the README has it


def description(kernel, folder):
    """A launch description for `opt`: the grid, and every argument at its size."""
    kinds = {"float": "f32", "double": "f64", "half": "f16", "int": "s32"}
    bytes_of = {"float": 4, "double": 8, "half": 2, "int": 4}
    kind, count = kinds[kernel.type], (256 << 20) // bytes_of[kernel.type]
    scalar = "s32" if kernel.type == "int" else kind
    lines = ['source = "k.cu"', f'kernel = "{kernel.name}"', "[sizes.small]", "x = 1", "[sizes.full]", "x = 1", "[launch]",
             f"grid = [{kernel.grid}]", f"block = [{kernel.block}]", f"dynamic_smem = {kernel.dynamic}"]
    for name, type_, size in [("out", kind, count), ("a", kind, count), ("b", kind, count), ("idx", "s32", 64 << 20)]:
        lines += ["[[args]]", f'name = "{name}"', f'type = "{type_}"', f"shape = [{size}]", 'init = { kind = "fill", value = 1 }']
        lines += ["output = true"] if name == "out" else []
    for name, type_, value in [("n", "s32", kernel.n), ("m", "s32", kernel.m), ("s", scalar, 1 if scalar == "s32" else 0.01)]:
        lines += ["[[args]]", f'name = "{name}"', f'type = "{type_}"', f"value = {value}"]
    path = Path(folder) / "k.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


class Builds:
    """The builds of one kernel in one folder."""

    def __init__(self, tool, kernel, folder, candidates=0):
        self.tool, self.kernel, self.folder, self.candidates = tool, kernel, Path(folder), candidates
        self.folder.mkdir(parents=True)
        (self.folder / "k.cu").write_text(kernel.head + "\n" + kernel.source)
        done = text_of(f"nvcc -O3 -arch=sm_90 -w -ptx {folder}/k.cu -o {folder}/k.ptx", timeout=120)
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        self.ptx = (self.folder / "k.ptx").read_text()
        self.environment = {**os.environ, "WARPWRIGHT_CACHE": str(self.folder / "cache")}

    def file(self, name):
        return self.folder / f"{name}.cubin"

    def row(self, name, **more):
        code = code_of(self.file(name).read_bytes())
        return dict(build=name, file=name, dynamic=0, code=code, **more)

    def plain(self, name, source):
        done = text_of(f"ptxas -arch=sm_90 -v {source} -o {self.file(name)}", timeout=60)
        used = re.search(r"Used (\d+) registers", done.stderr)
        if done.returncode or not used:
            return None
        spilled = re.search(r"(\d+) bytes spill stores, (\d+)", done.stderr)
        return self.row(name, registers=int(used[1]), spilled=sum(map(int, spilled.groups())) if spilled else 0)

    def safe(self, name, source):
        log = self.folder / f"{name}.log"
        environment = {**self.environment, "WARPWRIGHT_PTXAS": "safe", "WARPWRIGHT_PTXAS_BUDGET": str(SECONDS),
                       "WARPWRIGHT_PTXAS_LOG": str(log)}
        done = subprocess.run([self.tool / "warpwright-ptxas", "-arch=sm_90", source, "-o", self.file(name)],
                              capture_output=True, text=True, env=environment, timeout=120)
        if done.returncode:
            raise RuntimeError(f"the drop-in failed: {done.stderr[-300:]}")
        said = re.sub(r"^.*?\t|\[[^\]]*\]$", "", log.read_text().strip()) if log.exists() else ""
        return self.row(name, said=said.replace(str(self.folder), "").strip())

    def opt(self, name, source):
        toml = description(self.kernel, self.folder)
        done = subprocess.run([self.tool / "warpwright", "opt", source, "--gpu", "h100", "--launch", toml, "--json", "-o", self.file(name)],
                              capture_output=True, text=True, env=self.environment, timeout=200)
        if done.returncode:
            raise RuntimeError(f"opt failed: {done.stderr[-300:] or done.stdout[-300:]}")
        self.report = json.loads(done.stdout)
        return self.row(name, said=list(texts(self.report, "reason"))[:1], recipe=list(texts(self.report, "recipe_text"))[:1])

    def others(self, name, source):
        """Builds of the candidates that promise most, by the last report."""
        candidates = self.report["kernels"][0]["candidates"]
        likely = [c for c in candidates[1:] if not c["rejected"] and not c["same_code_as"] and c["score"]]
        likely.sort(key=lambda c: c["score"]["relative_time"])
        found = []
        for number, candidate in enumerate(likely[:self.candidates]):
            built = f"{name}-{number}"
            done = subprocess.run([self.tool / "warpwright", "opt", source, "--gpu", "h100", "--launch", self.folder / "k.toml", "-q",
                                   "--recipe", candidate["recipe"], "-o", self.file(built)],
                                  capture_output=True, text=True, env=self.environment, timeout=100)
            if done.returncode == 0:
                said = {key: candidate.get(key) for key in ("resources", "residency", "score")}
                said["default"] = {key: candidates[0].get(key) for key in ("resources", "residency", "score")}
                found.append({**self.row(built, said=said, recipe=[candidate["recipe"]]), "by": "candidate"})
        return found

    def all(self):
        """Lists of builds, the default first in each."""
        block, found = self.kernel.block, []
        first = self.plain("default", self.folder / "k.ptx")
        if first is None:
            raise RuntimeError("ptxas does not take it")
        found.append(("opt", [first, self.opt("opt", self.folder / "k.ptx")]))
        warps = -(-block // 32)
        resident = max(1, min(32, 64 // warps, 65536 // (warps * 32 * -(-first["registers"] // 8) * 8)))
        crowds = {"promised": 0, "tight": resident + 1, "scarce": 2 * resident}
        for case, blocks in crowds.items():
            if blocks * warps > 64 or case == "tight" and resident == 1:
                continue
            source = self.folder / f"{case}.ptx"
            least = f".minnctapersm {blocks}\n" if blocks else ""
            source.write_text(with_directives(self.ptx, f".maxntid {block}, 1, 1\n{least}"))
            default = self.plain(case, source)
            if default is not None:
                builds = [default, self.safe(f"{case}-safe", source), self.opt(f"{case}-opt", source)]
                found.append((case, builds + (self.others(f"{case}-candidate", source) if default["spilled"] else [])))
        return found


def texts(document, key):
    """The texts under a key, wherever it stands."""
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else []
    if isinstance(document, dict) and isinstance(document.get(key), str):
        yield document[key]
    for part in parts:
        yield from texts(part, key)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("tool", nargs="?", type=Path, default=ROOT / "target/release")
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--per-family", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--families", default="")
    parser.add_argument("--candidates", type=int, default=0)
    options = parser.parse_args()
    tool, deadline = options.tool.resolve(), time.time() + options.seconds
    gpu, named = device()
    out = options.out or ROOT / f"bench/results/safe-{named}-{datetime.date.today()}.json"
    wanted = [f for f in options.families.split(",") if f]
    chosen = [k for k in kernels(options.first + options.per_family)
              if int(k.name.rsplit("_", 1)[1]) >= options.first and (not wanted or k.family in wanted)]
    work, failures, records = Path(tempfile.mkdtemp()), [], []
    runner = timer(work)
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)

    def build(kernel):
        return Builds(tool, kernel, work / kernel.name, options.candidates).all() if time.time() < deadline else None

    jobs = {pool.submit(build, kernel): kernel for kernel in chosen}
    built = []
    for job in concurrent.futures.as_completed(jobs):
        kernel = jobs[job]
        try:
            cases = job.result()
        except Exception as error:  # noqa: BLE001: one kernel that does not build is no reason to stop
            failures.append(dict(kernel=kernel.name, why=str(error)))
            continue
        if cases is None:
            failures.append(dict(kernel=kernel.name, why="no time was left"))
        else:
            built.append((kernel, cases))
    # Nothing is built while something is timed.
    for kernel, cases in sorted(built, key=lambda row: row[0].name):
        for case, builds in cases:
            different = [b for n, b in enumerate(builds) if n == 0 or b["code"] != builds[0]["code"]]
            answer = runner.job(kernel, different, work / kernel.name, TURNS) if len(different) > 1 else [dict(error=None, us=[1, 1, 1])]
            if not answer or any(t["error"] for t in answer):
                failures.append(dict(kernel=kernel.name, case=case, why=str(answer)))
                continue
            times = {b["build"]: t["us"] for b, t in zip(different, answer)}
            default = times[builds[0]["build"]]
            for b in builds[1:]:
                its = times.get(b["build"], default)
                records.append(dict(
                    kernel=kernel.name, case=case, by=b.get("by", b["build"].rsplit("-", 1)[-1]), grid=kernel.grid, block=kernel.block,
                    dynamic_smem=kernel.dynamic, registers=builds[0]["registers"], spilled=builds[0]["spilled"],
                    changed=b["build"] in times, said=b["said"], **({"recipe": b["recipe"]} if "recipe" in b else {}),
                    relative_time=round(its[1] / default[1], 4), apart=its[2] < default[0] or its[0] > default[2],
                    us=[default[1], its[1]] if b["build"] in times else None))
    records.sort(key=lambda r: (r["case"], r["by"], r["kernel"]))
    summary = {}
    for case in sorted({r["case"] for r in records}):
        for by in sorted({r["by"] for r in records if r["case"] == case}):
            rows = [r for r in records if r["case"] == case and r["by"] == by]
            changed = [r["relative_time"] for r in rows if r["changed"]]
            slower = [r for r in rows if r["changed"] and r["apart"] and r["relative_time"] > 1 + NOISE]
            summary[f"{case}, {by}"] = dict(
                kernels=len(rows), changed=len(changed), geomean=mean([r["relative_time"] for r in rows]), geomean_changed=mean(changed),
                fastest=min(changed, default=None), slowest=max(changed, default=None),
                slower=[f'{r["kernel"]}: {r["relative_time"]}' for r in slower])
    nvcc = re.search(r"release [\d.]+, V([\d.]+)", text_of("nvcc --version").stdout)
    version = subprocess.run([tool / "warpwright", "--version"], capture_output=True, text=True).stdout.splitlines()
    head = dict(schema=1, gpu=gpu[0] if gpu else None, nvcc=nvcc and nvcc[1], warpwright=version[:1], date=str(datetime.date.today()),
                first=options.first, per_family=options.per_family, failures=failures, summary=summary)
    rows = ",\n".join(json.dumps(r) for r in records)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "records": [\n{rows}\n]}}\n')
    shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(summary, indent=1), collections.Counter(str(f["why"])[:60] for f in failures), sep="\n")


def mean(values):
    return round(math.exp(sum(map(math.log, values)) / len(values)), 4) if values else None


if __name__ == "__main__":
    main()
