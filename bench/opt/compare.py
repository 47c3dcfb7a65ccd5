"""What bench/opt.sh does, and says at its head."""

import concurrent.futures
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

after, before, out, *files = sys.argv[1:]
ALLOWED = sorted(os.sched_getaffinity(0))
WANTED = [int(core) for core in os.environ.get("CORES", "").split(",") if core] or ALLOWED[:2]
LIMIT = float(os.environ.get("LIMIT", "120"))
TIMING = os.environ.get("SECONDS_OF_TIMING", "3")
# No further kernel is timed on the GPU after so many seconds.
DEADLINE = float(os.environ.get("DEADLINE", "inf"))
begun = time.monotonic()
work = Path(tempfile.mkdtemp(prefix="opt-"))


def examples():
    for toml in sorted(Path("examples").glob("*/*.toml")):
        source = toml.with_suffix(".cu")
        if source.exists() and toml.parent.name not in ("reference", "stencils"):
            yield toml.stem, source, ["--launch", str(toml)]


def opt(binary, name, source, arguments, cores, label):
    """One run of `opt` with an empty cache, on these cores."""
    folder = work / label / name
    folder.mkdir(parents=True)
    cubin = folder / "chosen.cubin"
    command = ["taskset", "-c", ",".join(map(str, cores)), binary, "opt", str(source), *arguments, "--gpu", "h200",
               "--no-database", "--json", "-o", str(cubin)]
    start = time.monotonic()
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT,
                             env={**os.environ, "WARPWRIGHT_CACHE": str(folder / "cache")})
    except subprocess.TimeoutExpired:
        return {"name": name, "failed": f"more than {LIMIT:g} seconds"}
    result = {"name": name, "seconds": round(time.monotonic() - start, 3)}
    shutil.rmtree(folder / "cache", ignore_errors=True)
    if run.returncode != 0:
        result["failed"] = run.stderr[-300:]
        return result
    result["kernels"] = []
    for kernel in json.loads(run.stdout)["kernels"]:
        chosen = kernel["candidates"][kernel["chosen"]]
        result["kernels"].append({
            "name": kernel["name"],
            "choice": text(chosen["recipe"]),
            "predicted": (chosen.get("score") or {}).get("relative_time"),
            "candidates": len(kernel["candidates"]),
        })
    return result


def text(recipe):
    """A recipe as text; the first version wrote a list of decisions."""
    if isinstance(recipe, str):
        return recipe or "default"
    known = {"max-registers": "maxnreg({registers})", "block-bound": "maxntid({threads})",
             "min-blocks": "minnctapersm({blocks})", "shared-spilling": "smem-spilling",
             "register-usage-level": "usage-level({level})", "reduce": "reduce({registers})",
             "allocate": "allocate({registers}, blocks={blocks})", "throttle": "throttle({blocks})",
             "spill-to-shared": "spill-to-shared", "spill-hottest-to-shared": "spill-to-shared(blocks={blocks})"}
    return "; ".join(known[d["decision"]].format(**d) for d in recipe) or "default"


def side_by_side(jobs):
    """Runs on all cores but those of the timing, two for each: (binary, label, job) -> results by label and name."""
    rest = [core for core in ALLOWED if core not in WANTED] or WANTED
    pairs = [rest[i:i + 2] for i in range(0, len(rest) - 1, 2)] or [rest]
    todo, done = queue.Queue(), {"before": {}, "others": {}}
    for job in jobs:
        todo.put(job)

    def work_off(cores):
        while True:
            try:
                binary, label, job = todo.get_nowait()
            except queue.Empty:
                return
            done[label][job[0]] = opt(binary, *job, cores, label)

    threads = [threading.Thread(target=work_off, args=(pair,)) for pair in pairs]
    for thread in threads:
        thread.start()
    return threads, done


def build(name, source, arguments):
    """All candidates of a kernel; why not, if that fails."""
    folder = work / "measure" / name
    folder.parent.mkdir(exist_ok=True)
    try:
        run = subprocess.run([after, "tune", str(source), *arguments, "--size", "full", "--gpu", "h200",
                              "--build-only", str(folder)], capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT:g} seconds"
    return run.stderr[-300:] if run.returncode != 0 else None


