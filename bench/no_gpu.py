#!/usr/bin/env python3
"""Programs of other people run without a GPU: how many come to their end, and what keeps the others from it.

    bench/no_gpu.py run SUITES [--only NAME] [--budget SECONDS] [-o bench/results/no-gpu.json] [--table FILE]
    bench/no_gpu.py compare SUITES [--only NAME] [-o FILE]      (on a machine with a GPU)

SUITES is a folder with checkouts of Rodinia (`gpu-rodinia`), PolyBench/GPU (`polybenchGpu`), Parboil, cuda-samples, Altis
and SHOC, as their repositories are named; nothing of them is kept but names and numbers. `run` builds each program with
nvcc and runs it with `warpwright trace --no-gpu`. `compare` runs the same builds with `trace` on the device as well and
compares grid, block and dynamic shared memory of each kernel's launches, and how many there are.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from no_gpu_programs import inputs  # noqa: E402
from no_gpu_programs.programs import PROGRAMS, RENAMED  # noqa: E402

#: headers that a configuration makes or that NVIDIA's wheels leave out, as far as the programs use them
HEADERS = {
    "cuda_profiler_api.h": """#pragma once
#include <cuda_runtime_api.h>
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
""",
    "config.h": "#define HAVE_GETTIMEOFDAY 1\n",
    "CL/cl.h": """#pragma once
typedef int cl_int;
typedef unsigned cl_uint;
typedef struct queue *cl_command_queue;
typedef struct kernel *cl_kernel;
typedef struct event *cl_event;
typedef struct context *cl_context;
typedef struct device *cl_device_id;
typedef struct program *cl_program;
typedef struct memory *cl_mem;
""",
}
#: seconds that a build or a run may take on the wall
PATIENCE = 600


def command(words, folder, env=None, patience=PATIENCE):
    """Exit code (124 where it took too long), output, seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [str(word) for word in words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=patience)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        code = 124
    return code, output.decode(errors="replace"), time.monotonic() - begin


def build(program, folder, binary, nvcc):
    sources = sorted({path for pattern in program.sources for path in folder.glob(pattern)})
    if not sources or not all((folder / s).exists() for s in program.sources if "*" not in s):
        return 1, "sources are not there", 0.0
    for files, pattern, text in program.edits:
        for path in folder.glob(files):
            path.write_text(re.sub(pattern, text, path.read_text()))
    # nvcc makes names out of those of files.
    sources = [named(source) for source in sources]
    headers = binary.parent / "include"
    for name, text in HEADERS.items():
        (headers / name).parent.mkdir(parents=True, exist_ok=True)
        (headers / name).write_text(text)
    words = [nvcc, "-arch=sm_90", "-cudart", "shared", "-O2", "-w", *RENAMED, f"-I{headers}", *program.options, "-o", binary, *sources]
    return command(words, folder)


def named(source):
    if not source.name[0].isdigit():
        return source
    link = source.with_name(f"p{source.name}")
    if not link.exists():
        link.symlink_to(source.name)
    return link


def first_error(output):
    lines = [line.strip() for line in output.splitlines() if re.search(r"error|undefined|fatal|not there", line, re.I)]
    # Without folders of this machine.
    text = lines[0] if lines else output.strip()[-160:] or "takes too long to build"
    return re.sub(r"\S*/", "", text)[-160:]


def judged(program, code, output):
    """Whether a program says that its results are right; None where it says nothing."""
    if program.right == "<exit code 0>":
        return None if "Test WAIVED" in output or "waived" in output.lower() else code == 0 and not re.search(r"test failed|result = fail|FAILED!", output, re.I)
    if program.wrong and re.search(program.wrong, output):
        return False
    if program.right and re.search(program.right, output):
        return True
    return None


