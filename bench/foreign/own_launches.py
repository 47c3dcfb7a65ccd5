#!/usr/bin/env python3
"""How much `explain` and `opt` know of the launches of other people's kernels, without a GPU.

    bench/foreign/own_launches.py SUITES [--only NAME…] [--budget SECONDS] [--lanes N] [-o FILE.json] [--table FILE.md]

SUITES as for `bench/no_gpu.py`, whose programs these are. Each of their files with kernels in it is explained as it is
(`seen`: the file's own program ran; `read`: the code says block and grid; `guessed`: a part of either is a guess;
`unknown`: nobody knows one); of what no code of its program launches, by `explain`, it is counted apart; where the file is no program by itself, with the trace that `bench/no_gpu.py run` left in
`--builds` (`traced`), as somebody does who has a Makefile (`trace --no-gpu -o T.json make run`, `--trace T.json`). `opt`
is held against that kernel by kernel. `launch` describes the kernels, and `run` runs what it does not say to fault. Nothing of the suites is
kept but names and numbers.
"""

import argparse
import json
import re
import shlex
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from no_gpu import command, first_error, joined, machine, named, place_of, printed_rows, side_by_side, where, write_headers  # noqa: E402
from no_gpu_programs import inputs  # noqa: E402
from no_gpu_programs.programs import PROGRAMS, RENAMED  # noqa: E402

KNOWN = ["seen", "traced", "read", "guessed", "unknown"]
#: grid and block are known
SURE = KNOWN[:3]


def certainty(kernel, ran):
    """What is known of the launch of an explained kernel. Where the kernel states its block, who knows the grid decides."""
    if kernel["block_source"] == "assumed" or kernel.get("grid") is None:
        return "unknown"
    if kernel["block_source"].startswith("ran") or ran and kernel["block_source"] in ("bound", "required"):
        return "seen"
    if kernel["block_source"].startswith("trace"):
        return "traced"
    return "guessed" if kernel.get("guessed") else "read"


def source_name(symbol):
    """The name that a kernel has in the source, whatever its instance of a template: `scale` of `_Z5scaleILi128EEvPf`."""
    found, at = [], 3 if symbol.startswith("_ZN") else 2
    while symbol.startswith("_Z") and (length := re.match(r"\d+", symbol[at:])):
        begin = at + length.end()
        found.append(symbol[begin : begin + int(length[0])])
        at = begin + int(length[0])
        if symbol[2] != "N":
            break
    return "::".join(found) or symbol


def of_source(known):
    """Of each kernel of the source the best that is known of one of its instances."""
    best = {}
    for symbol, (sure, *_) in known.items():
        name = source_name(symbol)
        best[name] = min(best.get(name, KNOWN[-1]), sure, key=KNOWN.index)
    return best


def by_nobody(known, names):
    """Of these kernels of the source those that no code of their program launches."""
    some = {source_name(symbol) for symbol, (*_, is_by_nobody) in known.items() if not is_by_nobody}
    return names - some


def told(words, folder, options):
    """The kernels of a document with their launches: certainty, grid; what else was said; seconds."""
    code, output, seconds = command(words, folder, patience=options.patience)
    start = output.find("{\n")
    note = output[:start] if start >= 0 else output
    try:
        document = json.JSONDecoder().raw_decode(output[start:])[0]
    except ValueError:
        return None, first_error(output), seconds
    if "kernels" not in document:
        return None, first_error(document.get("message", "")), seconds
    ran = "read, not seen" not in note
    name = lambda kernel: kernel.get("kernel") or kernel["name"]
    by_nobody = lambda kernel: kernel.get("not_launched", "").startswith("no code ")
    found = {name(kernel): (certainty(kernel, ran), kernel.get("grid"), by_nobody(kernel)) for kernel in document["kernels"]}
    if "--trace" in words:
        found = {name: ("traced" if sure == "seen" else sure, *rest) for name, (sure, *rest) in found.items()}
    return found, note, seconds


def why_not(note):
    """The reason for which launches were not seen, in few words."""
    found = re.search(r"read, not seen: (.*)", note)
    if not found:
        return "it has no `main`" if "without a GPU" not in note else "its program does not launch them"
    text = re.sub(r"`[^`]*`|\S*/", "", found[1])
    for word in ("undefined reference", "No such file", "not declared", "exit code", "signal", "was ended", "not build in"):
        if word in text:
            return word
    return text[:60]


