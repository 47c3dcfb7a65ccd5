#!/usr/bin/env python3
"""Takes a build apart that computes something wrong on a device: which control fields must be stricter, and where.

    bench/apart.py make TOOLS FOLDER WAY OUT   variants of FOLDER/WAY.cubin into OUT, as candidates; FOLDER is one that
                                               bench/control-fields.sh or `warpwright tune --build-only` made,
                                               TOOLS holds warpwright-sassmine
    warpwright tune --measure-only OUT --exhaustive --budget 0.05 --fresh --output RESULT.json      on the device
    bench/apart.py read OUT RESULT.json        what is right: `.`, wrong: `W`, fails: `F`

Of the rows, `up to` has the code strict from its beginning up to a place, `from` from a place to its end.
"""

import copy
import json
import os
import shutil
import subprocess
import sys

import control_fields

WHOLE = {
    "as it is": None,
    "waits": "waits",
    "stalls": "stalls",
    "scoreboards": "scoreboards",
    "scoreboards, waits": "scoreboards,waits",
    "no reuse": "no-reuse",
    "all": "waits,stalls,scoreboards,no-reuse",
    "as it is, again": None,
}
PLACES = 20
ALL = WHOLE["all"]


def variants():
    """Title, row, what is strict, from, to."""
    for title, strict in WHOLE.items():
        yield title, "", strict, 0.0, 1.0
    for place in range(1, PLACES):
        yield f"up to {place / PLACES:.2f}", "up to", ALL, 0.0, place / PLACES
    for place in range(1, PLACES):
        yield f"from {place / PLACES:.2f}", "from", ALL, place / PLACES, 1.0


def recipe(number):
    """A candidate must have a recipe; no suite has blocks of so many threads."""
    return f"maxntid({2001 + number})"


def make(tools, folder, way, out):
    with open(os.path.join(folder, "manifest.json")) as file:
        manifest = json.load(file)
    report = manifest["report"]
    default = next(at for at, one in enumerate(report["candidates"]) if one["recipe"] == "default")
    first, code = report["candidates"][default], manifest["files"][default]
    os.makedirs(out, exist_ok=True)
    shutil.copy(os.path.join(folder, code), os.path.join(out, code))
    candidates, files = [first], [code]
    wrong = os.path.join(folder, f"{way}.cubin")
    for number, (_, _, strict, begin, end) in enumerate(variants()):
        name = f"part-{number}.cubin"
        path = os.path.join(out, name)
        if strict is None:
            shutil.copy(wrong, path)
        else:
            tool = os.path.join(tools, "warpwright-sassmine")
            words = [tool, "apart", wrong, path, "--with", strict, "--from", str(begin), "--to", str(end)]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        candidate = copy.deepcopy(first)
        candidate["recipe"] = recipe(number)
        candidates.append(candidate)
        files.append(name)
    report["candidates"], report["chosen"], report["recipe_text"] = candidates, 0, "default"
    manifest["files"] = files
    with open(os.path.join(out, "manifest.json"), "w") as file:
        json.dump(manifest, file)


def read(_, result):
    _, measured = control_fields.kernels([result])
    (variants_of,) = measured.values()
    marks = {"identical": ".", "wrong": "W", "failed": "F"}
    found = {name: control_fields.verdict(one) for name, one in variants_of.items()}
    rows = {"up to": "", "from": ""}
    for number, (title, row, *_) in enumerate(variants()):
        verdict = found.get(control_fields.ident(recipe(number)), "?")
        mark = marks.get(verdict, verdict)
        if row:
            rows[row] += mark
        else:
            print(f"{title:20} {mark}")
    for row, marks_of in rows.items():
        print(f"{row:20} {marks_of}")


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] == "make":
        make(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "read":
        read(*sys.argv[2:])
    else:
        sys.exit(__doc__)
