#!/usr/bin/env python3
"""Runs programs plain, traced, tuned and with their winners; compares what they print; writes one JSON file.

campaign.py TOOL OUT [PROGRAM…]     (`hog` is the one that leaves no memory for a copy)

TOOL: folder with `warpwright` and `libwarpwright_in*.so`. Needs nvcc for the programs of ours, and for
candidates from PTX. Nothing is written outside a folder of its own and OUT."""
import datetime
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL, OUT, ONLY = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]
WARPWRIGHT, LIBRARY = TOOL / "warpwright", TOOL / "libwarpwright_inject.so"
WORK = Path(tempfile.mkdtemp(prefix="inplace-"))
LIMIT = 60
BEGUN = time.monotonic()
DEADLINE = float(os.environ.get("CAMPAIGN_SECONDS", "280"))
# `-arch=compute_75 -code=compute_75`: the driver compiles the programs.
ARCH = os.environ.get("CAMPAIGN_ARCH", "-arch=sm_90").split()
BUILDS = {
    # -maxrregcount: what people leave in their build files.
    "fields": ["-maxrregcount=32"],
    "graphs": ["-cudart", "shared"],
    "streams": ["--default-stream", "per-thread", "-maxrregcount=24"],
    "empty": [],
    "launch": ["-ldl"],
}
SCRIPTS = ["train", "autotune", "arrays", "waves"]


def read(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def sh(words, env=None, limit=LIMIT):
    """Runs a command; after `limit` seconds it and what it started are ended."""
    started = time.monotonic()
    left = DEADLINE - (started - BEGUN)
    if left < 2:
        return {"code": 125, "out": "", "err": "the campaign's time is up", "wall_s": 0.0}
    try:
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, **(env or {})}, start_new_session=True)
    except OSError as e:
        return {"code": 127, "out": "", "err": str(e), "wall_s": 0.0}
    try:
        out, err = child.communicate(timeout=min(limit, left))
        code = child.returncode
    except subprocess.TimeoutExpired:
        where = [f"{t}: {read(t / 'wchan')} {read(t / 'syscall').strip()}" for t in Path(f"/proc/{child.pid}/task").glob("*")][:20]
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        code, err = 124, f"{err[-1500:]}\nended after {limit} s; threads: {where}"
    return {"code": code, "out": out, "err": err, "wall_s": time.monotonic() - started}


def build():
    def one(name, options):
        words = ["nvcc", "-O3", "-std=c++17", *ARCH, "-o", str(WORK / name), str(HERE / f"{name}.cu"), *options]
        done = sh(words)
        if done["code"]:
            print(name, "is not built:", done["err"], flush=True)

    together([lambda n=name, o=options: one(n, o) for name, options in BUILDS.items()])


