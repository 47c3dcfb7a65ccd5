#!/usr/bin/env python3
"""How many kernels does another order of their machine code bring to the next stair, and how many values does it spare demotion?
Builds alone: nothing runs, no GPU is needed.

    bench/order.py OUT [--tool DIR] [--first N] [--per-family N] [--foreign DIR]... [--jobs N] [--seconds S]

The kernels are those of bench/again.py. Each that does not spill and that registers limit goes to its next stair on an H200 by
`compact`, by `schedule(registers=N)`, by `demote(again=all)`, and by that behind `schedule(registers=N, miss=near)`. A result
counts if `warpwright pass` proves it and finds no hazard."""
import collections
import re
import tempfile
import time
from pathlib import Path

import again

LEFT = re.compile(r"(\d+) instead of (\d+) registers(?:: (\d+) blocks? in another order, (\d+) instructions? moved; a warp alone takes ([\d.]+))?")
NEEDS = re.compile(r"it needs (\d+) registers in the best order")


def lowered(options, words, cubin, kernel, made):
    """What a pass that moves no value comes to; a text says why nothing does."""
    done = again.said([options.tool / "warpwright", "pass", *words, cubin, "--kernel", kernel, "--gpu", "h200", "-o", made],
                      options.longest)
    if done is None:
        return "takes too long"
    text = done.stdout + done.stderr
    note = LEFT.search(text)
    if done.returncode or not note or not made.exists():
        return re.sub(r"^.*?(unchanged|not proved)", r"\1", text.strip(), flags=re.S)[:160]
    found = dict(registers=int(note[1]))
    if note[3]:
        found |= dict(blocks=int(note[3]), moved=int(note[4]), alone=float(note[5]))
    return found


def row_of(options, name, cubin, function, threads, registers, goal, folder):
    folder = Path(folder)
    schedule = ["schedule", "--set", f"registers={goal}"]
    compact = lowered(options, ["compact", "--set", f"registers={goal}"], cubin, function, folder / "compact.cubin")
    order = lowered(options, schedule, cubin, function, folder / "order.cubin")
    row = dict(kernel=name, function=function, threads=threads, registers=registers, stair=goal, compact=compact, order=order)
    if isinstance(order, dict):
        return row
    row["demote"] = again.demoted(options, cubin, function, threads, goal, "all", folder)
    near = folder / "near.cubin"
    row["near"] = lowered(options, [*schedule, "--set", "miss=near"], cubin, function, near)
    if isinstance(row["near"], dict):
        row["near_demote"] = again.demoted(options, near, function, threads, goal, "all", folder)
    return row


def one(options, job, deadline):
    name, source, threads, include = job
    if time.time() > deadline:
        return [dict(kernel=name, why="no time was left")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for function, registers, stack, shared, local in again.built(options, name, source, include, folder, rows):
            goals = again.stairs(options, registers, threads, shared)
            if stack or local:
                rows.append(dict(kernel=name, why="spills or has a frame"))
            elif not goals:
                rows.append(dict(kernel=name, why="registers do not limit it"))
            else:
                rows.append(row_of(options, name, Path(folder) / "k.cubin", function, threads, registers, goals[0], folder))
    return rows


def summary(rows):
    chosen = [row for row in rows if "stair" in row]
    met = {way: sum(isinstance(row.get(way), dict) for row in chosen) for way in ("compact", "order")}
    both = [row for row in chosen if all(isinstance(row.get(way), dict) for way in ("demote", "near_demote"))]
    total = lambda way, key: sum(row[way][key] for row in both)  # noqa: E731
    needs = collections.Counter()
    for row in chosen:
        found = NEEDS.search(row["order"]) if isinstance(row["order"], str) else None
        if found:
            needs[int(found[1]) - row["stair"]] += 1
    refused = collections.Counter(NEEDS.sub("it needs N registers in the best order", row["order"])[:70]
                                  for row in chosen if isinstance(row["order"], str))
    return dict(limited=len(chosen), met=met, met_by_order_alone=sum(
                    isinstance(row["order"], dict) and not isinstance(row["compact"], dict) for row in chosen),
                short_by=dict(sorted(needs.items())),
                demoted={way: sum(isinstance(row.get(way), dict) for row in chosen) for way in ("demote", "near_demote")},
                by_both=len(both), fewer_values=sum(row["near_demote"]["values"] < row["demote"]["values"] for row in both),
                more_values=sum(row["near_demote"]["values"] > row["demote"]["values"] for row in both),
                values={way: total(way, "values") for way in ("demote", "near_demote")},
                bytes={way: total(way, "bytes") for way in ("demote", "near_demote")},
                left_out=dict(collections.Counter(row["why"] for row in rows if "why" in row)),
                refused=dict(refused.most_common(8)))


def main():
    options = again.arguments(__doc__, per_family=1).parse_args()
    # The next one alone.
    options.stairs = 1
    rows = again.all_rows(options, one)
    again.write(options, "warpwright.order/1", summary(rows), rows)


if __name__ == "__main__":
    main()
