#!/usr/bin/env python3
"""From the measurements of run.sh to a result file and the table of bench/results/stencils.md.

usage: results.py collect RESULTS.jsonl GPU DRIVER NVCC DATE > bench/results/NAME.json
       results.py table bench/results/NAME.json
"""
import json
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
ORDER = ["2d25pt", "2d64pt", "2d81pt", "3d27pt", "3d125pt", "hypterm", "rhs4th3fort", "derivative"]


def collect(path, gpu, driver, nvcc, date):
    rows = [json.loads(line) for line in open(path) if line.strip()]
    rows.sort(key=lambda r: (ORDER.index(r["stencil"]), r["variant"]))
    head = {"schema": "warpwright.stencils/1", "gpu": gpu, "driver": driver, "nvcc": nvcc, "date": date}
    lines = ",\n  ".join(json.dumps(r) for r in rows)
    print(json.dumps(head)[:-1] + ', "variants": [\n  ' + lines + "\n]}")


def table(path):
    data = json.load(open(path))
    rows = [
        f"{data['gpu']}, driver {data['driver']}, nvcc {data['nvcc']}, {data['date']}; milliseconds a "
        f"sweep, median of ten. All {len(data['variants'])} variants agree with the input as written "
        f"within {max(r['err'] for r in data['variants']):.1e} of the largest value.",
        "",
        "| stencil | as written | one point a thread | unrolled, not scheduled | scheduled | variant | registers | split |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ORDER:
        found = [r for r in data["variants"] if r["stencil"] == name]

        def best(pattern):
            fit = [r for r in found if re.match(pattern, r["variant"])]
            return min(fit, key=lambda r: r["ms"], default=None)

        def cell(row):
            return f"{row['ms']:.3f}" if row else "–"

        scheduled = best("r_")
        split = best("s[0-9]")
        rows.append(
            f"| {name} | {cell(best('ref'))} | {cell(best('plain'))} | {cell(best('w_'))} | "
            f"**{cell(scheduled)}** | {scheduled['variant']} | {scheduled['regs']} | "
            f"{cell(split)}{' (' + split['variant'] + ')' if split else ''} |"
        )
    doc = os.path.join(ROOT, "bench/results/stencils.md")
    text = open(doc).read()
    begin, end = "<!-- times: begin -->\n", "<!-- times: end -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    open(doc, "w").write(before + begin + "\n".join(rows) + "\n" + end + after)


if __name__ == "__main__":
    {"collect": collect, "table": table}[sys.argv[1]](*sys.argv[2:])
