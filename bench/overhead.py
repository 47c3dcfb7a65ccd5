#!/usr/bin/env python3
"""What a launch costs through the library, on the driver that computes on the host: without it, with a winner, and with
eight versions whose guards are about a parameter (the last one holds). And what the start costs.

  bench/overhead.py [--binary WARPWRIGHT] [--library LIB] [--launches N]

The library should be a release build. Needs a toolkit and cc, no GPU. Prints nanoseconds a launch, the least of five runs,
and milliseconds of processor time of whole short runs in turns, the median of a hundred.
"""
import os, resource, runpy, statistics, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
attack = runpy.run_path(os.path.join(ROOT, "scripts/attack.py"), run_name="attack")


def main():
    args = attack["arguments"]()
    bench = attack["Bench"](args)
    common = "block=256,1,1; cluster=1,1,1; smem=0; "
    stores = {
        "one winner": ["grid.size>=4; grid.size<=7"],
        "eight versions": [f"param1:4={n + 1}" for n in range(7)] + ["param1:4=0"],
    }
    base = None
    for name in ["past it", *stores]:
        records = [bench.record(bench.fast, guard=common + guard, **{"winner-ns": str(500 + n)})
                   for n, guard in enumerate(stores.get(name, []))]
        bench.store(*records)
        env = dict(bench.env) if name == "past it" else bench.preloaded()
        env["FAKE_LOG"] = ""
        del env["FAKE_LOG"]
        words = [*bench.words("dlsym", "benchmark"), str(args.launches)]
        runs = [attack["ran"](words, env) for _ in range(5)]
        times = [float(run.out.split()[0]) for run in runs]
        base = base or min(times)
        print(f"{name:16} {min(times):7.1f} ns, {min(times) - base:6.1f} more")
    starts(bench)
    bench.remove()


def starts(bench):
    """A program of one launch: as it is, with the library alone, and below the command."""
    plain = dict(bench.env, WARPWRIGHT_LOG="/dev/null")
    bench.store()
    loaded = dict(bench.preloaded(), WARPWRIGHT_LOG="/dev/null")
    for environment in (plain, loaded):
        environment.pop("FAKE_LOG", None)
    words = bench.words("dlsym", "plain")
    below = [bench.binary, "with", "--db", loaded["WARPWRIGHT_DB"], "--", *words]
    kinds = {"as it is": (words, plain), "library, empty store": (words, loaded), "with, empty store": (below, plain)}
    spent = {name: [] for name in kinds}
    for _ in range(100):
        for name, (command, environment) in kinds.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    for name, times in spent.items():
        print(f"{name:20} {statistics.median(times) * 1e3:5.2f} ms")


main()
