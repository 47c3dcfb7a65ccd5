#!/usr/bin/env python3
"""Prints what a campaign found, and what of it is not as it should be; or a table of the programs.

show.py FILE             as campaign.py writes it
show.py --table FILE…"""
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


def rows(document):
    """Lines of a table in Markdown."""
    for program in document["programs"]:
        same = lambda kind: "same output" if program.get(kind, {}).get("ok") else "not run" if kind not in program else "FAILED"
        tuned = [k for k in program.get("tune", {}).get("kernels", []) if k["winner"]]
        for name, part in parts(program):
            ms3 = [ms(part.get(f"gpu_ns_{kind}")) for kind in ("before", "copies", "after")]
            window = part.get("windows_ms", {})
            windows = [f"{window[kind]['median']:.2f}" if kind in window else "–" for kind in ("window", "window_copies", "window_winners")]
            copies = program.get("itself", {})
            what = [str(program.get("kernels", "–")), same("trace"), f"{copies.get('replaced', 0)}, {same('itself')}", f"{len(tuned) or 'no'} winner{'' if len(tuned) == 1 else 's'}, {same('with')}"]
            if part is not program:
                what = ["", "", "", ""]
            yield f"| {name} | {' | '.join(what)} | {' | '.join(ms3)} | {' | '.join(windows)} |"


def main():
    if sys.argv[1] == "--table":
        print("| program | kernels | traced | copies of its kernels | tuned | GPU ms | copies | winners | window ms | copies | winners |")
        print("|---|--:|---|---|---|--:|--:|--:|--:|--:|--:|")
        for file in sys.argv[2:]:
            print("\n".join(rows(json.load(open(file)))))
        return
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