def reason(row, without, output):
    """Why a program did not come to its end, in few words."""
    if row["code"] == 124:
        return "takes too long"
    if without and without["faults"]:
        return f"a kernel faults: {without['faults'][0]['why'].split(':')[0]}"
    if without and without["unanswered"]:
        return f"asks for {without['unanswered'][0]}"
    if row["code"] < 0 or row["code"] >= 128:
        return "crashes"
    if without and without["not_computed"] and row["right"] is False:
        return "misses results that were not computed"
    return f"ends with exit code {row['code']}"


def run_one(program, suites, out, options):
    folder = suites / program.folder
    row = {"suite": program.suite, "name": program.name}
    binary = out / f"{program.suite.replace('/', '-')}-{program.name}"
    for name in program.inputs:
        getattr(inputs, name)(folder)
    # A build is made once, and its outcome kept beside it.
    kept = out / f"{binary.name}.build.json"
    if not kept.exists():
        code, output, seconds = build(program, folder, binary, options.nvcc)
        kept.write_text(json.dumps({"build_s": round(seconds, 1), "reason": first_error(output) if code else None}))
    made = json.loads(kept.read_text())
    row["build_s"] = made["build_s"]
    if made["reason"] is not None:
        return row | {"built": False, "reason": made["reason"]}
    trace = out / "trace.json"
    trace.unlink(missing_ok=True)
    words = [options.warpwright, "trace", "--no-gpu", "--gpu", "h100", "--budget", options.budget, "-o", trace, "--", binary, *program.args]
    code, output, seconds = command(words, folder)
    (out / f"{binary.name}.txt").write_text(output)
    row |= {"built": True, "run_s": round(seconds, 2), "code": code}
    document = json.loads(trace.read_text()) if trace.exists() else {}
    if trace.exists():
        trace.replace(out / f"{binary.name}.json")
    without = document.get("without_gpu")
    launches = document.get("launches", [])
    whole = without is not None and not without["not_computed"] and not without["faults"]
    row |= {
        "kernels": len({launch["kernel"] for launch in launches}),
        "launches": sum(launch["launches"] + launch["in_graphs"] for launch in launches),
        "whole": bool(whole and launches),
        "exact": sum(without["exact_until"] is None or launch["given"]["launch"] <= without["exact_until"] for launch in launches if launch.get("given")) if without else 0,
        "classes": len(launches),
        "right": judged(program, code, output),
        "not_computed": without["not_computed"][0]["why"].splitlines()[0][:160] if without and without["not_computed"] else None,
        "faults": [fault["why"][:200] for fault in without["faults"]] if without else [],
        "refused": without["unanswered"] if without else [],
    }
    # A program that compares its results with results that were not computed ends as it should when it says no.
    says_no = code == 1 and not whole and row["right"] is False
    row["ended"] = bool(launches or code == 0) and (code == 0 or says_no) and not (without or {}).get("ended")
    row["reason"] = None if row["ended"] else reason(row, without, output)
    return row


def summary(rows):
    built = [row for row in rows if row["built"]]
    ended = [row for row in built if row["ended"]]
    checked = [row for row in built if row["whole"] and row["right"] is not None]
    return {
        "programs": len(rows),
        "built": len(built),
        "ended": len(ended),
        "ran whole": sum(row["whole"] for row in built),
        "ran whole and check themselves": len(checked),
        "of these right": sum(row["right"] for row in checked),
        "launch classes": sum(row["classes"] for row in built),
        "exact launch classes": sum(row["exact"] for row in built),
        "median seconds with the build": round(statistics.median(row["build_s"] + row["run_s"] for row in built), 1) if built else None,
    }


