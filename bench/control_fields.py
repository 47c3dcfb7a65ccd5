"""The two halves of bench/control-fields.sh that edit and read JSON.

control_fields.py ways SASSMINE FOLDER     replaces the candidates in FOLDER, which `warpwright tune --build-only`
                                           made, by the default build with control fields of ours
control_fields.py table SMALL FULL OUT     what `warpwright tune --measure-only` measured of them, by kernel and way
"""

import copy
import json
import math
import os
import subprocess
import sys

WAYS = ["nothing", "stalls", "scoreboards", "no-reuse"]
"""What stays as ptxas wrote it. A candidate must have a recipe: way N is called maxntid(1000 + N), which no suite has."""


def recipe(way):
    return f"maxntid({1001 + WAYS.index(way)})"


def ways(sassmine, folder):
    path = os.path.join(folder, "manifest.json")
    with open(path) as file:
        manifest = json.load(file)
    candidates = manifest["report"]["candidates"]
    files = manifest["files"]
    default = next(at for at, one in enumerate(candidates) if one["recipe"] == "default")
    chosen, chosen_files = [candidates[default]], [files[default]]
    for way in WAYS:
        name = f"{way}.cubin"
        done = subprocess.run(
            [sassmine, "anew", os.path.join(folder, files[default]), os.path.join(folder, name), "--keep", way],
            capture_output=True, text=True, check=False,
        )
        print(f"  {way}: {(done.stdout + done.stderr).strip()}")
        if done.returncode == 0:
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
        "schema": "warpwright.control-fields/2",
        "about": "ptxas's own code with control fields of ours; each way is named for what stays as ptxas wrote it",
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
        print(f"{way}: {len(right)} of {len(rows)} right, {mean:.4f} of ptxas's time")
    with open(out, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "ways":
        ways(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 5 and sys.argv[1] == "table":
        table(*sys.argv[2:])
    else:
        sys.exit(__doc__)