def files(program, folder):
    """The files of a program that may have kernels in them, or in what they include."""
    paths = sorted({path for pattern in program.sources for path in folder.glob(pattern)})
    # What programs of a suite share is nobody's own.
    return [named(path) for path in paths if path.suffix == ".cu" and folder.resolve() in path.resolve().parents]


def described(path, folder, args, more, options):
    """What `launch` makes of a file's kernels, and how many descriptions that it does not say to fault do when they are run."""
    with tempfile.TemporaryDirectory() as place:
        words = [options.warpwright, "launch", path, "-o", f"{place}/made/", "--budget", options.budget, "--run-args", args, "--", *more]
        code, _, seconds = command(words, folder, patience=options.patience)
        found, wrong = sorted(Path(place).glob("made/*.toml")), []
        first = {toml: toml.read_text().splitlines()[0] for toml in found}
        said = [toml for toml in found if "FAULTS" in first[toml]]
        untried = [toml for toml in found if "could not try it" in first[toml]]
        for toml in found:
            if toml not in said + untried:
                words = [options.warpwright, "run", path, "--launch", toml, "--size", "small", "--", *more]
                code, output, _ = command(words, folder, patience=options.patience)
                # That it takes long is said, too; what else is wrong with it is not.
                is_long = "takes longer" in first[toml] and "instruction budget spent" in output
                if code not in (0, 124) and not is_long and re.search(r"out-of-bounds|misaligned|fault|divergence|assertion", output):
                    wrong.append(f"{toml.stem}: {first_error(output)}")
    return {"descriptions": len(found), "said to fault": len(said), "said not to be tried": len(untried), "fault unsaid": wrong, "describe_s": round(seconds, 1)}


#: what `described` says
DESCRIBED = ("descriptions", "said to fault", "said not to be tried", "fault unsaid", "describe_s")


def with_descriptions(rows, later, key):
    """Rows with what those of a later run say of descriptions."""
    found = {key(row): {name: row[name] for name in DESCRIBED if name in row} for row in later}
    return [row | found.get(key(row), {}) for row in rows]


def row_of(item, options):
    program, path = item
    folder = options.suites / program.folder
    args = shlex.join(str(arg) for arg in program.args)
    more = [f"-I{options.builds}/include", *(word for word in program.options if word[:2] in ("-I", "-D", "-s", "-i")), *RENAMED]
    file = path.relative_to(folder)
    row = {"suite": program.suite, "name": program.name, "file": path.name}
    tail = ["--run-args", args, "--", *more]
    alone, note, seconds = told([options.warpwright, "explain", file, "--json", "--gpu", "h200", "--budget", options.budget, *tail], folder, options)
    row |= {"kernels": len(of_source(alone or {})), "instances": len(alone or {}), "s": round(seconds, 1)}
    if not alone:
        return row | {"known": {}, "not seen because": note}
    trace = options.builds / f"{place_of(program, options).name}.json"
    is_unsure = any(sure not in SURE for sure in of_source(alone).values())
    behind = ["--trace", trace] if is_unsure and trace.exists() else []
    known = dict(alone)
    if behind:
        traced, _, _ = told([options.warpwright, "explain", file, "--json", "--gpu", "h200", *behind, "--", *more], folder, options)
        known |= {name: found for name, found in (traced or {}).items() if known.get(name, ("unknown", 0, False))[0] not in SURE}
    others = dict(known)
    for words in program.others:
        if any(sure not in SURE for sure in of_source(others).values()):
            found, _, _ = told([options.warpwright, "explain", file, "--json", "--gpu", "h200", "--budget", options.budget, "--run-args", shlex.join(words), "--", *more], folder, options)
            others |= {name: found for name, found in (found or {}).items() if others.get(name, ("unknown", 0, False))[0] not in SURE}
    launched = set()
    if trace.exists():
        launched = {launch["kernel"] for launch in json.loads(trace.read_text())["launches"]}
    best = of_source(known)
    met = {source_name(symbol) for symbol in known if symbol in launched}
    row |= {
        "known": dict(Counter(best.values())), "alone": dict(Counter(of_source(alone).values())),
        "by nobody": len(by_nobody(alone, set(best) - met)), "by nobody but known": sum(best[name] in SURE for name in by_nobody(alone, set(best) - met)),
        "known with other arguments": sum(sure in SURE for sure in of_source(others).values()),
        "launched": len(met), "launched and known": sum(best[name] in SURE for name in met),
        # What no run launches, nobody can have seen; of what does not build, nobody knows.
        "never launched": len(best) - len(met) if trace.exists() else 0, "without a run": 0 if trace.exists() else len(best),
        "never launched but known": sum(best[name] in SURE for name in best if name not in met) if trace.exists() else 0,
        "instances known": sum(sure in SURE for sure, *_ in known.values()),
        "not seen because": why_not(note) if is_unsure else "",
    }
    if options.opt:
        words = [options.warpwright, "opt", file, "--json", "--gpu", "h200", "--budget", "0.1", *behind, *(tail if not behind else ["--", *more])]
        found, said, seconds = told(words, folder, options)
        own = known if behind else alone
        row |= {"opt_s": round(seconds, 1), "opt differs": None if found is None else sorted(n for n in own if found.get(n, ("", 0, False))[0] in SURE and own[n][0] in SURE and found[n][1] != own[n][1])}
        row["opt knows"] = sum(sure in SURE for sure in of_source(found or {}).values())
        row["opt says"] = None if found else said[:160]
    if options.describe:
        row |= described(file, folder, args, more, options)
    return row