def table(document):
    lines = ["# Programs without a GPU", "", "Written by `bench/no_gpu.py`.", "", "| | |", "|---|--:|"]
    lines += [f"| {key} | {value} |" for key, value in document["summary"].items()]
    reasons = Counter(row["reason"] for row in document["rows"] if row["built"] and not row["ended"])
    lines += ["", "| not to its end because it | programs |", "|---|--:|"]
    lines += [f"| {why} | {count} |" for why, count in reasons.most_common()]
    gaps = Counter(row["not_computed"] for row in document["rows"] if row["built"] and row["not_computed"])
    lines += ["", "| the first kernel that did not run | programs |", "|---|--:|"]
    lines += [f"| {why.replace('|', '/')} | {count} |" for why, count in gaps.most_common()]
    lines += ["", "| suite | program | kernels | launches | exact | whole | right | s |", "|---|---|--:|--:|--:|---|---|--:|"]
    word = {True: "yes", False: "no", None: ""}
    for row in document["rows"]:
        if row["built"]:
            lines.append(
                f"| {row['suite']} | {row['name']} | {row['kernels']} | {row['launches']} | {row['exact']} of {row['classes']} "
                f"| {word[row['whole']]} | {word[row['right']]} | {row['run_s']} |"
            )
    return "\n".join(lines) + "\n"


def chosen(options):
    """The programs that are asked for; with `--made` those alone that were built, or could not be."""
    for program in PROGRAMS:
        is_asked = not options.only or program.name in options.only or program.suite in options.only
        kept = options.builds / f"{program.suite.replace('/', '-')}-{program.name}.build.json"
        if is_asked and (kept.exists() or not options.made):
            yield program


def run(options):
    out = options.builds
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for program in chosen(options):
        row = run_one(program, options.suites, out, options)
        rows.append(row)
        print(json.dumps(row), flush=True)
    document = {"date": time.strftime("%Y-%m-%d"), "budget_s": options.budget, "summary": summary(rows), "rows": rows}
    print(json.dumps(document["summary"], indent=1))
    if options.output:
        options.output.write_text(json.dumps(document, indent=1) + "\n")
    if options.table:
        options.table.write_text(table(document))


def shapes(document):
    """How often each kernel is launched in each shape."""
    found = Counter()
    for launch in document["launches"]:
        key = (launch["kernel"], tuple(launch["grid"]), tuple(launch["block"]), launch["dynamic_smem"])
        found[key] += launch["launches"] + launch["in_graphs"]
    return found


def compare(options):
    """The same programs with a trace of the device beside."""
    rows, out = [], options.builds
    out.mkdir(parents=True, exist_ok=True)
    for program in chosen(options):
        row = run_one(program, options.suites, out, options)
        if not row["built"]:
            continue
        binary = out / f"{program.suite.replace('/', '-')}-{program.name}"
        trace = out / "device.json"
        trace.unlink(missing_ok=True)
        code, _, _ = command([options.warpwright, "trace", "-o", trace, "--", binary, *program.args], options.suites / program.folder)
        own = out / f"{binary.name}.json"
        if not trace.exists() or not own.exists():
            rows.append({"name": program.name, "suite": program.suite, "compared": False, "code": code})
            continue
        without, device = json.loads(own.read_text()), json.loads(trace.read_text())
        a, b = shapes(without), shapes(device)
        exact = without["without_gpu"]["exact_until"] is None
        rows.append({
            "name": program.name, "suite": program.suite, "compared": True, "exact": exact,
            "shapes": len(b), "shapes alike": len(a.keys() & b.keys()), "counts alike": sum(a[key] == b[key] for key in b),
            "only here": [str(key) for key in a.keys() - b.keys()][:4], "only on the device": [str(key) for key in b.keys() - a.keys()][:4],
        })
        print(json.dumps(rows[-1]), flush=True)
    if options.output:
        options.output.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "rows": rows}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "compare"])
    parser.add_argument("suites", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--made", action="store_true", help="only programs that were built before")
    parser.add_argument("--budget", default="10")
    parser.add_argument("--builds", type=Path, default=Path("/tmp/warpwright-no-gpu"))
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "nvcc")
    parser.add_argument("--warpwright", default="target/release/warpwright")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    options.suites = options.suites.resolve()
    if "/" in options.warpwright:
        options.warpwright = str(Path(options.warpwright).resolve())
    {"run": run, "compare": compare}[options.what](options)


if __name__ == "__main__":
    main()
