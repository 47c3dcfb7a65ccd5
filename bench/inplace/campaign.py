#!/usr/bin/env python3
"""Runs programs plain, traced, tuned and with their winners; compares what they print; writes one JSON file.

campaign.py TOOL OUT [PROGRAM…]

TOOL: folder with `warpwright` and `libwarpwright_inject.so`. Needs nvcc for the programs of ours, and for
candidates from PTX. Nothing is written outside a folder of its own and OUT."""
import datetime
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL, OUT, ONLY = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]
WARPWRIGHT, LIBRARY = TOOL / "warpwright", TOOL / "libwarpwright_inject.so"
WORK = Path(tempfile.mkdtemp(prefix="inplace-"))
LIMIT = 240
BUILDS = {
    # -maxrregcount: what people leave in their build files.
    "fields": ["-maxrregcount=32"],
    "graphs": ["-cudart", "shared"],
    "streams": ["--default-stream", "per-thread", "-maxrregcount=24"],
    "empty": [],
}
SCRIPTS = ["train", "autotune", "arrays", "waves"]


def sh(words, **more):
    started = time.monotonic()
    env = {**os.environ, **more.pop("env", {})}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, env=env, errors="replace", **more)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as e:
        code, out, err = 124, "", f"timeout: {e}"
    return {"code": code, "out": out, "err": err, "wall_s": time.monotonic() - started}


def build():
    for name, options in BUILDS.items():
        words = ["nvcc", "-O3", "-std=c++17", "-arch=sm_90", "-o", str(WORK / name), str(HERE / f"{name}.cu"), *options]
        done = sh(words)
        if done["code"]:
            print(name, "is not built:", done["err"], file=sys.stderr)


def command(name):
    if name in BUILDS:
        return [str(WORK / name)]
    return [sys.executable, str(HERE / f"{name}.py")]


def environment(name, folder):
    """Caches of its own for each program, shared by all its runs: the same code each time."""
    caches = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUPY_CACHE_DIR": "cupy"}
    env = {variable: str(folder / cache) for variable, cache in caches.items()}
    env["WARPWRIGHT_DB"] = str(folder / "db")
    env["PYTHONUNBUFFERED"] = "1"
    return env


def totals(trace):
    return {f"{l['name']} | {l['block']} {l['dynamic_smem']} {l['grid']}": l for l in trace["launches"]}


def itself(trace, modules, store):
    """A store in which every kernel that stands alone has a copy of itself: replacing may change nothing."""
    store.mkdir(parents=True, exist_ok=True)
    count = 0
    for l in trace["launches"]:
        if l["tied"] is not None or not l["digest"] or l["launches"] + l["in_graphs"] == 0:
            continue
        blocks = l["grid"][0] * l["grid"][1] * l["grid"][2]
        triple = lambda t: ",".join(map(str, t))
        klass = f"{triple(l['block'])} smem {l['dynamic_smem']} cluster {triple(l['cluster'] or [0, 0, 0])} grid {blocks.bit_length() - 1}"
        facts = {
            "kernel": l["digest"], "gpu": trace["gpu"]["name"], "class": klass, "symbol": l["kernel"], "recipe": "itself",
            "proof": "the same code", "original-ns": 1, "winner-ns": 1, "driver": trace["gpu"]["driver"], "date": "2026-01-01",
        }
        body = "".join(f"{k} {v}\n" for k, v in facts.items()).encode() + b"\n" + (modules / f"{l['module']}.cubin").read_bytes()
        head = f"warpwright-winner 1 {len(body)} {hashlib.sha256(body).hexdigest()}\n".encode()
        name = l["digest"][:32] + "-" + hashlib.sha256(f"{facts['gpu']}\n{klass}".encode()).hexdigest()[:16]
        (store / f"{name}.winner").write_bytes(head + body)
        count += 1
    return count