def measure(name, choices):
    """The default and the two chosen builds, in turns within one process."""
    folder = work / "measure" / name
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    candidates, cubins = manifest["report"]["candidates"], manifest["files"]
    default = next(i for i, c in enumerate(candidates) if text(c["recipe"]) == "default")
    kept, names = [candidates[default]], [cubins[default]]
    for label, recipe in choices.items():
        if recipe == "default":
            continue
        like = next((c for c in candidates if text(c["recipe"]) == recipe), None) or candidates[default]
        kept.append({**like, "recipe": recipe})
        names.append(f"{label}.cubin")
        shutil.copy(work / label / name / "chosen.cubin", folder / f"{label}.cubin")
    manifest["report"].update(candidates=kept, chosen=0)
    manifest["files"] = names
    file.write_text(json.dumps(manifest))
    result = folder / "result.json"
    alone = work / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir()
    (alone / name).symlink_to(folder)
    run = subprocess.run([after, "tune", "--measure-only", str(alone), "--exhaustive", "--budget", TIMING,
                          "--output", str(result)], capture_output=True, text=True, timeout=LIMIT)
    if run.returncode != 0:
        return {"failed": run.stderr[-300:]}
    suite = json.loads(result.read_text())
    if not suite["kernels"]:
        return {"failed": str(suite["failures"])[:300]}
    measured = suite["kernels"][0]["measurements"]
    by_place = dict(zip([n for n in names], measured["variants"]))
    times = {}
    for label, recipe in choices.items():
        variant = by_place.get(cubins[default] if recipe == "default" else f"{label}.cubin") or {}
        time_ns, ratio = variant.get("time_ns"), variant.get("ratio")
        times[label] = {"verdict": variant.get("verdict"), "median_ns": time_ns and time_ns["median"],
                        "low_ns": time_ns and time_ns["low"], "high_ns": time_ns and time_ns["high"],
                        "over_default": 1.0 if recipe == "default" else ratio and ratio["median"]}
    pair = [times[label]["median_ns"] for label in ("before", "after")]
    both = {"after_over_before": round(pair[1] / pair[0], 4)} if all(pair) else {}
    return {**times, **both, "noise": measured.get("noise"), "environment": measured["environment"]["device"]}


jobs = list(examples())
beside = [(after, "others", (Path(file).stem, file, ["--block", "128"])) for file in files]
beside += [(before, "before", job) for job in jobs] if before else []
threads, done = side_by_side(beside)
timed = [opt(after, *job, WANTED, "after") for job in jobs]
for thread in threads:
    thread.join()
older, others = done["before"], list(done["others"].values())
differ = []
for job, new in zip(jobs, timed):
    old = older.get(job[0])
    if not old or "kernels" not in old or "kernels" not in new:
        continue
    (was, now) = (old["kernels"][0], new["kernels"][0])
    if was["choice"] != now["choice"]:
        differ.append({"name": job[0], "before": was, "after": now,
                       "before_seconds": old["seconds"], "after_seconds": new["seconds"]})
has_gpu = subprocess.run(["nvidia-smi"], capture_output=True).returncode == 0 if shutil.which("nvidia-smi") else False
names = [entry["name"] for entry in differ]
wanted = [job for job in jobs if job[0] in names] if has_gpu else []
with concurrent.futures.ThreadPoolExecutor(max(1, len(ALLOWED) // 2)) as pool:
    built = dict(zip([job[0] for job in wanted], pool.map(lambda job: build(*job), wanted)))
for entry in differ if has_gpu else []:
    try:
        why = built[entry["name"]] or ("no time was left" if time.monotonic() - begun > DEADLINE else None)
        choices = {label: entry[label]["choice"] for label in ("before", "after")}
        entry["measured"] = {"failed": why} if why else measure(entry["name"], choices)
    except Exception as error:  # One kernel that fails must not end the run.
        entry["measured"] = {"failed": repr(error)[:300]}
seconds = [run["seconds"] for run in timed if "kernels" in run]
version = subprocess.run([after, "toolkit"], capture_output=True, text=True).stdout
result = {
    "schema": "warpwright.opt-times/1",
    "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "cores": len(WANTED),
    "cpu": next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), ""),
    "toolkit": [line.strip() for line in version.splitlines() if "ptxas" in line or "nvcc" in line],
    "median_seconds": statistics.median(seconds) if seconds else None,
    "slowest_seconds": max(seconds, default=None),
    "examples": timed,
    "others": others,
    "before_failed": [run for run in older.values() if "failed" in run],
    "choices_that_differ": differ,
}
Path(out).parent.mkdir(parents=True, exist_ok=True)
Path(out).write_text(json.dumps(result, indent=1) + "\n")
shutil.rmtree(work, ignore_errors=True)
print(f"{len(seconds)} of {len(timed)} examples: median {result['median_seconds']} s, slowest {result['slowest_seconds']} s")
for run in sorted(timed, key=lambda run: -run.get("seconds", 1e9))[:5]:
    print("   ", run["name"], run.get("seconds"), run.get("failed", "")[:100])
for run in sorted(others, key=lambda run: -run.get("seconds", 1e9))[:8]:
    print("    file", run["name"], run.get("seconds"), run.get("failed", "")[:100])
print(f"{len(differ)} choices differ from the older release's; {len(result['before_failed'])} of its runs failed")
for entry in differ:
    measured = entry.get("measured", {})
    print("   ", entry["name"], entry["before"]["choice"], "->", entry["after"]["choice"],
          measured.get("after_over_before", measured.get("failed", "")))
