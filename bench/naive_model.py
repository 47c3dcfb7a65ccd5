#!/usr/bin/env python3
"""The model of naive kernels against what was measured: rank correlation and regret.

    bench/naive_model.py [--tool target/release/examples/naive] [--list KERNEL]

Reads the measured variants of bench/results whose names say their choices and predicts each with the present model
(`cargo build --release -p warpwright-naivegen --examples` makes the tool). For each kernel of each run it prints the rank
correlation (Spearman) of predicted and measured times, and the regret: the time of the variant that the model puts first
over that of the fastest. The constants of the model were chosen by looking at these numbers: nothing here is held out.
Variants that no longer mean the same code are left out: those of the first run of the tiles, whose copies computed each
address anew, turned operands before they were copied without bank conflicts, and teams of columns before they read four
at a time.
"""
import argparse, json, math, os, re, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "examples", "naive")
RESULTS = os.path.join(HERE, "results")


def tiles(words):
    """`threads=16x16 points=8x8 run=4x4 lanes=8 stage=16x4 buffers=2 turn …` as a pass."""
    of = dict(w.split("=") if "=" in w else (w, "") for w in words.split())
    pair = lambda name: of[name] if "x" in of[name] else of[name] + "x1"
    out = [pair("threads")]
    out += [f"{name}={pair(name)}" for name in ("points", "run") if name in of]
    out += [f"lanes={of['lanes']}"] if "lanes" in of else []
    if "stage" in of:
        out.append(f"stage={of['stage']}" + (f"x{of['buffers']}" if of.get("buffers", "1") != "1" else "")
                   + ("-turned" if "turn" in of else ""))
    out += [f"{name}={of[name]}" for name in ("order", "resident") if name in of]
    return f"tiles({', '.join(out + (['specialise=yes'] if 'fixed' in of else []))})"


