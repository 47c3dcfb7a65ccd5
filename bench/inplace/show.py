#!/usr/bin/env python3
"""Prints what a campaign found, and what of it is not as it should be.

show.py FILE     as campaign.py writes it"""
import json
import sys

SLOWER = 1.01
# A kernel's time is not compared below this share of the program's: events are 0.5 µs coarse.
LEAST_SHARE = 0.005


def ms(ns):
    return "–" if ns is None else f"{ns / 1e6:.3f}"


def parts(program):
    yield program["program"], program
    if "one_thread" in program:
        yield program["program"] + ", one thread", program["one_thread"]


def main():
    document = json.load(open(sys.argv[1]))
    for program in document["programs"]:
        runs = {kind: program.get(kind, {}).get("ok") for kind in ("trace", "itself", "tune", "with")}
        tuned = [k for k in program.get("tune", {}).get("kernels", []) if k["winner"]]
        copies = program.get("itself", {})
        print(f"{program['program']}: ok {runs}, {program.get('kernels')} kernels, {copies.get('replaced')} of {copies.get('copies')} copies launched, "
              f"{len(tuned)} winners{', skipped: ' + program['skipped'][-200:] if 'skipped' in program else ''}")
        for kernel in tuned:
            print(f"    {kernel['winner']}: {kernel['winner_ns'] / kernel['original_ns']:.3f} alone, {kernel.get('in_program')} in the program, {kernel['name'][:50]}")
        for name, part in parts(program):
            times = {kind: part.get(f"gpu_ns_{kind}") for kind in ("before", "after", "copies")}
            print(f"  {name}: GPU ms", {kind: ms(ns) for kind, ns in times.items()}, "window ms", {k: v["median"] for k, v in part.get("windows_ms", {}).items()})
            for row in part.get("by_kernel", []):
                before = row["before_ns"]
                for kind in ("after_ns", "copies_ns"):
                    if row.get(kind) and before > LEAST_SHARE * times["before"] and row[kind] > SLOWER * before:
                        print(f"    SLOWER {row[kind] / before:.4f} {kind} of {ms(before)} ms: {row['kernel'][-60:]}")
    for name, found in {**document.get("faults", {}), **document.get("alongside", {}), "miscompiled": document.get("miscompiled_candidate", {})}.items():
        print(f"{name}: {found.get('ok', found.get('skipped'))}", "" if found.get("ok") else json.dumps(found)[:300])
    for name, found in document.get("launch_overhead", {}).items():
        if "more_ns" in found:
            print(f"launch, {name}: {found['more_ns']} ns more ({found['more_from_ns']} to {found['more_to_ns']})")


main()
