#!/usr/bin/env python3
"""Programs of other people run without a GPU: how many come to their end, and what keeps the others from it.

    bench/no_gpu.py run SUITES [--only NAME…] [--budget SECONDS] [-o bench/results/no-gpu-GPU-DATE.json] [--table FILE]
    bench/no_gpu.py compare SUITES …       (on a machine with a GPU)
    bench/no_gpu.py table FILE.json [--printed LOG…] [-o FILE.json] --table FILE

SUITES is a folder with checkouts of Rodinia (`gpu-rodinia`), PolyBench/GPU (`polybenchGpu`), Parboil, cuda-samples, Altis
and SHOC, as their repositories are named (or an archive of one, that `no_gpu_programs/stage.py` makes); nothing of them is
kept but names and numbers. `run` builds each program with nvcc and runs it with `warpwright trace --no-gpu`, `--lanes`
programs at a time on `--cores` cores each. `compare` runs the same builds with `trace` on the device as well, and holds each
launch up to the first that the trace marks against the device's: grid, block, dynamic shared memory, parameters that are no
pointers, sizes of the allocations behind those that are (`no_gpu_programs/observed.cpp` writes them down on both sides). `table` sums a
result up anew, with rows that a later run printed (and did not come to its end) in the places of its own.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

sys.path.insert(0, str(Path(__file__).parent))
from no_gpu_programs import agree, inputs  # noqa: E402
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
    # What CUDA 13 takes a place for, CUDA 12 took a device for.
    "cuda_12.h": """#pragma once
#ifdef __cplusplus
#include <cuda_runtime_api.h>
static inline cudaMemLocation placeOf(int device) {
    cudaMemLocation place;
    place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    place.id = device == cudaCpuDeviceId ? 0 : device;
    return place;
}
static inline cudaError_t cudaMemPrefetchAsync(const void *memory, size_t bytes, int device, cudaStream_t stream = 0) {
    return cudaMemPrefetchAsync(memory, bytes, placeOf(device), 0, stream);
}
static inline cudaError_t cudaMemAdvise(const void *memory, size_t bytes, cudaMemoryAdvise advice, int device) {
    return cudaMemAdvise(memory, bytes, advice, placeOf(device));
}
#endif
""",
}
#: seconds that a build may take on the wall
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
    words = [nvcc, "-arch=sm_90", "-cudart", "shared", "-O2", "-w", *RENAMED, f"-I{headers}", *program.options, "-o", binary, *sources]
    return command(words, folder)


def named(source):
    if not source.name[0].isdigit():
        return source
    link = source.with_name(f"p{source.name}")
    if not link.exists():
        link.symlink_to(source.name)
    return link


def write_headers(folder):
    for name, text in HEADERS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


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


def place_of(program, options):
    return options.builds / f"{program.suite.replace('/', '-')}-{program.name}"


def made(program, options):
    """Seconds of the build, and why there is none. A build is made once, and its outcome kept beside it."""
    binary = place_of(program, options)
    kept = options.builds / f"{binary.name}.build.json"
    if not kept.exists():
        code, output, seconds = build(program, options.suites / program.folder, binary, options.nvcc)
        kept.write_text(json.dumps({"build_s": round(seconds, 1), "reason": first_error(output) if code else None}))
    return json.loads(kept.read_text())


def observing(path):
    """The environment in which launches are written down; none where nobody compares."""
    path.unlink(missing_ok=True)
    return os.environ | {"LD_PRELOAD": str(path.parent / "observed.so"), "OBSERVED": str(path)}


def run_one(program, options):
    binary = place_of(program, options)
    row = {"suite": program.suite, "name": program.name}
    for name in program.inputs:
        getattr(inputs, name)(options.suites / program.folder)
    result = made(program, options)
    row["build_s"] = result["build_s"]
    if result["reason"] is not None:
        return row | {"built": False, "reason": result["reason"]}
    trace = options.builds / f"{binary.name}.json"
    trace.unlink(missing_ok=True)
    words = [options.warpwright, "trace", "--no-gpu", "--gpu", options.gpu, "--budget", options.budget, "-o", trace, "--", binary, *program.args]
    env = observing(options.builds / f"{binary.name}.own") if options.what == "compare" else None
    code, output, seconds = command(words, options.suites / program.folder, env, options.patience)
    (options.builds / f"{binary.name}.txt").write_text(output)
    row |= {"built": True, "run_s": round(seconds, 2), "code": code}
    document = json.loads(trace.read_text()) if trace.exists() else {}
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
        "not_computed": pathless(without["not_computed"][0]["why"].splitlines()[0])[:160] if without and without["not_computed"] else None,
        "faults": [pathless(fault["why"])[:200] for fault in without["faults"]] if without else [],
        "refused": without["unanswered"] if without else [],
        "rounded": (without.get("rounded") or {}).get("launch") if without else None,
    }
    if row["whole"] and row["right"] is False:
        row["accused"] = accused(program, options)
    # A program that compares its results with results that were not computed ends as it should when it says no.
    says_no = code == 1 and not whole and row["right"] is False
    row["ended"] = bool(launches or code == 0) and (code == 0 or says_no) and not (without or {}).get("ended")
    row["reason"] = None if row["ended"] else reason(row, without, output)
    return row


def accused(program, options):
    """What the checker on terms says against the program's own kernels: each is checked against itself."""
    folder, found = options.suites / program.folder, []
    more = ["--", *(word for word in program.options if word[:2] in ("-I", "-D")), *RENAMED]
    for path in sorted({path for pattern in program.sources for path in folder.glob(pattern) if path.suffix == ".cu"}):
        with tempfile.TemporaryDirectory() as place:
            command([options.warpwright, "launch", path.name, "-o", f"{place}/", "--budget", "100", *more], path.parent, None, options.patience)
            for toml in sorted(Path(place).glob("*.toml")):
                words = [options.warpwright, "check", path.name, path.name, "--launch-a", toml, "--launch-b", toml, *more]
                code, output, _ = command(words, path.parent, None, options.patience)
                said = re.search(r"the original has [^,]*,[^,]*", re.sub(r"\s+", " ", output))
                found += [f"{toml.stem}: {said[0]}"] if code == 1 and said else []
    return found


