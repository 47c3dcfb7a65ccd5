#!/usr/bin/env python3
"""Kernels under register pressure with what is everyday in others' code: atomics of floating-point numbers (results used and
not, global and shared memory), and calls of ptxas's own helpers, whose return addresses wait in spill slots (quotients,
roots, remainders). Built for every architecture, then every pass on machine code over each.

    scripts/machine-passes.py DIR WARPWRIGHT [--limits 40,64] [--gpus sm_80,sm_90] [-o RESULT.json]

What a pass writes was proved and has no hazard, or it is refused by name; RESULT counts both, and the reasons."""

import argparse
import json
import os
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

GPUS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"]
PASSES = ["spill-to-shared", "demote", "compact", "schedule", "dead-instructions"]

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
    open_ = re.search(r"is not proved: (.*(?:\n {2,}.*)*)", text)
    what = "unchanged" if left else "not proved" if open_ else "proved" if done.returncode == 0 else f"exit {done.returncode}"
    why = (left or open_ or re.search(r"(.*)", text)).group(1) if what != "proved" else ""
    return what, " ".join(re.sub(r"0x[0-9a-f]+|\b\d+\b", "N", why).split())[:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("warpwright")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--limits", default="40,64")
    parser.add_argument("--gpus", default=",".join(GPUS))
    parser.add_argument("--only", default="", help="kernels whose name has this")
    parser.add_argument("-o", dest="result", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([options.nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    counts = defaultdict(Counter)
    reasons = defaultdict(Counter)
    built = Counter()
    for gpu in options.gpus.split(","):
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
                    built[f"{gpu} not built"] += 1
                    print(gpu, name, limit, "not built:", done.stderr.strip().splitlines()[:1])
                    continue
                built[gpu] += 1
                for job in PASSES:
                    out = options.folder / "out.cubin"
                    command = [options.warpwright, "pass", job, str(cubin), "--gpu", gpu, "--block", "128", "--dynamic-smem", "0", "-o", str(out)]
                    if job == "demote":
                        command += ["--set", "registers=auto"]
                    done = subprocess.run(command, capture_output=True, text=True)
                    what, why = outcome(done)
                    if why:
                        reasons[f"{job}: {what}"][why] += 1
                    print(gpu, name, limit, job, what, why, flush=True)
                    counts[f"{gpu} {job}"][what] += 1
                    out.unlink(missing_ok=True)
                cubin.unlink()
    result = {"schema": "warpwright.machine-passes/1", "nvcc": version.strip().splitlines()[-1], "built": dict(built),
              "passes": {key: dict(value) for key, value in sorted(counts.items())},
              "reasons": {key: dict(value.most_common()) for key, value in sorted(reasons.items())}}
    text = json.dumps(result, indent=1) + "\n"
    if options.result:
        options.result.write_text(text)
    print(text)


main()
