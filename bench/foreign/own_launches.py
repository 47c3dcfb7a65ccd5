#!/usr/bin/env python3
"""How much `explain` knows of the launches of other people's kernels, without a GPU.

    bench/foreign/own_launches.py SUITES [--only NAME…] [--budget SECONDS] [-o FILE.json] [--table FILE.md]

SUITES as for `bench/no_gpu.py`, whose programs these are. Each of their files with kernels in it is explained once as it is
(`seen`: the file's own program ran; `read`: the code says block and grid; `guessed`: a part of either is a guess;
`unknown`: nobody knows one) and once with `--no-run`. Nothing of the suites is kept but names and numbers.
"""

import argparse
import json
import re
import shlex
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from no_gpu import HEADERS, command, first_error, named  # noqa: E402
from no_gpu_programs import inputs  # noqa: E402
from no_gpu_programs.programs import PROGRAMS, RENAMED  # noqa: E402

KNOWN = ["seen", "read", "guessed", "unknown"]


def certainty(kernel, ran):
    """What is known of the launch of an explained kernel. Where the kernel states its block, who knows the grid decides."""
    if kernel["block_source"] == "assumed" or kernel.get("grid") is None:
        return "unknown"
    if kernel["block_source"].startswith("ran") or ran and kernel["block_source"] in ("bound", "required"):
        return "seen"
    return "guessed" if kernel.get("guessed") else "read"


def explained(words, folder):
    code, output, seconds = command(words, folder, patience=300)
    start = output.find("{\n")
    note = output[:start] if start >= 0 else output
    try:
        document = json.JSONDecoder().raw_decode(output[start:])[0]
    except ValueError:
        return None, first_error(output), seconds
    if "kernels" not in document:
        return None, first_error(document.get("message", "")), seconds
    kernels = document["kernels"]
    ran = "--no-run" not in words and "read, not seen" not in note
    return Counter(certainty(kernel, ran) for kernel in kernels), note, seconds


def why_not(note):
    """The reason for which launches were not seen, in few words."""
    if note == "seen":
        return ""
    found = re.search(r"read, not seen: (.*)", note)
    if not found:
        return "it has no `main`" if "without a GPU" not in note else ""
    text = re.sub(r"`[^`]*`|\S*/", "", found[1])
    for word in ("undefined reference", "No such file", "not declared", "exit code", "signal", "was ended", "not build in"):
        if word in text:
            return word
    return text[:60]


def files(program, folder):
    """The files of a program that may have kernels in them, or in what they include."""
    paths = sorted({path for pattern in program.sources for path in folder.glob(pattern)})
    return [named(path) for path in paths if path.suffix == ".cu"]


def rows_of(program, options):
    folder = options.suites / program.folder
    for name in program.inputs:
        getattr(inputs, name)(folder)
    for pattern, wanted, text in program.edits:
        for path in folder.glob(pattern):
            path.write_text(re.sub(wanted, text, path.read_text()))
    args = shlex.join(str(arg) for arg in program.args)
    more = [f"-I{options.headers}", *(word for word in program.options if word[:2] in ("-I", "-D", "-s")), *RENAMED]
    for path in files(program, folder):
        words = [options.warpwright, "explain", path.relative_to(folder), "--json", "--budget", options.budget]
        run, note, seconds = explained([*words, "--run-args", args, "--", *more], folder)
        if not run and "no kernel" in note:
            continue
        read, _, _ = explained([*words, "--no-run", "--", *more], folder)
        if run and run["seen"]:
            note = "seen"
        yield {
            "suite": program.suite, "name": program.name, "file": path.name, "kernels": sum(run.values()) if run else 0,
            "known": dict(run or {}), "without a run": dict(read or {}), "not seen because": why_not(note) if run else note, "s": round(seconds, 1),
        }


def summary(rows):
    explained = [row for row in rows if row["kernels"]]
    kernels = sum(row["kernels"] for row in explained)
    share = lambda key, names: round(100 * sum(row[key].get(name, 0) for row in explained for name in names) / max(kernels, 1), 1)
    return {
        "files": len(rows), "files that compile": len(explained), "kernels": kernels,
        "grid and block seen or read (%)": share("known", KNOWN[:2]), **{f"{name} (%)": share("known", [name]) for name in KNOWN},
        "seen or read without a run (%)": share("without a run", KNOWN[:2]),
        "median seconds": statistics.median(row["s"] for row in explained) if explained else None,
    }


def table(document):
    lines = ["# Launches of other people's kernels, without a GPU", "", "Written by `bench/foreign/own_launches.py`.", "", "| | |", "|---|--:|"]
    lines += [f"| {key} | {value} |" for key, value in document["summary"].items()]
    reasons = Counter()
    for row in document["rows"]:
        reasons[row["not seen because"] or "seen"] += row["kernels"] or 1
    lines += ["", "| not seen because | kernels (files, of what does not compile) |", "|---|--:|"]
    lines += [f"| {why.replace('|', '/')} | {count} |" for why, count in reasons.most_common() if why != "seen"]
    lines += ["", "| suite | program | file | kernels | seen | read | guessed | unknown | s |", "|---|---|---|--:|--:|--:|--:|--:|--:|"]
    for row in document["rows"]:
        known = " | ".join(str(row["known"].get(name, 0)) for name in KNOWN)
        lines.append(f"| {row['suite']} | {row['name']} | {row['file']} | {row['kernels']} | {known} | {row['s']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--budget", default="30")
    parser.add_argument("--headers", type=Path, default=Path("/tmp/warpwright-no-gpu/include"))
    parser.add_argument("--warpwright", default="target/release/warpwright")
    parser.add_argument("--until", type=float, help="begin no other program after so many seconds")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    options.suites = options.suites.resolve()
    options.warpwright = str(Path(options.warpwright).resolve())
    for name, text in HEADERS.items():
        (options.headers / name).parent.mkdir(parents=True, exist_ok=True)
        (options.headers / name).write_text(text)
    begin, rows = time.monotonic(), []
    for program in PROGRAMS:
        is_wanted = not options.only or program.name in options.only or program.suite in options.only
        is_late = options.until is not None and time.monotonic() - begin > options.until
        if is_wanted and not is_late:
            for row in rows_of(program, options):
                rows.append(row)
                print(json.dumps(row), flush=True)
    document = {"date": time.strftime("%Y-%m-%d"), "budget_s": float(options.budget), "summary": summary(rows), "rows": rows}
    print(json.dumps(document["summary"], indent=1))
    if options.output:
        options.output.write_text(json.dumps(document, indent=1) + "\n")
    if options.table:
        options.table.write_text(table(document))


if __name__ == "__main__":
    main()