def pathless(text):
    """Without folders of this machine."""
    return re.sub(r"/\S*/", "", text)


#: so many programs at a time have the device: nothing of them is timed
DEVICE = threading.Semaphore(3)


def as_seen(program, options):
    """Each launch beside what a device was seen to launch before (`--seen`, the files NAME.device of `--builds`)."""
    name = place_of(program, options).name
    own, device = options.builds / f"{name}.own", options.seen / f"{name}.device"
    if not own.exists() or not device.exists():
        return {"compared": False}
    document = json.loads((options.builds / f"{name}.json").read_text())
    launches = agree.lines(device.read_text())
    found = agree.compared(agree.lines(own.read_text()), launches, agree.last_exact(document["without_gpu"]))
    return {"compared": True, **found, "given": agree.given(document, launches)}


def on_device(program, row, options):
    """The same build traced on the device, and each launch beside that without one."""
    if options.seen:
        return as_seen(program, options)
    binary = place_of(program, options)
    trace, own = options.builds / f"{binary.name}.device.json", options.builds / f"{binary.name}.json"
    seen = {side: options.builds / f"{binary.name}.{side}" for side in ("own", "device")}
    trace.unlink(missing_ok=True)
    words, folder = [options.warpwright, "trace", "-o", trace, "--", binary, *program.args], options.suites / program.folder
    with DEVICE:
        code, output, seconds = command(words, folder, observing(seen["device"]), options.patience)
        complaint = sanitized(binary, program, folder, options) if row["faults"] else None
    result = {"code": code, "s": round(seconds, 2), "right": judged(program, code, output), "sanitizer": complaint}
    if row["right"] is False and result["right"] is False:
        result["says"] = [re.sub(r"\s+", " ", pathless(line))[:120] for line in output.splitlines() if re.search(r"fail|error|threshold", line, re.I)][:2]
    if not all(path.exists() for path in (trace, own, *seen.values())):
        return result | {"compared": False, "says": [pathless(line)[:160] for line in output.splitlines()[-2:]]}
    document = json.loads(own.read_text())
    launches = {side: agree.lines(path.read_text()) for side, path in seen.items()}
    last = agree.last_exact(document["without_gpu"])
    ignored = agree.NOTHING
    result |= {"compared": True, **agree.compared(launches["own"], launches["device"], last)}
    if not result["all alike"]:
        # Is it the program's own doing? Whatever is left out of the comparison is kept in the row.
        reads, changing = own_doing(words, binary, folder, launches["device"], options)
        ignored = agree.left_out(reads, changing)
        result |= {"at first": result["different"], "two runs on the device differ at": sorted(at + 1 for at in changing)[:4],
                   **agree.compared(launches["own"], launches["device"], last, ignored)}
    result["beyond"] = agree.compared(launches["own"], launches["device"], None)["alike"]
    result["seen"] = len(launches["own"])
    result["given"] = agree.given(document, launches["device"], ignored)
    result["traces"] = agree.traces(document, json.loads(trace.read_text()))
    return result


