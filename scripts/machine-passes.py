#!/usr/bin/env python3
"""Kernels under register pressure with what is everyday in others' code: atomics of floating-point numbers (results used and
not, global and shared memory), and calls of ptxas's own helpers, whose return addresses wait in spill slots (quotients,
roots, remainders). Built for every architecture, then every pass on machine code over each.

    scripts/machine-passes.py DIR WARPWRIGHT [--limits 40,64] [--gpus sm_80,sm_90] [-o RESULT.json]

or over kernels that others compiled: so many of each architecture, the same for the same seed, out of the cubins of
scripts/foreign-cubins.py; each is checked against itself as well, and against what `schedule` wrote.

    scripts/machine-passes.py DIR WARPWRIGHT --foreign CUBINS [--sample 150] [--seed 1] [-o RESULT.json]

What a pass writes was proved and has no hazard, or it is refused by name; RESULT counts both, and the reasons."""

import argparse
import json
import random
import re
import struct
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

GPUS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"]
PASSES = ["spill-to-shared", "demote", "compact", "schedule", "dead-instructions"]
FOREIGN = ["schedule", "throttle", "demote", "spill-to-shared"]
# An order that promises nothing is written all the same, so that it is checked.
OPTIONS = {"schedule": ["--set", "seed=1"], "demote": ["--set", "registers=auto"], "throttle": ["--set", "blocks=4"]}
SECONDS = 120

