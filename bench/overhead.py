#!/usr/bin/env python3
"""What a launch costs through the library, on the driver that computes on the host: without it, with a winner, and with
eight versions whose guards are about a parameter (the last one holds).

  bench/overhead.py [--binary WARPWRIGHT] [--library LIB] [--launches N]

The library should be a release build. Needs a toolkit and cc, no GPU. Prints nanoseconds a launch, the least of five runs.
"""
import os, runpy, sys

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
    bench.remove()


main()
