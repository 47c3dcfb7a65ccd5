"""The two halves of bench/control-fields.sh that edit and read JSON.

control_fields.py ways TOOLS FOLDER [WAY...]
                                           replaces the candidates in FOLDER, which `warpwright tune --build-only`
                                           made, by the default build with control fields of ours, all ways or these;
                                           TOOLS holds warpwright and warpwright-sassmine
control_fields.py table DIR OUT            what `warpwright tune --measure-only` measured of them, by kernel and way:
                                           DIR/results/SIZE/NAME.json of what is in DIR/SIZE/NAME
"""

import copy
import glob
import hashlib
import json
import math
import os
import subprocess
import sys

ORDERS = {
    "same": ["by=none", "keep=scoreboards"],
    "height": ["by=height", "waits=alone", "margin=0"],
    "place": ["by=place", "waits=alone", "margin=0"],
    "height-anew": ["by=height", "waits=alone", "margin=0", "keep=nothing"],
    **{f"varied-{seed}": ["by=height", "waits=alone", "margin=0", f"seed={seed}"] for seed in range(1, 9)},
    "search": ["search=16", "waits=alone", "margin=0"],
    "chosen": ["search=16"],
}
"""Ways of the pass `schedule`."""

DEMOTED = {
    "demote": [],
    "demote-next": [],
    "by-accesses": ["by=accesses"],
    "by-loops": ["by=loops"],
    "by-conflicts": ["by=conflicts"],
    "no-redundant": ["redundant=off"],
    "no-hoist": ["hoist=off"],
    "no-pairs": ["pairs=off"],
    "no-again": ["again=off"],
    "no-waits": ["waits=off"],
}
"""Ways of the pass `demote`, to the nearest step of the staircase (`demote-next`: to the one after it)."""

WAYS = ["nothing", "stalls", "scoreboards", "no-reuse", *ORDERS, "compact", *DEMOTED]
"""The first ones are named for what stays as ptxas wrote it, in its order. A candidate must have a recipe: way N is
called maxntid(900 + N), which no suite has."""

LIMIT = int(os.environ.get("LIMIT", "60"))
"""Seconds for one way."""


def recipe(way):
    return f"maxntid({901 + WAYS.index(way)})"


def ident(of):
    """What results call a candidate with this recipe."""
    return of.replace("(", "-").rstrip(")")


def commands(tools, way, report, blocks, cubin, output):
    """What makes a way, in the order to be tried."""
    if way not in ORDERS and way not in DEMOTED and way != "compact":
        return [[os.path.join(tools, "warpwright-sassmine"), "anew", cubin, output, "--keep", way]]

    def words(name, settings):
        block = ",".join(map(str, report["block"]))
        sets = [word for setting in settings for word in ("--set", setting)]
        return [
            os.path.join(tools, "warpwright"), "pass", name, cubin, "--kernel", report["name"], "--gpu", "h200",
            "--block", block, "--dynamic-smem", str(report["dynamic_smem"]), *sets, "--unproved", "-o", output,
        ]

    if way == "demote-next":
        return [words("demote", [f"registers=x{blocks + more}"]) for more in range(2, 7)]
    if way in DEMOTED:
        return [words("demote", ["registers=auto", *DEMOTED[way]])]
    if way == "compact":
        return [words("compact", [])]
    return [words("schedule", ORDERS[way])]


def make(tools, way, report, blocks, cubin, output):
    """Makes a way; what it said, and whether there is a file."""
    said = ""
    for command in commands(tools, way, report, blocks, cubin, output):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return f"over {LIMIT} s", False
        said = (done.stdout + done.stderr).strip()
        # Where there is nothing to gain `pass` writes what it was given.
        if done.returncode == 0 and os.path.exists(output) and not same(cubin, output):
            return said, True
    return said, False


