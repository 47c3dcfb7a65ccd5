#!/usr/bin/env python3
"""Variants of naive kernels, one step of the compiler after the other, for bench/naive.py to time.

    bench/naive_steps.py --out DIR [--tool target/debug/examples/naive]
    bench/naive_steps.py --table RESULT.json

The first writes DIR/KERNEL/VARIANT.cu (`cargo build -p warpwright-naivegen --examples` makes the tool); the second prints
tables of what bench/naive.py measured with `--candidates DIR`: the steps of Fig. 12 of Yang et al. (PLDI 2010), the map of
merge degrees of Fig. 10, vectorization of Fig. 14, partition camping of Figs. 15 and 16.
"""
import argparse, json, math, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "examples", "naive")
# Steps on top of each other: loads through shared memory with a warp for a block, blocks merged, threads merged, fragments
# and copies of 16 bytes, copies ahead.
STEPS = ["1 coalesced", "2 blocks merged", "3 threads merged", "4 runs of 16 bytes", "5 copies ahead"]
TWO = ["threads=32x1 stage=32x1", "threads=32x8 stage=32x1", "threads=16x16 points=8x8 lanes=8 stage=32x4",
       "threads=16x16 points=8x8 run={run} lanes=8 stage=32x4", "threads=16x16 points=8x8 run={run} lanes=8 stage=32x4 buffers=2"]
ONE = ["threads=32 stage=32x1", "threads=128 stage=32x1", "threads=128 points={p} stage=32x4",
       "threads=128 points={p} run={run} stage=32x4", "threads=128 points={p} run={run} stage=32x4 buffers=3"]
FILTER = ["threads=32x1 stage=4x1", "threads=32x8 stage=4x1", "threads=16x8 points=8x4 stage=8x16", "threads=16x8 points=8x4 run=4x1 stage=8x16 fixed",
          "threads=16x8 points=8x4 run=4x1 stage=8x16 buffers=2 fixed"]
KERNELS = {"mm": (TWO, {"run": "4x1"}), "bmm": (TWO, {"run": "4x1"}), "mm_tn": (TWO, {"run": "4x4"}), "linear": (TWO, {"run": "1x1"}),
           "distances": (TWO, {"run": "1x1"}), "shortest_paths": (TWO, {"run": "4x1"}), "mv": (ONE, {"p": 1, "run": 1}),
           "tmv": (ONE, {"p": 1, "run": 1}), "nbody": (ONE, {"p": 1, "run": 1}), "fir": (ONE, {"p": 16, "run": 4}), "conv": (FILTER, {})}


def tool(args, kernel, words):
    done = subprocess.run([args.tool, os.path.join(EXAMPLES, kernel + ".cu"), *words.split()], capture_output=True, text=True)
    if done.returncode:
        print(f"{kernel} {words}: {done.stderr.strip()[:100]}", file=sys.stderr)
        return None
    return done.stdout


def write(args, kernel, variant, text):
    if text:
        os.makedirs(os.path.join(args.out, kernel), exist_ok=True)
        with open(os.path.join(args.out, kernel, variant.replace(" ", "_") + ".cu"), "w") as f:
            f.write(text)


