"""The two halves of bench/control-fields.sh that edit and read JSON.

control_fields.py ways TOOLS FOLDER [WAY...]
                                           replaces the candidates in FOLDER, which `warpwright tune --build-only`
                                           made, by the default build with control fields of ours, all ways or these;
                                           TOOLS holds warpwright and warpwright-sassmine
control_fields.py table SMALL FULL OUT     what `warpwright tune --measure-only` measured of them, by kernel and way
"""

import copy
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
}
"""Ways of the pass `schedule`."""

WAYS = ["nothing", "stalls", "scoreboards", "no-reuse", *ORDERS]
"""The first ones are named for what stays as ptxas wrote it, in its order. A candidate must have a recipe: way N is
called maxntid(1000 + N), which no suite has."""


def recipe(way):
    return f"maxntid({1001 + WAYS.index(way)})"


def command(tools, way, report, cubin, output):
    if way not in ORDERS:
        return [os.path.join(tools, "warpwright-sassmine"), "anew", cubin, output, "--keep", way]
    sets = [word for setting in ORDERS[way] for word in ("--set", setting)]
    return [
        os.path.join(tools, "warpwright"), "pass", "schedule", cubin, "--kernel", report["name"], "--gpu", "h200",
        *sets, "--unproved", "-o", output,
    ]


def ways(tools, folder, wanted):
    path = os.path.join(folder, "manifest.json")
    with open(path) as file:
        manifest = json.load(file)
    candidates = manifest["report"]["candidates"]
    files = manifest["files"]
    default = next(at for at, one in enumerate(candidates) if one["recipe"] == "default")
    chosen, chosen_files = [candidates[default]], [files[default]]
    for way in wanted or WAYS:
        name = f"{way}.cubin"
        cubin, output = os.path.join(folder, files[default]), os.path.join(folder, name)
        done = subprocess.run(
            command(tools, way, manifest["report"], cubin, output), capture_output=True, text=True, check=False,
        )
        print(f"  {way}: {(done.stdout + done.stderr).strip()}")
        # Where there is nothing to gain `pass` writes what it was given.
        if done.returncode == 0 and os.path.exists(output) and not same(cubin, output):
            candidate = copy.deepcopy(candidates[default])
            candidate["recipe"] = recipe(way)
            chosen.append(candidate)
            chosen_files.append(name)
    for name in set(files) - set(chosen_files):
        if name and os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    manifest["report"]["candidates"], manifest["files"] = chosen, chosen_files
    manifest["report"]["recipe_text"] = "default"
    with open(path, "w") as file:
        json.dump(manifest, file)


def same(one, other):
    with open(one, "rb") as first, open(other, "rb") as second:
        return first.read() == second.read()


def kernels(path):
    with open(path) as file:
        document = json.load(file)
    found = {}
    for kernel in document["kernels"]:
        measurements = kernel["measurements"]
        found[measurements["kernel"]] = {one["id"]: one for one in measurements["variants"]}
    return document, found


def verdict(variant):
    if variant is None:
        return "not measured"
    return variant["verdict"] if isinstance(variant["verdict"], str) else next(iter(variant["verdict"]))


def table(small, full, out):
    _, at_small = kernels(small)
    document, at_full = kernels(full)
    result = {
        "schema": "warpwright.control-fields/3",
        "about": "ptxas's own code with control fields of ours; a way is named for what stays, or by what the order is",
        "measured": {key: value for key, value in document.items() if key not in ("kernels", "failures")},
        "kernels": {},
    }
    for name, variants in at_full.items():
        row = {}
        for way in WAYS:
            ident = recipe(way).replace("(", "-").rstrip(")")
            if ident not in variants:
                continue
            ratio = variants[ident].get("ratio") or {}
            row[way] = {
                "small": verdict(at_small.get(name, {}).get(ident)),
                "full": verdict(variants[ident]),
                "ratio": ratio.get("median"),
            }
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
    elif len(sys.argv) == 5 and sys.argv[1] == "table":
        table(*sys.argv[2:])
    else:
        sys.exit(__doc__)