def ways(tools, folder, wanted):
    path = os.path.join(folder, "manifest.json")
    with open(path) as file:
        manifest = json.load(file)
    report = manifest["report"]
    candidates, files = report["candidates"], manifest["files"]
    default = next(at for at, one in enumerate(candidates) if one["recipe"] == "default")
    chosen, chosen_files, digests = [candidates[default]], [files[default]], set()
    for candidate, file in zip(candidates, files, strict=True):
        # What ptxas makes by itself.
        edits = ("spill-to", "demote", "schedule")
        is_plain = not any(edit in candidate["recipe"] for edit in edits)
        if file and is_plain and candidate["recipe"].startswith(("maxnreg", "usage-level", "minnctapersm")):
            chosen.append(candidate)
            chosen_files.append(file)
    cubin = os.path.join(folder, files[default])
    blocks = candidates[default]["residency"]["blocks"]
    said = {}
    for way in wanted or WAYS:
        output = os.path.join(folder, f"{way}.cubin")
        said[way], made = make(tools, way, report, blocks, cubin, output)
        print(f"  {way}: {said[way]}")
        if not made:
            continue
        with open(output, "rb") as built:
            digest = hashlib.sha256(built.read()).digest()
        if way in DEMOTED and digest in digests:
            said[way] += "\nthe same code as another way of demotion"
            os.remove(output)
            continue
        digests.add(digest)
        candidate = copy.deepcopy(candidates[default])
        candidate["recipe"] = recipe(way)
        chosen.append(candidate)
        chosen_files.append(f"{way}.cubin")
    for name in set(files) - set(chosen_files):
        if name and os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    report["candidates"], manifest["files"] = chosen, chosen_files
    report["recipe_text"], report["chosen"] = "default", 0
    with open(path, "w") as file:
        json.dump(manifest, file)
    with open(os.path.join(folder, "ways.json"), "w") as file:
        json.dump(said, file, indent=1)


def same(one, other):
    with open(one, "rb") as first, open(other, "rb") as second:
        return first.read() == second.read()


def kernels(paths):
    document, found = {}, {}
    for path in paths:
        with open(path) as file:
            document = json.load(file)
        for kernel in document["kernels"]:
            measurements = kernel["measurements"]
            found[measurements["kernel"]] = {one["id"]: one for one in measurements["variants"]}
    return document, found


def verdict(variant):
    if variant is None:
        return "not measured"
    return variant["verdict"] if isinstance(variant["verdict"], str) else next(iter(variant["verdict"]))


def table(folder, out):
    results = os.path.join(folder, "results")
    (_, at_small), (document, at_full) = (
        kernels(sorted(glob.glob(os.path.join(results, size, "*.json")))) for size in ("small", "full")
    )
    result = {
        "schema": "warpwright.control-fields/4",
        "about": "ptxas's own code with control fields of ours; a way is named for what stays, or by what the order is",
        "measured": {key: value for key, value in document.items() if key not in ("kernels", "failures")},
        "kernels": {},
    }
    made = {ident(recipe(way)) for way in WAYS}
    said = {}
    for path in glob.glob(os.path.join(results, "full", "*.json")):
        ways_file = os.path.join(folder, "full", os.path.basename(path).removesuffix(".json"), "ways.json")
        document, measured = kernels([path])
        if os.path.exists(ways_file):
            said |= dict.fromkeys(measured, ways_file)
        for kernel in document["kernels"]:
            environment = kernel["measurements"]["environment"]
            device = environment["device"]
            result["measured"] |= {"gpu": device["name"], "driver": device["driver"], "date": environment["date"]}
    for name, variants in at_full.items():
        row = {}
        for way in WAYS:
            own = ident(recipe(way))
            if own not in variants:
                continue
            ratio = variants[own].get("ratio") or {}
            row[way] = {
                "small": verdict(at_small.get(name, {}).get(own)),
                "full": verdict(variants[own]),
                "ratio": ratio.get("median"),
            }
        others = {
            other: variant["ratio"]["median"] for other, variant in variants.items()
            if other not in made and other != "default" and verdict(variant) == "identical" and variant.get("ratio")
        }
        row["ptxas"] = dict(sorted(others.items(), key=lambda one: one[1]))
        if name in said:
            with open(said[name]) as file:
                row["said"] = json.load(file)
        result["kernels"][name] = row
    for way in WAYS:
        rows = [row[way] for row in result["kernels"].values() if way in row]
        right = [row for row in rows if row["small"] == row["full"] == "identical"]
        ratios = [row["ratio"] for row in right if row["ratio"]]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
        if rows:
            print(f"{way}: {len(right)} of {len(rows)} right, {mean:.4f} of ptxas's time")
    with open(out, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "ways":
        ways(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif len(sys.argv) == 4 and sys.argv[1] == "table":
        table(*sys.argv[2:])
    else:
        sys.exit(__doc__)