HEAD = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef long long wide;
"""

# Sums of products, kept alive over what `body` does with each.
KERNEL = """extern "C" __global__ void __launch_bounds__(128) k(const T *__restrict__ x, T *f, const int *__restrict__ at, int n) {{
    {shared}
    int i = blockIdx.x * 128 + threadIdx.x;
    T v[{live}];
#pragma unroll
    for (int j = 0; j < {live}; ++j) v[j] = x[j * n + i];
    for (int r = 0; r < n; ++r) {{
#pragma unroll
        for (int j = 0; j < {live}; ++j) v[j] = v[j] * v[(j + 7) % {live}] + v[(j + 3) % {live}];
        {body}
    }}
    {after}
#pragma unroll
    for (int j = 0; j < {live}; ++j) x_[j * n + i] = v[j];
}}
""".replace("int n)", "T *x_, int n)")

ATOMIC_TYPES = {"f32": ("float", 40), "f64": ("double", 24), "f16x2": ("__half2", 40), "bf16x2": ("__nv_bfloat162", 40),
                "f16": ("__half", 60), "bf16": ("__nv_bfloat16", 60)}
CALLS = {
    "div-f64": ("double", 20, "v[0] = v[1] / v[0]; v[5] = 1.0 / v[5];"),
    "sqrt-f64": ("double", 20, "v[0] = sqrt(v[1]); v[5] = rsqrt(v[5]);"),
    "pow-f64": ("double", 20, "v[0] = pow(v[1], v[2]);"),
    "sin-f64": ("double", 20, "v[0] = sin(v[1]);"),
    "div-f32": ("float", 40, "v[0] = v[1] / v[0]; v[9] = sqrtf(v[9]);"),
    "fmod-f32": ("float", 40, "v[0] = fmodf(v[1], v[0]);"),
    "div-s64": ("wide", 20, "v[0] = v[1] / v[0]; v[3] = v[4] % v[3];"),
    "div-and-atomic": ("double", 20, "v[0] = v[1] / v[0]; atomicAdd(&f[at[i + r]], v[0]);"),
}


def kernels():
    for name, (kind, live) in ATOMIC_TYPES.items():
        for space in ("global", "shared"):
            for used in (False, True):
                cell = "f[at[i + r]]" if space == "global" else "s[at[i + r] & 127]"
                body = f"v[1] = atomicAdd(&{cell}, v[0]);" if used else f"atomicAdd(&{cell}, v[0]);"
                if space == "shared":
                    shared, after = "__shared__ T s[128]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();", "__syncthreads(); f[i] = s[threadIdx.x];"
                else:
                    shared = after = ""
                yield (f"{name}-{space}{'-used' if used else ''}", kind,
                       KERNEL.format(live=live, body=body, shared=shared, after=after))
    for name, (kind, live, body) in CALLS.items():
        yield name, kind, KERNEL.format(live=live, body=body, shared="", after="")


def outcome(done):
    """What came of a pass, and why without places and names."""
    text = done.stderr + done.stdout
    left = re.search(r"unchanged by \S+: (.*)", text)
    open_ = re.search(r"is not proved: (.*(?:\n {2,}.*)*)|undecided: (.*)", text)
    what = "unchanged" if left else "not proved" if open_ else "proved" if done.returncode == 0 else f"exit {done.returncode}"
    why = (left or open_ or re.search(r"(.*)", text)).group(1) if what != "proved" else ""
    return what, " ".join(re.sub(r"0x[0-9a-f]+|\b\d+\b", "N", why).split())[:160]


class Counts:
    """What came of every pass."""

    def __init__(self, warpwright, folder):
        self.warpwright, self.folder = warpwright, folder
        self.counts = defaultdict(Counter)
        self.reasons = defaultdict(Counter)

    def run(self, label, gpu, job, command):
        """One command; its outcome counts."""
        try:
            what, why = outcome(subprocess.run([self.warpwright, *command], capture_output=True, text=True, timeout=SECONDS))
        except subprocess.TimeoutExpired:
            what, why = "no answer", f"after {SECONDS} seconds"
        if why:
            self.reasons[f"{job}: {what}"][why] += 1
        print(gpu, label, job, what, why, flush=True)
        self.counts[f"{gpu} {job}"][what] += 1

    def passes(self, label, gpu, cubin, jobs, options):
        """Every pass over a cubin; what `schedule` wrote stays, where it wrote anything."""
        for job in jobs:
            out = self.folder / f"{job}.cubin"
            out.unlink(missing_ok=True)
            self.run(label, gpu, job, ["pass", job, str(cubin), "--gpu", gpu, "--block", "128", "--dynamic-smem", "0",
                                       "-o", str(out), *options, *OPTIONS.get(job, [])])

    def write(self, path, **heads):
        result = {"schema": "warpwright.machine-passes/2", **heads,
                  "passes": {key: dict(value) for key, value in sorted(self.counts.items())},
                  "reasons": {key: dict(value.most_common()) for key, value in sorted(self.reasons.items())}}
        text = json.dumps(result, indent=1) + "\n"
        if path:
            path.write_text(text)
        print(text)


def names(cubin):
    """The kernels of a cubin: its symbols with the flag of an entry."""
    data = cubin.read_bytes()
    at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + size * n) for n in range(count)]
    for kind, place, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind == SYMTAB:
            for symbol in range(place, place + length, 24):
                name, _, other = struct.unpack_from("<IBB", data, symbol)
                if other & ENTRY:
                    start = sections[link][4] + name
                    yield data[start:data.index(b"\0", start)].decode()


SYMTAB, ENTRY = 2, 0x10


def foreign(options, counts):
    """Kernels that others compiled."""
    sampled = Counter()
    for folder in sorted(options.foreign.glob("sm_*")):
        gpu = folder.name
        if options.gpus and gpu not in options.gpus.split(","):
            continue
        all_ = [(cubin, name) for cubin in sorted(folder.glob("*.cubin")) for name in names(cubin)]
        for cubin, name in random.Random(f"{options.seed}/{gpu}").sample(all_, min(options.sample, len(all_))):
            sampled[gpu] += 1
            label = f"{cubin.stem} {name}"
            counts.passes(label, gpu, cubin, FOREIGN, ["--kernel", name])
            against = {"check": cubin, "check schedule": options.folder / "schedule.cubin"}
            for job, other in against.items():
                if other.exists():
                    counts.run(label, gpu, job, ["check", str(cubin), str(other), "--kernel", name, "--block", "128"])
    counts.write(options.result, cubins=str(options.foreign.name), seed=options.seed, kernels=dict(sampled))


def built(options, counts):
    """Kernels written here."""
    version = subprocess.run([options.nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    made = Counter()
    for gpu in (options.gpus or ",".join(GPUS)).split(","):
        for name, kind, text in kernels():
            if options.only not in name:
                continue
            source = options.folder / f"{name}.cu"
            source.write_text(f"{HEAD}typedef {kind} T;\n{text}")
            for limit in options.limits.split(","):
                cubin = options.folder / f"{name}.{gpu}.{limit}.cubin"
                done = subprocess.run([options.nvcc, f"-arch={gpu}", "-cubin", f"-maxrregcount={limit}", str(source), "-o", str(cubin)],
                                      capture_output=True, text=True)
                if done.returncode:
                    made[f"{gpu} not built"] += 1
                    print(gpu, name, limit, "not built:", done.stderr.strip().splitlines()[:1])
                    continue
                made[gpu] += 1
                counts.passes(f"{name} {limit}", gpu, cubin, PASSES, [])
                cubin.unlink()
    counts.write(options.result, nvcc=version.strip().splitlines()[-1], built=dict(made))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("warpwright")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--limits", default="40,64")
    parser.add_argument("--gpus", default="")
    parser.add_argument("--only", default="", help="kernels whose name has this")
    parser.add_argument("--foreign", type=Path, help="a folder of scripts/foreign-cubins.py")
    parser.add_argument("--sample", type=int, default=150, help="kernels of each architecture")
    parser.add_argument("--seed", default="1")
    parser.add_argument("-o", dest="result", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    (foreign if options.foreign else built)(options, Counts(options.warpwright, options.folder))


main()