def read(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def program(name):
    folder = WORK / f"of-{name}"
    folder.mkdir()
    env, words = environment(name, folder), command(name)
    result = {"program": name}
    tool = [str(WARPWRIGHT)]
    warm = sh(words, env=env)
    plain = [sh(words, env=env) for _ in range(2)]
    result["plain"] = {"code": plain[0]["code"], "wall_s": [p["wall_s"] for p in plain], "output": plain[0]["out"][-2000:], "err": plain[0]["err"][-500:] if plain[0]["code"] else ""}
    if plain[0]["code"] or warm["code"]:
        result["skipped"] = "it does not run here"
        return result
    deterministic = plain[0]["out"] == plain[1]["out"]
    result["deterministic"] = deterministic

    def same(run):
        return run["code"] == 0 and (not deterministic or run["out"] == plain[0]["out"])

    def entry(run):
        text = {"ok": same(run), "code": run["code"], "wall_s": run["wall_s"]}
        if not same(run):
            text |= {"output": run["out"][-1000:], "err": run["err"][-2000:]}
        return text

    # The trace's table goes to standard output behind the program's: --json -o keeps it apart.
    def traced(mode, store, label):
        seen = folder / f"seen-{label}"
        seen.mkdir()
        preload = {"LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": mode, "WARPWRIGHT_DIR": str(seen), "WARPWRIGHT_LOG": str(seen / "log"), "WARPWRIGHT_DB": str(store)}
        run = sh(words, env={**env, **preload})
        return run, read(seen / "log")

    trace_file = folder / "trace.json"
    run = sh([*tool, "trace", "-o", str(trace_file), "--rows", "12", "--", *words], env=env)
    table = run["out"]
    if deterministic and table.startswith(plain[0]["out"]):
        table, run["out"] = table[len(plain[0]["out"]):], plain[0]["out"]
    result["trace"] = {**entry(run), "table": table[-4000:]}
    if not trace_file.exists():
        return result
    trace = json.loads(trace_file.read_text())
    modules = Path(trace["modules_in"])
    result["kernels"] = len({l["kernel"] for l in trace["launches"]})
    result["launches"] = sum(l["launches"] + l["in_graphs"] for l in trace["launches"])
    result["gpu_ms"] = sum(l["gpu_ns"] for l in trace["launches"]) * 1e-6
    result["modules"] = len(trace["modules"])
    result["not_seen"] = trace["not_seen"]
    result["ties"] = sorted({l["tied"] for l in trace["launches"] if l["tied"]})

    # Every kernel by a copy of itself.
    own = folder / "itself"
    count = itself(trace, modules, own)
    run = sh(words, env={**env, "LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "with", "WARPWRIGHT_LOG": str(folder / "itself.log"), "WARPWRIGHT_DB": str(own)})
    log = read(folder / "itself.log")
    result["itself"] = {**entry(run), "copies": count, "replaced": log.count(" is replaced: "), "log": [l for l in log.splitlines() if "is replaced" not in l][:20]}

    # Tune, and run with the winners.
    report = folder / "tune.json"
    run = sh([*tool, "tune", "--report-to", str(report), "--", *words], env={**env, "WARPWRIGHT_LOG": str(folder / "tune.log")})
    result["tune"] = {**entry(run), "said": run["err"][-3000:], "log": read(folder / "tune.log").splitlines()[:20]}
    if report.exists():
        result["tune"]["kernels"] = json.loads(report.read_text())["kernels"]
    runs = [sh([*tool, "with", "--", *words], env={**env, "WARPWRIGHT_LOG": str(folder / "with.log")}) for _ in range(2)]
    log = read(folder / "with.log")
    result["with"] = {**entry(runs[1]), "walls": [r["wall_s"] for r in runs], "replaced": log.count(" is replaced: "), "log": log.splitlines()[:12]}

    # GPU time of the same kernels before and after, by events in both.
    before, after = [], []
    for turn in range(3):
        for mode, times in (("trace", before), ("trace+with", after)):
            seen = folder / f"turn-{turn}-{mode}"
            seen.mkdir()
            sh(words, env={**env, "LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": mode, "WARPWRIGHT_DIR": str(seen), "WARPWRIGHT_LOG": str(seen / "log")})
            total = {}
            for file in seen.glob("launches-*.notes"):
                for line in file.read_text().splitlines():
                    if line.startswith("launches "):
                        f = line.split(" ")
                        timed = max(int(f[5]), 1)
                        ns = int(int(f[6]) * int(f[3]) / timed) + int(f[7])
                        key = " ".join(f[10:])
                        total[key] = total.get(key, 0) + ns
            times.append(total)
    medians = lambda runs: {k: statistics.median(r.get(k, 0) for r in runs) for k in set().union(*runs)}
    a, b = medians(before), medians(after)
    result["gpu_ns_before"], result["gpu_ns_after"] = sum(a.values()), sum(b.values())
    rows = [{"kernel": k, "before_ns": a.get(k), "after_ns": b.get(k)} for k in sorted(a, key=lambda k: -a[k])[:12]]
    result["by_kernel"] = rows
    return result


def faults():
    """What must not harm a program: bad stores, full disks, too little memory."""
    folder, name = WORK / "of-fields", "fields"
    env, words = environment(name, folder), command(name)
    plain = sh(words, env=env)
    found = {}

    def check(label, run, **more):
        found[label] = {"ok": run["code"] == 0 and run["out"] == plain["out"], "code": run["code"], **more}
        if not found[label]["ok"]:
            found[label]["err"] = run["err"][-1000:]

    bad = folder / "bad-db"
    source = folder / "itself"
    shutil.copytree(source, bad)
    for i, file in enumerate(sorted(bad.glob("*.winner"))):
        bytes = file.read_bytes()
        file.write_bytes([bytes[: len(bytes) // 2], b"", bytes[:-1] + b"x", b"warpwright-winner 9 1 x\n", os.urandom(3000)][i % 5])
    log = folder / "bad.log"
    run = sh([str(WARPWRIGHT), "with", "--db", str(bad), "--", *words], env={**env, "WARPWRIGHT_LOG": str(log)})
    check("a truncated database", run, log=read(log).splitlines()[:5])

    small = folder / "small"
    small.mkdir()
    mounted = sh(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)])
    if mounted["code"] == 0:
        filler = small / "filler"
        try:
            filler.write_bytes(b"x" * 65536)
        except OSError:
            pass
        run = sh([str(WARPWRIGHT), "with", "--db", str(small), "--", *words], env={**env, "WARPWRIGHT_LOG": str(small / "log")})
        check("a full disk for the log", run)
        run = sh(words, env={**env, "LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "trace", "WARPWRIGHT_DIR": str(small), "WARPWRIGHT_LOG": str(small / "log")})
        check("a full disk for the trace", run)
        sh(["umount", str(small)])
    else:
        found["a full disk"] = {"skipped": mounted["err"][-200:]}

    def planned(label, ptx_of, cause):
        """A candidate made for the purpose, tried as `tune` would."""
        trace = json.loads((folder / "trace.json").read_text())
        row = next(l for l in trace["launches"] if "axpy" in l["kernel"])
        work = folder / f"try-{cause}"
        work.mkdir()
        source = work / "bad.cu"
        source.write_text(ptx_of)
        built = sh(["nvcc", "-arch=sm_90", "-cubin", "-o", str(work / "bad.cubin"), str(source)])
        if built["code"]:
            found[label] = {"skipped": built["err"]}
            return
        blocks = row["grid"][0] * row["grid"][1] * row["grid"][2]
        klass = f"{','.join(map(str, row['block']))} smem {row['dynamic_smem']} cluster 0,0,0 grid {blocks.bit_length() - 1}"
        (work / "plan").write_text(f"try {row['digest']} 3 5 {klass} bad.cubin {cause} {row['kernel']}\n")
        run = sh(words, env={**env, "LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "try", "WARPWRIGHT_DIR": str(work), "WARPWRIGHT_LOG": str(work / "log")})
        notes = [line[:200] for file in work.glob("trials-*.notes") for line in file.read_text().splitlines()[1:]]
        marks = [file.read_text() for file in work.glob("in-flight-*")]
        found[label] = {"code": run["code"], "same_output": run["out"] == plain["out"], "notes": notes, "in_flight": marks, "log": read(work / "log").splitlines()[:5]}
        if cause == "crash":
            found[label]["ok"] = run["code"] != 0 and any("crash" in m for m in marks)
        else:
            found[label]["ok"] = run["code"] == 0 and run["out"] == plain["out"] and any(" differs " in n for n in notes)

    head = "__global__ void axpy(float *y, const float *x, int n, float a) { int step = gridDim.x * blockDim.x; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) "
    planned("a wrong candidate", head + "y[i] += a * x[i] + (i == 12345 ? 1 : 0); }", "wrong")
    planned("a candidate that crashes", head + "*(float *)(i * 4096ll) = a; }", "crash")

    script = "import torch; f, t = torch.cuda.mem_get_info(); x = torch.empty(int(f * 0.7) // 4, device='cuda'); x[:1000000].fill_(1); y = torch.ones(1 << 20, device='cuda')\nfor i in range(20): y = torch.sin(y) * 2 + y\ntorch.cuda.synchronize(); print(y.sum().item())"
    first = sh([sys.executable, "-c", script], env=env)
    trace_file = folder / "hog.json"
    sh([str(WARPWRIGHT), "trace", "-o", str(trace_file), "--", sys.executable, "-c", script], env=env)
    if trace_file.exists():
        trace = json.loads(trace_file.read_text())
        rows = [l for l in trace["launches"] if l["tied"] is None and l["launches"] > 3]
        work = folder / "try-hog"
        work.mkdir()
        plan = ""
        for i, row in enumerate(rows):
            blocks = row["grid"][0] * row["grid"][1] * row["grid"][2]
            klass = f"{','.join(map(str, row['block']))} smem {row['dynamic_smem']} cluster 0,0,0 grid {blocks.bit_length() - 1}"
            shutil.copy(Path(trace["modules_in"]) / f"{row['module']}.cubin", work / f"{i}.cubin")
            plan += f"try {row['digest']} 2 3 {klass} {i}.cubin itself {row['kernel']}\n"
        (work / "plan").write_text(plan)
        run = sh([sys.executable, "-c", script], env={**env, "LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "try", "WARPWRIGHT_DIR": str(work), "WARPWRIGHT_LOG": str(work / "log")})
        notes = [line[:200] for file in work.glob("trials-*.notes") for line in file.read_text().splitlines()[1:]]
        ok = run["code"] == 0 and run["out"] == first["out"] and any("cannot be saved" in n for n in notes)
        found["too little memory for saving"] = {"ok": ok, "code": run["code"], "notes": notes[:6], "log": read(work / "log").splitlines()[:5], "err": run["err"][-600:] if run["code"] else ""}
    return found


def overhead():
    """What a launch costs the host, with the library in its modes, in turns."""
    words = command("empty")
    env = environment("empty", WORK)
    itself_store = WORK / "of-fields" / "itself"
    modes = {
        "plain": {},
        "with, empty store": {"LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "with", "WARPWRIGHT_DB": str(WORK / "none")},
        "with, other kernels in the store": {"LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "with", "WARPWRIGHT_DB": str(itself_store)},
        "loaded, no mode": {"LD_PRELOAD": str(LIBRARY)},
    }
    ns = {mode: [] for mode in modes}
    for _ in range(9):
        for mode, more in modes.items():
            run = sh(words, env={**env, **more})
            match = re.search(r"ns ([0-9.]+) least ([0-9.]+)", run["err"])
            if match:
                ns[mode].append(float(match[1]))
    return {mode: {"median_ns": statistics.median(v), "all": v} for mode, v in ns.items() if v}


def main():
    query = sh(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])["out"].strip().splitlines()
    nvcc = re.search(r"release ([0-9.]+), V([0-9.]+)", sh(["nvcc", "--version"])["out"] if shutil.which("nvcc") else "")
    document = {
        "schema": "warpwright.in-place/1",
        "gpu": query[0].split(", ")[0] if query else None,
        "driver": query[0].split(", ")[1] if query else None,
        "toolkit": nvcc[2] if nvcc else None,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "warpwright": sh([str(WARPWRIGHT), "--version"])["out"].strip(),
        "programs": [],
    }
    build()
    names = ONLY or ["fields", "graphs", "streams", *SCRIPTS]

    def save():
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text(json.dumps(document, indent=1) + "\n")

    for name in names:
        print(f"== {name}", flush=True)
        try:
            result = program(name)
        except Exception as e:
            result = {"program": name, "failed": repr(e)}
        document["programs"].append(result)
        for part in ("trace", "itself", "tune", "with"):
            if part in result:
                print(part, {k: v for k, v in result[part].items() if k in ("ok", "code", "wall_s", "copies", "replaced")}, flush=True)
        save()
    if not ONLY or "fields" in ONLY:
        for key, work in (("faults", faults), ("launch_overhead", overhead)):
            try:
                document[key] = work()
            except Exception as e:
                document[key] = {"failed": repr(e)}
            print(key, json.dumps(document[key])[:1500], flush=True)
            save()
    shutil.rmtree(WORK, ignore_errors=True)


main()