def own_doing(words, binary, folder, device, options):
    """The bytes of parameters that the program's kernels read, and those of its launches that another run on the device has otherwise."""
    path = options.builds / f"{binary.name}.again"
    # Seeds are often the seconds of a clock.
    time.sleep(2)
    with DEVICE:
        command(words, folder, observing(path), options.patience)
    _, ptx, _ = command([Path(options.nvcc).parent / "cuobjdump", "-ptx", binary], folder)
    return agree.read_by_kernels(ptx), agree.unsteady(device, agree.lines(path.read_text()) if path.exists() else [])


def sanitized(binary, program, folder, options):
    """What NVIDIA's own checker says of a program that the emulator found at fault."""
    tool = Path(options.nvcc).parent / "compute-sanitizer"
    if not tool.exists():
        return None
    _, output, _ = command([tool, "--print-limit", "2", binary, *program.args], folder, None, options.patience)
    lines = [line.strip("= ").strip() for line in output.splitlines() if re.search(r"Invalid|Assertion|assert|ERROR SUMMARY|out of bounds", line)]
    return [pathless(line)[:160] for line in lines][:4]


def median(rows, *keys):
    return round(statistics.median(sum(row[key] for key in keys) for row in rows), 1) if rows else None


def summary(rows):
    built = [row for row in rows if row["built"]]
    ended = [row for row in built if row["ended"]]
    checked = [row for row in built if row["whole"] and row["right"] is not None]
    found = {
        "programs": len(rows),
        "programs that an earlier run stands for": sum("measured" in row for row in rows),
        "built": len(built),
        "ended": len(ended),
        "ended (% of those built)": round(100 * len(ended) / max(len(built), 1), 1),
        "ran whole": sum(row["whole"] for row in built),
        "ran whole and check themselves": len(checked),
        "of these right": sum(row["right"] for row in checked),
        "launch classes": sum(row["classes"] for row in built),
        "exact launch classes": sum(row["exact"] for row in built),
        "median seconds with the build": median(built, "build_s", "run_s"),
        "median seconds of the build": median(built, "build_s"),
        "median seconds of the run": median(built, "run_s"),
    }
    met = [row for row in built if "device" in row]
    if met:
        wrong = [row for row in checked if not row["right"]]
        pairs = [row for row in met if row["device"]["compared"]]
        exact = [row for row in pairs if row["ended"]]
        found |= {
            "not right, on the device neither": sum(row.get("device", {}).get("right") is False for row in wrong),
            "not right, and at fault by the checker": sum(bool(row.get("accused")) for row in wrong),
            "traced on a device as well": len(pairs),
            "of these ended": len(exact),
            "equal but for padding and for what two runs on the device do not agree on": sum(bool(row["device"].get("at first")) and row["device"]["all alike"] for row in exact),
            "all exact launches equal the device's": sum(row["device"]["all alike"] and not row["device"]["given"]["different"] for row in exact),
            "exact launches": sum(row["device"]["launches"] for row in exact),
            "of these equal": sum(row["device"]["alike"] for row in exact),
        }
    return found


WORD = {True: "yes", False: "no", None: ""}


def counted(head, words):
    """A table of reasons and how many programs have them."""
    lines = ["", f"| {head} | programs |", "|---|--:|"]
    return lines + [f"| {why.replace('|', '/')} | {count} |" for why, count in Counter(words).most_common()]