def generate(args):
    for kernel, (steps, values) in KERNELS.items():
        before = None
        for title, words in zip(STEPS, steps):
            words = words.format(**values)
            # A step that changes nothing for a kernel is left out.
            if words != before:
                write(args, kernel, title, tool(args, kernel, words))
            before = words
    for x in [1, 2, 4, 8]:
        for y in [1, 2, 4, 8, 16]:
            words = f"threads=16x16 points={x}x{y} run={min(x, 4)}x1 lanes=8 stage=16x4"
            write(args, "mm", f"map x{x} y{y}", tool(args, "mm", words))
    gallery = lambda kernel: open(os.path.join(HERE, "..", "docs", "gallery", kernel, "opt.cu")).read()
    for kernel in ["rd_complex", "rd", "mv", "tmv", "gelu", "grey"]:
        text = gallery(kernel)
        # Kernels with vectors ask for aligned arrays: without them nothing is wide.
        scalar = re.sub(r"\(size_t\)\w+ % 16 == 0", "false", text)
        if scalar != text:
            write(args, kernel, "vectors", text)
            write(args, kernel, "no vectors", scalar)
    text = gallery("tp")
    write(args, "tp", "as launched", text)
    # Section 3.7: blocks of a diagonal are next to each other.
    write(args, "tp", "diagonal", text.replace("const int corner_x = blockIdx.x *", "const int corner_x = ((blockIdx.x + blockIdx.y) % gridDim.x) *"))
    text = gallery("mv")
    write(args, "mv", "as launched", text)
    # Section 3.7: each block begins at another place of its row.
    for name in sorted(set(re.findall(r"for \(int (\w+_first) =", text))):
        text = re.sub(rf"&(\w+)\[((?:n \* idx \+ )?){name}((?: \+ n \* idx)?)\]", rf"&\1[\2({name} + 64 * (int)blockIdx.x) % n\3]", text)
    write(args, "mv", "offset", text)


def tables(path):
    with open(path) as f:
        result = json.load(f)
    times = {e["kernel"]: {v["version"]: v for v in e.get("versions", []) if "ms" in v} for e in result["kernels"]}
    wrong = [f"{k}: {v}" for k, all in times.items() for v, of in all.items() if of.get("check", {}).get("of_largest", 0) > 1e-3]
    print(f"{result['gpu']}, {result['date']}; wrong results: {', '.join(wrong) or 'none'}.\n")
    print("Times as fast as written, step by step (Fig. 12):\n")
    print("| kernel | as written, ms | " + " | ".join(STEPS) + " |\n|---|--:|" + "--:|" * len(STEPS))
    means = [[] for _ in STEPS]
    for kernel in KERNELS:
        of, last, row = times.get(kernel, {}), 1.0, []
        if "naive" not in of:
            continue
        for n, step in enumerate(STEPS):
            found = of.get(step.replace(" ", "_"))
            last = of["naive"]["ms"] / found["ms"] if found else last
            means[n].append(last)
            row.append(f"{last:.2f}" if found else "–")
        print(f"| {kernel} | {of['naive']['ms']:.4g} | " + " | ".join(row) + " |")
    if all(means):
        print("| geometric mean | | " + " | ".join(f"{math.exp(sum(map(math.log, m)) / len(m)):.2f}" for m in means) + " |")
    mm = times.get("mm", {})
    print("\nMilliseconds of mm by points of a thread along x and y, 16 x 16 threads (Fig. 10):\n")
    print("| | " + " | ".join(f"y {y}" for y in [1, 2, 4, 8, 16]) + " |\n|---|" + "--:|" * 5)
    for x in [1, 2, 4, 8]:
        cells = [mm.get(f"map_x{x}_y{y}") for y in [1, 2, 4, 8, 16]]
        print(f"| x {x} | " + " | ".join(f"{c['ms']:.4g}" if c else "–" for c in cells) + " |")
    for title, a, b in [("With and without accesses of 16 bytes (Fig. 14)", "vectors", "no_vectors"),
                        ("With and without the remedies against partition camping (Figs. 15 and 16)", "as_launched", None)]:
        print(f"\n{title}, milliseconds:\n\n| kernel | {a.replace('_', ' ')} | {(b or 'diagonal or offset').replace('_', ' ')} | ratio |\n|---|--:|--:|--:|")
        for kernel, of in times.items():
            other = of.get(b) if b else of.get("diagonal") or of.get("offset")
            if of.get(a) and other:
                print(f"| {kernel} | {of[a]['ms']:.4g} | {other['ms']:.4g} | {other['ms'] / of[a]['ms']:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="")
    parser.add_argument("--tool", default=os.path.join(HERE, "..", "target", "debug", "examples", "naive"))
    parser.add_argument("--table", default="")
    args = parser.parse_args()
    if args.table:
        tables(args.table)
    elif args.out:
        generate(args)
    else:
        parser.error("--out or --table is wanted")


if __name__ == "__main__":
    main()