def named(name, kernel):
    """What a version's name means; none where it is not a choice."""
    def team(threads, points, unroll, blocks=0, more=""):
        return f"team({threads}, {points}, unroll={unroll}" + (f", blocks={blocks}" if blocks else "") + more + ")"
    if name.startswith("team_column"):
        return None
    if m := re.fullmatch(r"team_(block|warp)(\d+)u(\d+)b(\d+)", name):
        threads = int(m[2])
        points = {"block": 1, "warp": threads // 32}[m[1]]
        return team(threads, points, int(m[3]), int(m[4]))
    if m := re.fullmatch(r"across(\d+)r(\d+)", name):
        return f"across({m[1]}, {m[2]})"
    if m := re.fullmatch(r"fours(\d+)r(\d+)", name):
        return f"fours({m[1]}, {m[2]})"
    if m := re.fullmatch(r"prefix(\d+)p(\d+)", name):
        return f"prefix({m[1]}, {m[2]})"
    if m := re.fullmatch(r"merged(\d+)x(\d+)p(\d+)x(\d+)", name):
        return f"tiles({m[1]}x{m[2]}, points={m[3]}x{m[4]}, run={m[3]}x{m[4]})"
    if m := re.fullmatch(r"totals(\d+)p(\d+)", name):
        return f"totals({m[1]}, {m[2]})"
    # The variants of 2026-11-23: THREADS-UNROLL-BLOCKS, `a`: sums apart, `rN`: room for N blocks, `late`.
    if m := re.fullmatch(r"(\d+)-(\d+)-(\d+)(?:-(a?)(?:r(\d+))?(late)?)?", name):
        if kernel in ("rd", "rd_complex"):
            more = ", apart=yes" if m[4] else ""
            more += ", early=no" if m[6] else ""
            more += f", resident={m[5]}" if m[5] else ""
            return team(m[1], 1, m[2], m[3], more)
    if m := re.fullmatch(r"(\d+)-(\d+)", name):
        if kernel == "rd_atomic":
            return f"totals({m[1]}, {m[2]})"
    return TILES.get((kernel, name)) or TILES.get(("", name))


# Tiles of 2026-11-23: the build of each has the registers that the file says.
LARGE, SMALL = "tiles({}, points={}, run=4x4, lanes={}, stage={})".format, "tiles({}, points=8x8, run=4x4, lanes=8, stage={})".format
TILES = {("", f"turn-{name}"): LARGE(*of) for name, of in {
    "128x128-2": ("16x8", "8x16", 8, "32x4x2-turned"), "128x128-3": ("16x8", "8x16", 8, "32x4x3-turned"),
    "128x128-16-3": ("16x8", "8x16", 8, "16x4x3-turned"), "256x128-2": ("32x8", "8x16", 8, "32x4x2-turned"),
    "256x128-3": ("32x8", "8x16", 8, "32x4x3-turned"), "256x128-16-4": ("32x8", "8x16", 8, "16x4x4-turned"),
    "256x128-16lanes-3": ("32x8", "8x16", 16, "32x4x3-turned"), "256x128-4lanes-3": ("32x8", "8x16", 4, "32x4x3-turned"),
    "128x256-3": ("16x16", "8x16", 8, "32x4x3-turned"), "256x128y8-3": ("16x16", "16x8", 8, "32x4x3-turned")}.items()}
TILES |= {("", "turn-8x8-2"): SMALL("16x16", "32x4x2-turned"), ("syrk", "64x128-16-5"): SMALL("8x16", "16x4x5"),
          ("syrk", "64x128-32-4"): SMALL("8x16", "32x4x4"), ("syrk", "64x64-32-4"): SMALL("8x8", "32x4x4"),
          ("mm", "256x128-u2-3"): "tiles(32x8, points=8x16, run=4x1, lanes=8, stage=32x2x3)",
          ("mm", "turn-256x128-3-order8"): "tiles(32x8, points=8x16, run=4x4, lanes=8, stage=32x4x3-turned, order=8)",
          ("rd", "now"): "team(256, 1, unroll=8, blocks=1056)", ("rd_complex", "now"): "team(256, 1, unroll=8, blocks=1056)",
          ("rd_atomic", "now"): "totals(512, 8)", ("syrk", "now"): "tiles(16x16, points=4x8, run=4x4, lanes=8, stage=32x4x3)",
          ("attention_scores", "now"): "tiles(32x8, points=8x16, lanes=8, stage=32x4x2)",
          ("linear", "now"): "tiles(32x8, points=8x16, lanes=8, stage=32x4x3)"}
TILES |= {(kernel, "now"): "tiles(32x8, points=8x16, run=4x1, lanes=8, stage=32x4x3)" for kernel in ("mm", "bmm", "mm_strided")}


def measured():
    """(run, kernel, {pass: ms})"""
    with open(os.path.join(RESULTS, "h200-2026-11-22-naive-tiles.json")) as f:
        for run in json.load(f)["runs"]:
            found = {}
            for r in run["results"]:
                old = run["run"] == 1 or " turn" in r["what"]
                if "=" in r["what"] and "ms" in r and not old:
                    found.setdefault(r["kernel"], {})[tiles(r["what"])] = r["ms"]
            for kernel, all in found.items():
                yield f"tiles, run {run['run']}", kernel, all
    for name in ("h200-2026-11-22-naive.json", "h200-2026-11-23-naive-variants.json"):
        with open(os.path.join(RESULTS, name)) as f:
            for entry in json.load(f)["kernels"]:
                found = {}
                for v in entry.get("versions", []):
                    way = named(v["version"], entry["kernel"])
                    if way and "ms" in v:
                        found[way] = v["ms"]
                if len(found) > 1:
                    yield name.removeprefix("h200-").removesuffix(".json"), entry["kernel"], found


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        same = [i for i in order[at:] if values[i] == values[order[at]]]
        for i in same:
            out[i] = at + (len(same) - 1) / 2
        at += len(same)
    return out


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    cov = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    var = math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    return cov / var if var else 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default=os.path.join(HERE, "..", "target", "release", "examples", "naive"))
    parser.add_argument("--list", default="")
    args = parser.parse_args()
    print("| run | kernel | variants | rank correlation | regret |\n|---|---|--:|--:|--:|")
    correlations, regrets, lost = [], [], 0
    for run, kernel, found in measured():
        ways = list(found)
        done = subprocess.run([args.tool, os.path.join(EXAMPLES, kernel + ".cu"), "predict"], input="\n".join(ways), text=True, capture_output=True)
        if done.returncode:
            print(kernel, done.stderr)
            continue
        lines = done.stdout.splitlines()
        lost += sum(line == "-" for line in lines)
        pairs = [(float(line.split()[0]), found[way], way, line) for line, way in zip(lines, ways) if line != "-"]
        if args.list == kernel:
            print("\n".join(f"{line} -" for line in ways if lines[ways.index(line)] == "-"))
            for predicted, ms, way, line in sorted(pairs, key=lambda p: p[1]):
                print(f"   {ms:.5f} {predicted:.5f} {ms / predicted:.3f} {way} {line.split()[1]}")
        if len(pairs) < 2:
            continue
        predicted, ms = [p[0] for p in pairs], [p[1] for p in pairs]
        # Of equal predictions the middle one counts.
        firsts = [m for p, m in zip(predicted, ms) if p == min(predicted)]
        regret = math.exp(sum(map(math.log, firsts)) / len(firsts)) / min(ms)
        correlation = spearman(predicted, ms)
        correlations.append((correlation, len(pairs)))
        regrets.append(regret)
        print(f"| {run} | {kernel} | {len(pairs)} | {correlation:.2f} | {regret:.3f} |")
    weight = sum(n for _, n in correlations)
    mean = sum(c for c, _ in correlations) / len(correlations)
    heavy = sum(c * n for c, n in correlations) / weight
    print(f"\n{len(regrets)} groups, {weight} variants ({lost} not predicted): mean rank correlation {mean:.3f} ({heavy:.3f} by variants), "
          f"regret {math.exp(sum(map(math.log, regrets)) / len(regrets)):.4f} (geometric mean), largest {max(regrets):.3f}")


if __name__ == "__main__":
    main()
