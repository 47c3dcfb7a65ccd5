"""`moments` as a CuPy kernel: as CuPy compiles it, through `warpwright.optimised`, and from a cubin that `opt` wrote.

The argument is the cubin. A line of JSON for each, and the number of launches that `warpwright.trace()` sees."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import cupy
import warpwright

SOURCE = (Path(__file__).parent / "moments.cu").read_text()
ROWS, BLOCKS = 30_000_000, 132


def launch(kernel, columns, sums):
    kernel((BLOCKS,), (1024,), (cupy.int32(columns.shape[1]), columns, sums))


def timed(kernel, columns, expected, name):
    sums = cupy.full((BLOCKS, 28), cupy.nan)
    launch(kernel, columns, sums)
    error = float(cupy.abs(sums.sum(0) - expected).max() / cupy.abs(expected).max())
    digest = hashlib.sha256(cupy.asnumpy(sums).tobytes()).hexdigest()[:16]
    times = []
    for _ in range(20):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch(kernel, columns, sums)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    print(json.dumps({"kernel": name, "ms": min(times), "error": error, "digest": digest}), flush=True)
    assert error < 1e-9, name


def main():
    cupy.random.seed(1)
    columns = cupy.random.uniform(-1, 1, (7, ROWS), dtype=cupy.float32)
    expected = cupy.stack(
        [(columns[a].astype(float) * columns[b].astype(float)).sum() for a in range(7) for b in range(a, 7)]
    )
    raw = cupy.RawKernel(SOURCE, "moments")
    timed(raw, columns, expected, "RawKernel")
    decorated = warpwright.optimised(cupy.RawKernel(SOURCE, "moments"))
    timed(decorated, columns, expected, "optimised RawKernel")
    for outcome in decorated.outcomes:
        reasons = [repr(outcome)] if isinstance(outcome, Exception) else [k.chosen.recipe + ": " + k.reason for k in outcome]
        print(json.dumps({"outcome": reasons}), flush=True)
    timed(cupy.RawModule(path=sys.argv[1]).get_function("moments"), columns, expected, "RawModule of opt's cubin")


if sys.argv[1] == "--again":
    launch(cupy.RawKernel(SOURCE, "moments"), cupy.ones((7, 1000), dtype=cupy.float32), cupy.empty((BLOCKS, 28)))
    cupy.cuda.Device().synchronize()
else:
    main()
    with warpwright.trace() as seen:
        subprocess.run([sys.executable, __file__, "--again"], check=True)
    counts = {launches.name: launches.count for launches in seen}
    print(json.dumps({"traced": counts}), flush=True)
    assert counts.get("moments") == 1, counts