def items(options):
    for program in PROGRAMS:
        if options.only and program.name not in options.only and program.suite not in options.only:
            continue
        folder = options.suites / program.folder
        for name in program.inputs:
            getattr(inputs, name)(folder)
        for pattern, wanted, text in program.edits:
            for path in folder.glob(pattern):
                path.write_text(re.sub(wanted, text, path.read_text()))
        for path in files(program, folder):
            yield program, path


def summary(rows):
    explained = [row for row in rows if row["kernels"]]
    kernels = sum(row["kernels"] for row in explained)
    share = lambda key, names: round(100 * sum(row[key].get(name, 0) for row in explained for name in names) / max(kernels, 1), 1)
    launched, by_nobody = (sum(row[key] for row in explained) for key in ("launched", "by nobody"))
    in_all = sum(row["known"].get(name, 0) for row in explained for name in SURE)
    found = {
        "files": len(rows), "files that an earlier run stands for": sum("measured" in row for row in rows), "files that compile": len(explained), "kernels of the source": kernels, "instances": sum(row["instances"] for row in explained),
        "instances with grid and block known": sum(row["instances known"] for row in explained),
        "grid and block known (%)": share("known", SURE), "by the file alone (%)": share("alone", SURE), **{f"{name} (%)": share("known", [name]) for name in KNOWN},
        "kernels that no code of their programs launches": by_nobody,
        "grid and block known of the others (%)": round(100 * (in_all - sum(row["by nobody but known"] for row in explained)) / max(kernels - by_nobody, 1), 1),
        "grid and block known, run with the other arguments of `programs.py` as well (%)": round(100 * sum(row["known with other arguments"] for row in explained) / max(kernels, 1), 1),
        "kernels that the programs launch": launched,
        "of these grid and block known (%)": round(100 * sum(row["launched and known"] for row in explained) / max(launched, 1), 1),
        "kernels that the programs, as they are run, never launch": sum(row["never launched"] for row in explained),
        "grid and block known of what is never launched": sum(row["never launched but known"] for row in explained),
        "kernels of programs that do not build or run": sum(row["without a run"] for row in explained),
        "median seconds of explain": statistics.median(row["s"] for row in explained) if explained else None,
        "longest explain": max(row["s"] for row in explained) if explained else None,
    }
    opted = [row for row in explained if row.get("opt differs") is not None]
    if opted:
        found |= {
            "opt: kernels": sum(row["kernels"] for row in opted), "opt: grid and block known (%)": round(100 * sum(row["opt knows"] for row in opted) / sum(row["kernels"] for row in opted), 1),
            "opt: other than explain": sum(len(row["opt differs"]) for row in opted), "median seconds of opt": statistics.median(row["opt_s"] for row in opted),
        }
    made = [row for row in explained if "descriptions" in row]
    if made:
        found |= {
            "descriptions": sum(row["descriptions"] for row in made), "said to fault": sum(row["said to fault"] for row in made), "said not to be tried": sum(row.get("said not to be tried", 0) for row in made),
            "fault unsaid": sum(len(row["fault unsaid"]) for row in made), "median seconds of launch": statistics.median(row["describe_s"] for row in made),
        }
    return found