def together(works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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


def run(words, env, mode="", folder=None, store=None, limit=LIMIT):
    """The program, with the library in a mode."""
    more = {}
    if mode:
        folder.mkdir(exist_ok=True)
        more = {"LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": mode, "WARPWRIGHT_DIR": str(folder), "WARPWRIGHT_LOG": str(folder / "log")}
        if store:
            more["WARPWRIGHT_DB"] = str(store)
    return sh(words, env={**env, **more}, limit=limit)


def told(name, what, result):
    print(f"{time.monotonic() - BEGUN:6.1f} s  {name}: {what}: code {result['code']}, {result['wall_s']:.1f} s", flush=True)
    return result


def seen(folder):
    """Nanoseconds and launches by kernel and class, from the library's notes."""
    total = {}
    for file in folder.glob("launches-*.notes"):
        for line in file.read_text().splitlines():
            if line.startswith("launches "):
                f = line.split(" ")
                ns = int(int(f[6]) * int(f[3]) / max(int(f[5]), 1)) + int(f[7])
                key = " ".join(f[10:])
                before = total.get(key, (0, 0))
                total[key] = (before[0] + ns, before[1] + int(f[3]) + int(f[4]))
    return total


class Program:
    def __init__(self, name):
        self.name, self.folder = name, WORK / f"of-{name}"
        self.folder.mkdir()
        self.env, self.words = environment(name, self.folder), command(name)
        self.result, self.plain, self.trace = {"program": name}, None, None

    def entry(self, done):
        same = done["code"] == 0 and (not self.result["deterministic"] or done["out"] == self.plain["out"])
        text = {"ok": same, "code": done["code"], "wall_s": round(done["wall_s"], 2)}
        if not same:
            text |= {"output": done["out"][-1000:], "err": done["err"][-2000:]}
        return text

    def first(self):
        """Plain twice, traced, and every kernel replaced by a copy of itself."""
        result, name = self.result, self.name
        warm = told(name, "plain, first", sh(self.words, env=self.env, limit=150))
        self.plain = told(name, "plain", sh(self.words, env=self.env))
        result["plain"] = {"code": self.plain["code"], "wall_s": round(self.plain["wall_s"], 2), "output": self.plain["out"][-600:]}
        if self.plain["code"] or warm["code"]:
            result["skipped"] = "it does not run here: " + (warm["err"] + self.plain["err"])[-800:]
            return
        result["deterministic"] = warm["out"] == self.plain["out"]
        file = self.folder / "trace.json"
        done = told(name, "trace", sh([str(WARPWRIGHT), "trace", "-o", str(file), "--rows", "12", "--", *self.words], env=self.env))
        table = done["out"]
        if result["deterministic"] and table.startswith(self.plain["out"]):
            table, done["out"] = table[len(self.plain["out"]) :], self.plain["out"]
        result["trace"] = {**self.entry(done), "table": table[-4000:]}
        if not file.exists():
            return
        trace = self.trace = json.loads(file.read_text())
        result["kernels"] = len({l["kernel"] for l in trace["launches"]})
        result["launches"] = sum(l["launches"] + l["in_graphs"] for l in trace["launches"])
        result["modules"] = len(trace["modules"])
        result["not_seen"] = trace["not_seen"]
        result["ties"] = sorted({l["tied"] for l in trace["launches"] if l["tied"]})
        own = self.folder / "itself"
        count = itself(trace, Path(trace["modules_in"]), own)
        done = told(name, "itself", run(self.words, self.env, "with", self.folder / "run-itself", own))
        log = read(self.folder / "run-itself" / "log").splitlines()
        kept = [line for line in log if " is replaced: " not in line]
        result["itself"] = {**self.entry(done), "copies": count, "replaced": len(log) - len(kept), "log": kept[:12]}

    def second(self):
        """Tuned, run with the winners, and the GPU time before and after."""
        result, name = self.result, self.name
        if self.trace is None:
            return
        report = self.folder / "tune.json"
        words = [str(WARPWRIGHT), "tune", "--trace", str(self.folder / "trace.json"), "--report-to", str(report)]
        log = self.folder / "tune.log"
        done = told(name, "tune", sh([*words, "--", *self.words], env={**self.env, "WARPWRIGHT_LOG": str(log)}, limit=90))
        result["tune"] = {**self.entry(done), "said": done["err"][-1500:], "log": read(log).splitlines()[:12]}
        if report.exists():
            result["tune"]["kernels"] = json.loads(report.read_text())["kernels"]
        log = self.folder / "with.log"
        done = told(name, "with", sh([str(WARPWRIGHT), "with", "--", *self.words], env={**self.env, "WARPWRIGHT_LOG": str(log)}))
        result["with"] = {**self.entry(done), "replaced": read(log).count(" is replaced: "), "log": read(log).splitlines()[:12]}
        self.times(self.words)
        if name == "streams":
            # Times of launches that share the GPU say little of each: the same with one thread.
            result["one_thread"] = {}
            self.times([*self.words, "1"], result["one_thread"])

    def times(self, words, result=None):
        """GPU time by kernel without and with the winners, and with copies of the kernels in their place; the
        program's own window, past the library and through it. In turns."""
        result = self.result if result is None else result
        copies = self.folder / "itself"
        kinds = {"before": ("trace", None), "after": ("trace+with", None)}
        if self.name in BUILDS:
            kinds |= {"copies": ("trace+with", copies), "window": ("", None), "window_winners": ("with", None), "window_copies": ("with", copies)}
        found = {kind: [] for kind in kinds}
        for turn in range(5 if self.name in BUILDS else 2):
            for kind, (mode, store) in kinds.items():
                folder = Path(tempfile.mkdtemp(prefix=f"turn-{turn}-{kind}-", dir=self.folder))
                done = run(words, self.env, mode, folder, store)
                window = re.search(r"window_ms (\S+)", done["err"])
                if done["code"] == 0 and mode.startswith("trace"):
                    found[kind].append(seen(folder))
                elif done["code"] == 0 and window:
                    found[kind].append(float(window[1]))
        told(self.name, "turns", {"code": 0, "wall_s": 0.0})
        if not found["before"] or not found["after"]:
            return
        # As often as each kernel was launched before: a program that tunes itself does so by the clock.
        launches = {k: statistics.median(r.get(k, (0, 0))[1] for r in found["before"]) for k in set().union(*found["before"])}
        scaled = lambda r: {k: r[k][0] / max(r[k][1], 1) * n for k, n in launches.items() if k in r}
        median = lambda runs: {k: statistics.median(r[k] for r in runs if k in r) for k in set().union(*runs)}
        of = {kind: median([scaled(r) for r in runs]) for kind, runs in found.items() if runs and isinstance(runs[0], dict)}
        everywhere = set(launches).intersection(*of.values())
        for kind, times in of.items():
            result[f"gpu_ns_{kind}"] = round(sum(times[k] for k in everywhere))
            result[f"gpu_ns_{kind}_all"] = [round(sum(scaled(r).get(k, 0) for k in everywhere)) for r in found[kind]]
        order = sorted(of["before"], key=lambda k: -of["before"][k])[:10]
        result["by_kernel"] = [{"kernel": k, "launches": launches[k], **{f"{kind}_ns": round(times[k]) for kind, times in of.items() if k in times}} for k in order]
        windows = {kind: runs for kind, runs in found.items() if kind.startswith("window") and runs}
        result["windows_ms"] = {kind: {"median": statistics.median(runs), "all": runs} for kind, runs in windows.items()}


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

    return found


def miscompiled():
    """A compiler that breaks one candidate: `tune` must name it, start the program again, and end well."""
    folder, home = WORK / "of-fields", Path(shutil.which("nvcc")).resolve().parent
    toolkit, mark = WORK / "toolkit", WORK / "broken"
    (toolkit / "bin").mkdir(parents=True)
    for entry in home.iterdir():
        if entry.name != "ptxas":
            (toolkit / "bin" / entry.name).symlink_to(entry)
    for entry in home.parent.iterdir():
        if entry.name != "bin":
            (toolkit / entry.name).symlink_to(entry)
    wrapper = toolkit / "bin" / "ptxas"
    wrapper.write_text(f"""#!/bin/sh
for word; do case $word in *.ptx) input=$word ;; esac; done
if [ -n "$input" ] && grep -q '\\.maxnreg' "$input" && mkdir {mark} 2>/dev/null; then
    sed -i '/\\.entry/,/^{{/ s/^{{/{{ trap;/' "$input"
fi
exec {home}/ptxas "$@"
""")
    wrapper.chmod(0o755)
    env, words = environment("fields", folder), command("fields")
    env |= {"WARPWRIGHT_DB": str(WORK / "broken-db"), "WARPWRIGHT_CACHE": str(WORK / "broken-cache")}
    plain = sh(words, env=env)
    tune = [str(WARPWRIGHT), "tune", "--toolkit", str(toolkit), "--report-to", str(WORK / "broken.json")]
    done = sh([*tune, "--", *words], env=env, limit=90)
    named = [line for line in done["err"].splitlines() if "took the program down" in line]
    ok = done["code"] == 0 and done["out"] == plain["out"] and len(named) == 1 and mark.exists()
    return {"ok": ok, "code": done["code"], "said": named, "err": "" if ok else done["err"][-1500:]}


def alongside():
    """Other tools that stand in front of the driver: the program's output and the replacing must stay."""
    folder, found = WORK / "of-fields", {}
    env, words = environment("fields", folder), command("fields")
    plain = sh(words, env=env)["out"].splitlines()
    tools = {
        "ncu": ["ncu", "--clock-control", "none", "--launch-count", "4", "--metrics", "gpu__time_duration.sum"],
        "compute-sanitizer": ["compute-sanitizer", "--tool", "memcheck"],
        "nsys": ["nsys", "profile", "-o", str(WORK / "nsys-report")],
    }
    for name, before in tools.items():
        if not shutil.which(before[0]):
            found[name] = {"skipped": "not on this machine"}
            continue
        log = WORK / f"{name}.log"
        more = {"LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "with", "WARPWRIGHT_DB": str(folder / "itself"), "WARPWRIGHT_LOG": str(log)}
        done = sh([*before, "env", *[f"{k}={v}" for k, v in more.items()], *words], env=env, limit=90)
        lost = [line for line in plain if line not in done["out"].splitlines()]
        found[name] = {"ok": done["code"] == 0 and not lost, "code": done["code"], "replaced": read(log).count(" is replaced: "), "log": read(log).splitlines()[:3]}
        if not found[name]["ok"]:
            found[name] |= {"lost": lost[:5], "out": done["out"][-800:], "err": done["err"][-800:]}
    return found


def hog():
    """A program that leaves no room for a copy of its memory."""
    folder, found = WORK / "hog", {}
    folder.mkdir()
    env = environment("hog", folder)
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
        found = {"ok": ok, "code": run["code"], "notes": notes[:6], "log": read(work / "log").splitlines()[:5], "err": run["err"][-600:] if run["code"] else ""}
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
    for _ in range(5):
        for mode, more in modes.items():
            run = sh(words, env={**env, **more})
            match = re.search(r"ns ([0-9.]+) least ([0-9.]+)", run["err"])
            if match:
                ns[mode].append(float(match[1]))
    found = {mode: {"median_ns": statistics.median(v), "all": v} for mode, v in ns.items() if v}
    # A store in which the kernel of `launch` has a copy of itself: what a launch costs that is replaced.
    trace_file, copy = WORK / "launch.json", WORK / "launch-db"
    sh([str(WARPWRIGHT), "trace", "-o", str(trace_file), "--", *command("launch")], env=env)
    if trace_file.exists():
        trace = json.loads(trace_file.read_text())
        itself(trace, Path(trace["modules_in"]), copy)
        modes["with, replaced"] = {"LD_PRELOAD": str(LIBRARY), "WARPWRIGHT": "with", "WARPWRIGHT_DB": str(copy)}
    # The same function through the library and past it, in turns within one process on one core.
    pinned = ["taskset", "-c", "2"] if shutil.which("taskset") and (os.cpu_count() or 1) > 2 else []
    for mode, more in modes.items():
        run = sh([*pinned, *command("launch")], env={**env, **more})
        match = re.search(r"wrapped (\d) own_ns (\S+) by_name_ns (\S+) more_ns (\S+) from (\S+) to (\S+)", run["err"])
        if match:
            names = ["own_ns", "by_name_ns", "more_ns", "more_from_ns", "more_to_ns"]
            found[f"in turns: {mode}"] = {"wrapped": match[1] == "1", **dict(zip(names, map(float, match.groups()[1:])))}
    return found


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

    def save():
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text(json.dumps(document, indent=1) + "\n")

    def safely(label, work):
        try:
            return work()
        except Exception as e:
            print(label, repr(e), flush=True)
            return {"failed": repr(e)}

    chosen = [name for name in ONLY if name != "hog"] or ["fields", "graphs", "streams", *SCRIPTS]
    programs = {name: Program(name) for name in chosen}
    document["programs"] = [p.result for p in programs.values()]
    together([lambda p=p: safely(p.name, p.first) for n, p in programs.items() if n in SCRIPTS])
    save()
    for p in [p for n, p in programs.items() if n in BUILDS]:
        safely(p.name, p.first)
        safely(p.name, p.second)
        save()
    if "fields" in programs:
        works = (("launch_overhead", overhead), ("faults", faults), ("miscompiled_candidate", miscompiled), ("alongside", alongside))
        for key, work in works:
            document[key] = safely(key, work)
            print(key, json.dumps(document[key])[:1500], flush=True)
            save()
    for p in [p for n, p in programs.items() if n in SCRIPTS]:
        safely(p.name, p.second)
        save()
    if "train" in programs or "hog" in ONLY:
        document.setdefault("faults", {})["too little memory for saving"] = safely("hog", hog)
        save()
    shutil.rmtree(WORK, ignore_errors=True)


main()
