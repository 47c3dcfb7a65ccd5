#!/usr/bin/env python3
"""Random stencils or naive kernels: originals against what is made of them, on a GPU, plainly and under compute-sanitizer.

The programs, from the root of the repository:
    cargo run --release -p warpwright-stencilgen -- gpu --count 300 --seed 7 --out PROGRAMS
    cargo run --release -p warpwright-naivegen -- device --count 240 --seed 23 --gallery docs/gallery --out PROGRAMS
Then, where the GPU and nvcc are:
    python3 bench/devicefuzz.py PROGRAMS RESULT.json [SECONDS]

SECONDS (225): all ends by then. RESULT.json has what is known so far, from the first program on. Every program is built
and run before the first one is run under a sanitizer. A case that faults or hangs is named, and the program goes on
behind it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BEGIN = time.monotonic()
PROGRAMS, RESULT = Path(sys.argv[1]), Path(sys.argv[2]).absolute()
# The last results are written when everything has ended.
LIMIT = float(sys.argv[3] if len(sys.argv) > 3 else 225) - 5
WORK = Path(tempfile.mkdtemp())
os.environ["PATH"] += ":/usr/local/cuda/bin"
TOOLS = ("memcheck", "racecheck")
LOCK = threading.Lock()

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.cu"))
TEXTS = {name: (PROGRAMS / f"{name}.cu").read_text() for name in NAMES}
result = {
    "schema": "warpwright.devicefuzz/2", "programs": len(NAMES), "built": 0, "ran": 0, "seconds": 0,
    "kernels": sum(len(set(re.findall(r'begin\("(\w+)', text))) for text in TEXTS.values()),
    "comparisons": 0, "differences": 0, "errors": 0, "cut_off": 0, "not_built": {}, "findings": [],
    "memcheck": {}, "racecheck": {},
}


def left():
    return LIMIT - (time.monotonic() - BEGIN)


def command(words, most):
    """The exit status (None: it was ended, or never begun) and the output of a command that takes `most` seconds at most."""
    seconds = min(most, left())
    if seconds < 1:
        return None, ""
    with tempfile.TemporaryFile() as output:
        # In a group of its own, so that what it started ends with it.
        process = subprocess.Popen(
            words, stdout=output, stderr=subprocess.STDOUT, cwd=PROGRAMS, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        output.seek(0)
        return status, output.read().decode(errors="replace")


def one_line(words):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=20).stdout.strip().splitlines()[-1]
    except (OSError, IndexError, subprocess.TimeoutExpired) as e:
        return str(e)


def write():
    result["seconds"] = round(time.monotonic() - BEGIN)
    partial = RESULT.with_suffix(".part")
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.replace(RESULT)


def found(program, case, what, how="plain"):
    result["findings"].append({"program": program, "case": case, "how": how, "what": what[:1500]})


def cases(output):
    return re.findall(r"^CASE (\d+) (.*)$", output, re.M)


def build(name):
    status, output = command(
        ["nvcc", "-w", "-O2", "-std=c++17", "-arch=sm_90", "-fmad=false", "-o", str(WORK / name), f"{name}.cu"], 200)
    with LOCK:
        if status == 0:
            result["built"] += 1
        elif status is None and left() < 1:
            result["cut_off"] += 1
        else:
            result["not_built"][name] = output[:800] or "nvcc does not end"
        write()
    return status == 0


def plain(name):
    at = 0
    while True:
        status, output = command([str(WORK / name), f"{name}.bin", str(at)], 60)
        begun = cases(output)
        with LOCK:
            for counted in re.findall(r'^\{"comparisons".*\}$', output, re.M):
                for key, count in json.loads(counted).items():
                    result[key] += count
            case = "before the first case"
            for line in output.splitlines():
                if line.startswith("CASE "):
                    case = line.split(" ", 2)[2]
                elif line.startswith(("DIFFERS", "ERROR")):
                    found(name, case, line)
            if status is None and left() < 1:
                result["cut_off"] += 1
                return write()
            # A program that ends by itself counts at its end.
            whole = '{"comparisons"' in output
            if status is None or not whole:
                found(name, case, "does not end" if status is None else f"exit status {status}: {output[-300:]}")
            if status in (0, 1) or not begun:
                result["ran"] += status in (0, 1)
                return write()
            write()
        at = int(begun[-1][0]) + 1


def check(tool, name):
    status, output = command(
        ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", str(WORK / name), f"{name}.bin"], 150)
    lines = [line for line in output.splitlines() if line.startswith("=========")]
    with LOCK:
        ran = "not run" if not output else "cut off" if status is None else "clean" if status == 0 else "findings"
        result[tool][ran] = result[tool].get(ran, 0) + 1
        if ran == "findings":
            kernels = re.findall(r"(?:\bat|\bin) (?:void )?(?:\w+::)*(\w+?)(?:<[^(]*>)?\(", "\n".join(lines))
            case = ", ".join(dict.fromkeys(kernels)) or (cases(output) or [("", "?")])[-1][1]
            found(name, case, "\n".join(lines), tool)
        write()


def all_of(work, names, at_once):
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, names))


result["gpu"] = one_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
result["nvcc"] = one_line(["nvcc", "--version"])
write()
cores = os.cpu_count() or 1
built = all_of(lambda name: build(name) and (plain(name), True)[1], NAMES, cores)
ready = [name for name, is_built in zip(NAMES, built) if is_built]
for tool in TOOLS:
    if one_line(["compute-sanitizer", "--version"]).startswith("[Errno"):
        result[tool] = "no compute-sanitizer"
        continue
    all_of(lambda name: check(tool, name), ready, max(1, cores // 2))
write()
print(json.dumps(result, indent=1))
sys.exit(bool(result["findings"] or result["not_built"]))