def table(document):
    lines = ["# Launches of other people's kernels, without a GPU", "", "Written by `bench/foreign/own_launches.py`.", "", "| | |", "|---|--:|"]
    lines += [f"| {key} | {value} |" for key, value in (where(document) | document["summary"]).items()]
    reasons = Counter()
    for row in document["rows"]:
        unsure = row["kernels"] - sum(row["known"].get(name, 0) for name in SURE)
        reasons[row["not seen because"]] += unsure or (not row["kernels"])
    lines += ["", "| not known, and not seen because | kernels (files, of what does not compile) |", "|---|--:|"]
    lines += [f"| {why.replace('|', '/')} | {count} |" for why, count in reasons.most_common() if count]
    lines += ["", f"| suite | program | file | kernels | launched | {' | '.join(KNOWN)} | descriptions | said to fault | s |", f"|---|---|---|{'--:|' * (len(KNOWN) + 5)}"]
    for row in document["rows"]:
        if row["kernels"]:
            known = " | ".join(str(row["known"].get(name, 0)) for name in KNOWN)
            lines.append(
                f"| {row['suite']} | {row['name']} | {row['file']} | {row['kernels']} | {row['launched']} | {known} "
                f"| {row.get('descriptions', '')} | {row.get('said to fault', '')} | {row['s']} |"
            )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", type=Path, help="the suites; `-`: nothing is measured, and rows that were printed are summed up")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--budget", default="30")
    parser.add_argument("--builds", type=Path, default=Path("/tmp/warpwright-no-gpu"))
    parser.add_argument("--warpwright", default="target/release/warpwright")
    parser.add_argument("--no-opt", dest="opt", action="store_false")
    parser.add_argument("--no-descriptions", dest="describe", action="store_false")
    parser.add_argument("--lanes", type=int, help="files at a time (default: one, on all cores)")
    parser.add_argument("--cores", type=int, default=2, help="cores that each of them has")
    parser.add_argument("--until", type=float, help="begin no other file after so many seconds")
    parser.add_argument("--patience", type=float, default=300, help="seconds that a command may take")
    parser.add_argument("--printed", type=Path, nargs="*", default=[], help="rows that runs before this one have printed, of each file the first")
    parser.add_argument("--described", type=Path, nargs="*", default=[], help="rows that a later run has printed: what they say of descriptions counts")
    parser.add_argument("--into", type=Path, help="an earlier result: its rows stand for files that this run does not come to, and are counted")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    options.suites, options.builds = options.suites.resolve(), options.builds.resolve()
    options.warpwright = str(Path(options.warpwright).resolve())
    write_headers(options.builds / "include")
    printed = printed_rows(options.printed)
    key = lambda row: (row["suite"], row["name"], row["file"])
    done = {key(row): row for row in reversed(printed)}
    budget = {"budget_s": float(options.budget)}
    one = lambda item: budget | (done.get((item[0].suite, item[0].name, item[1].name)) or row_of(item, options))
    is_measured = options.suites.is_dir()
    measured = side_by_side(list(items(options)), options, one) if is_measured else done.values()
    rows = [row for row in measured if row]
    before = {}
    if options.into:
        rows, before = joined(rows, options.into, key)
    rows = with_descriptions(rows, printed_rows(options.described), key)
    where_it_ran = machine(options, rows) if is_measured or not options.into else json.loads(options.into.read_text())["machine"]
    document = {"date": time.strftime("%Y-%m-%d"), "budget_s": float(options.budget), "machine": where_it_ran, **before, "summary": summary(rows), "rows": rows}
    print(json.dumps(document["summary"], indent=1))
    if options.output:
        options.output.write_text(json.dumps(document, indent=1) + "\n")
    if options.table:
        options.table.write_text(table(document))


if __name__ == "__main__":
    main()