def table(document):
    lines = ["# Programs without a GPU", "", "Written by `bench/no_gpu.py`.", "", "| | |", "|---|--:|"]
    lines += [f"| {key} | {value} |" for key, value in (where(document) | document["summary"]).items()]
    built = [row for row in document["rows"] if row["built"]]
    lines += counted("not built because", (row["reason"] for row in document["rows"] if not row["built"]))
    lines += counted("not to its end because it", (row["reason"] for row in built if not row["ended"]))
    lines += counted("the first kernel that did not run", (row["not_computed"] for row in built if row["not_computed"]))
    lines += ["", "| suite | program | kernels | launches | exact | whole | right | build s | s | equal to the device's | right there |"]
    lines += ["|---|---|--:|--:|--:|---|---|--:|--:|--:|---|"]
    for row in built:
        device = row.get("device", {})
        alike = f"{device['alike']} of {device['launches']}" if device.get("compared") else ""
        lines.append(
            f"| {row['suite']} | {row['name']} | {row['kernels']} | {row['launches']} | {row['exact']} of {row['classes']} "
            f"| {WORD[row['whole']]} | {WORD[row['right']]} | {row['build_s']} | {row['run_s']} | {alike} | {WORD[device.get('right')]} |"
        )
    lines += ["", "| suite | program | what is said against it |", "|---|---|---|"]
    for row in built:
        lines += [f"| {row['suite']} | {row['name']} | {word.replace('|', '/')} |" for word in complaints(row)]
    return "\n".join(lines) + "\n"


def complaints(row):
    """What differs from the device's, and what is wrong with the program on the device, too."""
    device = row.get("device", {})
    found = [f"fault: {why}" for why in row["faults"]]
    found += [f"checked against itself: {why}" for why in row.get("accused", [])]
    found += [f"NVIDIA's checker: {line}" for line in device.get("sanitizer") or []]
    found += [f"on the device it says: {line}" for line in device.get("says") or []]
    found += [f"not compared, padding or otherwise in another run on the device, too: {why}" for why in device.get("at first", []) if device["all alike"]]
    if device.get("compared"):
        found += [*device["different"], *device["given"]["different"]]
    if "traces" in device:
        found += [f"other constants than in the device's trace: {kernel}" for kernel in device["traces"]["other constants"]]
    return found


def chosen(options):
    """The programs that are asked for; with `--made` those alone that were built, or could not be."""
    for program in PROGRAMS:
        is_asked = not options.only or program.name in options.only or program.suite in options.only
        kept = options.builds / f"{place_of(program, options).name}.build.json"
        if is_asked and (kept.exists() or not options.made):
            yield program


def lanes(options):
    """Sets of cores, one for each program that runs at a time; one of all cores where none is asked for."""
    cores = sorted(os.sched_getaffinity(0))
    if options.lanes is None:
        return [cores]
    return [cores[at * options.cores : (at + 1) * options.cores] for at in range(min(options.lanes, len(cores) // options.cores))]


def side_by_side(items, options, one):
    """`one` of each item, in their order, as many at a time as there are lanes; None of those that there is no time for."""
    free, begin = Queue(), time.monotonic()
    sets = lanes(options)
    for cores in sets:
        free.put(cores)

    def in_lane(item):
        cores = free.get()
        try:
            if options.until is not None and time.monotonic() - begin > options.until:
                return None
            # Of this thread alone, and of what it starts.
            os.sched_setaffinity(0, cores)
            result = one(item)
            if result:
                # What others had of the machine counts for seconds and for what a budget reaches.
                result.setdefault("load", round(os.getloadavg()[1], 1))
            print(json.dumps(result), flush=True)
            return result
        finally:
            free.put(cores)

    with ThreadPoolExecutor(len(sets)) as pool:
        return list(pool.map(in_lane, items))


def rows(options):
    """All programs; one's surprise is no reason to lose the others."""
    def one(program):
        try:
            row = run_one(program, options)
            if options.what == "compare" and row["built"]:
                row["device"] = on_device(program, row, options)
            return row
        except Exception as error:
            return unbuilt(program, f"{type(error).__name__}: {error}"[:160])

    programs = list(chosen(options))
    found = side_by_side(programs, options, one)
    left = lambda program: None if options.into else unbuilt(program, "no time was left")
    return [row for row in (row or left(program) for program, row in zip(programs, found)) if row]


def unbuilt(program, why):
    return {"suite": program.suite, "name": program.name, "built": False, "build_s": 0, "reason": why}


def where(document):
    """What a result was made on, and that which rows of an earlier one have instead."""
    before = document.get("before")
    earlier = {f"{name} on {before['date']}": value for name, value in before["machine"].items()} if before else {}
    return document.get("machine", {}) | earlier


def machine(options, found):
    """What it ran on, and how many tasks wanted its cores, ours with them."""
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    sets = lanes(options)
    own = {"build": Path(options.warpwright).parent.name, "processor": model[1] if model else "?", "cores": len(os.sched_getaffinity(0)), "programs at a time": len(sets), "cores a program": len(sets[0])}
    load = [row["load"] for row in found if "load" in row]
    return own | ({"tasks that want a core, median of 5 minutes each": statistics.median(load)} if load else {})


def prepare(options):
    options.builds.mkdir(parents=True, exist_ok=True)
    write_headers(options.builds / "include")
    if options.suites.is_file():
        archive, options.suites = options.suites, options.builds / "suites"
        if not options.suites.exists():
            with tarfile.open(archive) as file:
                file.extractall(options.suites, filter="data")
    if options.what == "compare":
        include = Path(options.nvcc).resolve().parent.parent / "include"
        source = Path(__file__).parent / "no_gpu_programs/observed.cpp"
        words = ["g++", "-O1", "-shared", "-fPIC", f"-I{include}", "-o", options.builds / "observed.so", source, "-ldl"]
        code, output, _ = command(words, options.builds)
        if code:
            sys.exit(output)


def joined(rows, earlier, key):
    """Rows of an earlier result with these in their places, and what the others were measured on."""
    own, old = {key(row): row for row in rows}, json.loads(earlier.read_text())
    # Parts of a day are one run.
    is_part = old["date"] == time.strftime("%Y-%m-%d")
    found = [own.get(key(row)) or ({} if is_part else {"measured": old["date"]}) | row for row in old["rows"]]
    before = old.get("before") if is_part else {name: old[name] for name in ("date", "machine")}
    return found, {"before": before} if before else {}


def run(options):
    prepare(options)
    found = rows(options)
    before = {}
    if options.into:
        found, before = joined(found, options.into, lambda row: (row["suite"], row["name"]))
    document = {"date": time.strftime("%Y-%m-%d"), "budget_s": options.budget, "machine": machine(options, found), **before, "summary": summary(found), "rows": found}
    print(json.dumps(document["summary"], indent=1))
    if options.output:
        options.output.write_text(json.dumps(document, indent=1) + "\n")
    if options.table:
        options.table.write_text(table(document))


def again(options):
    """A result with rows that another run printed, summed up anew."""
    document = json.loads(options.suites.read_text())
    key = lambda row: (row["suite"], row["name"])
    later = {key(row): row for row in printed_rows(options.printed)}
    document["rows"] = [later.get(key(row), row) for row in document["rows"]]
    document["summary"] = summary(document["rows"])
    return document


def printed_rows(logs):
    """The rows in what runs have printed."""
    return [json.loads(line) for path in logs for line in path.read_text().splitlines() if line.startswith(('{"suite"', '{"budget_s"'))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "compare", "table"])
    parser.add_argument("suites", type=Path, help="the suites; for `table`, a result")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--into", type=Path, help="a result whose other programs stay as they are")
    parser.add_argument("--budget", default="30")
    parser.add_argument("--gpu", default="h100")
    parser.add_argument("--seen", type=Path, help="a folder with what a device launched before (NAME.device), in its place")
    parser.add_argument("--lanes", type=int, help="programs that run at a time (default: one, on all cores)")
    parser.add_argument("--cores", type=int, default=2, help="cores that each of them has")
    parser.add_argument("--until", type=float, help="begin no other program after so many seconds")
    parser.add_argument("--patience", type=float, default=600, help="seconds that a run of a program may take on the wall")
    parser.add_argument("--builds", type=Path, default=Path("/tmp/warpwright-no-gpu"))
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "nvcc")
    parser.add_argument("--warpwright", default="target/release/warpwright")
    parser.add_argument("--printed", type=Path, nargs="*", default=[], help="for `table`: what later runs have printed")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    options.suites, options.builds = options.suites.resolve(), options.builds.resolve()
    if "/" in options.warpwright:
        options.warpwright = str(Path(options.warpwright).resolve())
    if options.what == "table":
        document = again(options)
        options.table.write_text(table(document))
        if options.output:
            options.output.write_text(json.dumps(document, indent=1) + "\n")
    else:
        run(options)


if __name__ == "__main__":
    main()
