"""The hosts of docs/build.md on a machine with a GPU: `bench/hosts.sh` says how to start it."""

import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL = Path(sys.argv[1]).resolve()
OUT = Path(sys.argv[2]).resolve()
WHEEL = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
WORK = Path(tempfile.mkdtemp(prefix="hosts-"))
FAILURES = []


def environment(**changes):
    """This one, with a cache and a store of winners of its own."""
    path = f"{TOOL}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "WARPWRIGHT_DB": str(WORK / "winners"),
        "WARPWRIGHT_CACHE": str(WORK / "cache"),
        "TRITON_CACHE_DIR": tempfile.mkdtemp(dir=WORK),
        "CUPY_CACHE_DIR": str(WORK / "cupy"),
        **changes,
    }


def ran(name, command, seconds=120, **changes):
    """What a command prints; a failure is kept and the rest goes on."""
    print("$", *map(str, command), *(f"{k}={v}" for k, v in changes.items()), flush=True)
    try:
        done = subprocess.run(
            list(map(str, command)), env=environment(**changes), cwd=WORK, text=True, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        FAILURES.append(f"{name}: not done after {seconds} s")
        return ""
    except OSError as error:
        FAILURES.append(f"{name}: {error}")
        return ""
    print(done.stdout[-4000:], done.stderr[-2500:], sep="", flush=True)
    if done.returncode != 0:
        FAILURES.append(f"{name}: exit {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def lines(text):
    """The JSON documents of a script."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def last(name, *args, **kwargs):
    found = lines(ran(name, *args, **kwargs))
    return found[-1] if found else None


def noted(log):
    return log.read_text().splitlines() if log.exists() else []


def cmake():
    """The application of CMakeLists.txt: as CMake builds it, with the drop-in, rewritten, and with winners."""
    result = {}
    if not shutil.which("cmake"):
        FAILURES.append("cmake: not installed")
        return result
    warpwright = TOOL / "warpwright"
    folder = ran("nvcc --folder", [warpwright, "nvcc", "--folder"]).strip()
    log = WORK / "cmake.log"
    plain, safe = WORK / "plain", WORK / "safe"
    ran("cmake", ["cmake", "-B", plain, HERE])
    ran("cmake", ["cmake", "--build", plain])
    ran("cmake with the drop-in", ["cmake", f"-DCMAKE_CUDA_COMPILER={folder}/nvcc", "-B", safe, HERE])
    changes = {"WARPWRIGHT_PTXAS": "safe", "WARPWRIGHT_PTXAS_SMEM": "declared", "WARPWRIGHT_PTXAS_BUDGET": "10", "WARPWRIGHT_PTXAS_LOG": str(log)}
    ran("build with the drop-in", ["cmake", "--build", safe], **changes)
    result["log"] = noted(log)
    ran("opt of a program", [warpwright, "opt", plain / "app", "-o", WORK / "app-opt"])
    ran("trace", [warpwright, "trace", "-o", WORK / "trace.json", "--", plain / "app"])
    ran("tune", [warpwright, "tune", "--", plain / "app"])
    programs = {
        "plain": [plain / "app"],
        "safe": [safe / "app"],
        "opt": [WORK / "app-opt"],
        "with": [warpwright, "with", "--", plain / "app"],
    }
    # In turn: a change of the clocks meets all of them.
    for _ in range(3):
        for name, program in programs.items():
            found = last(name, program)
            if found:
                result.setdefault(name, []).append(found)
    digests = {run["digest"] for name in programs for run in result.get(name, [])}
    if len(digests) != 1:
        FAILURES.append(f"cmake: outputs differ: {digests}")
    return result


def triton():
    script = [sys.executable, HERE / "triton_script.py"]
    log = WORK / "triton.log"
    version = ran("version", [sys.executable, "-c", "import triton; print(triton.__version__)"]).strip()
    # An sm_90 is asked for here: of its two compilers Triton takes the newer one from 3.9 on.
    is_newer = [int(part) for part in version.split(".")[:2] if part.isdigit()] >= [3, 9]
    variable = "TRITON_PTXAS_BLACKWELL_PATH" if is_newer else "TRITON_PTXAS_PATH"
    ptxas = {variable: str(TOOL / "warpwright-ptxas"), "WARPWRIGHT_PTXAS_LOG": str(log)}
    result = {
        "plain": lines(ran("triton", script)),
        # Triton's own ptxas below, so that only the choice differs.
        "off": lines(ran("triton, off", script, **ptxas, WARPWRIGHT_PTXAS="off")),
        "safe": lines(ran("triton, safe", script, **ptxas, WARPWRIGHT_PTXAS="safe", WARPWRIGHT_PTXAS_BUDGET="5")),
        "log": noted(log),
        "decorated": lines(ran("triton, decorated", [*script, "--decorate"])),
        "version": version,
    }
    if not log.exists():
        FAILURES.append("triton: the drop-in was not called")
    return result


def cupy():
    cubin = WORK / "moments.cubin"
    ran("opt", [TOOL / "warpwright", "opt", HERE / "moments.cu", "--gpu", "h200", "-o", cubin])
    found = lines(ran("cupy", [sys.executable, HERE / "cupy_script.py", cubin]))
    version = ran("version", [sys.executable, "-c", "import cupy; print(cupy.__version__)"]).strip()
    if len({line["digest"] for line in found if "digest" in line}) != 1:
        FAILURES.append("cupy: outputs differ")
    return {"lines": found, "version": version}


def jax():
    """XLA calls ptxas only without nvJitLink; the drop-in is the `ptxas` of the first folder in PATH."""
    folder, log = WORK / "xla", WORK / "xla.log"
    folder.mkdir()
    (folder / "ptxas").symlink_to(TOOL / "warpwright-ptxas")
    script = [sys.executable, HERE / "jax_script.py"]
    changes = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "XLA_FLAGS": "--xla_gpu_enable_libnvjitlink=false",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "WARPWRIGHT_PTXAS_LOG": str(log),
    }
    plain = last("jax", script, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    safe = last("jax, safe", script, **changes, WARPWRIGHT_PTXAS="safe")
    if plain != safe:
        FAILURES.append("jax: outputs differ")
    if not noted(log):
        FAILURES.append("jax: the drop-in was not called")
    return {"plain": plain, "safe": safe, "log": noted(log)}


def extension():
    """A PyTorch extension, with nvcc as it is and with the drop-in."""
    nvcc = ran("nvcc --folder", [TOOL / "warpwright", "nvcc", "--folder"]).strip() + "/nvcc"
    script, log = [sys.executable, HERE / "extension.py"], WORK / "extension.log"
    arch = {"TORCH_CUDA_ARCH_LIST": "9.0"}
    changes = {"PYTORCH_NVCC": nvcc, "WARPWRIGHT_PTXAS": "safe", "WARPWRIGHT_PTXAS_SMEM": "declared", "WARPWRIGHT_PTXAS_BUDGET": "10", "WARPWRIGHT_PTXAS_LOG": str(log)}
    plain = last("extension", script, **arch, TORCH_EXTENSIONS_DIR=str(WORK / "e1"))
    safe = last("extension, safe", script, **arch, **changes, TORCH_EXTENSIONS_DIR=str(WORK / "e2"))
    if not plain or not safe or plain["digest"] != safe["digest"]:
        FAILURES.append("extension: outputs differ")
    return {"plain": plain, "safe": safe, "log": noted(log)}


def main():
    if WHEEL:
        site = WORK / "site"
        ran("wheel", [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, WHEEL])
        os.environ["PYTHONPATH"] = f"{site}:{os.environ.get('PYTHONPATH', '')}"
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    document = {
        "schema": "warpwright.hosts/1",
        "date": datetime.date.today().isoformat(),
        "gpu": ran("nvidia-smi", query).splitlines()[:1],
        "tool": ran("version", [TOOL / "warpwright", "--version"]).splitlines()[:1],
        "toolkit": ran("toolkit", [TOOL / "warpwright", "toolkit"]).splitlines()[:6],
    }
    for part in (cmake, triton, cupy, jax, extension):
        begin = time.monotonic()
        document[part.__name__] = part()
        document[part.__name__]["seconds"] = round(time.monotonic() - begin, 1)
        document["failures"] = FAILURES
        OUT.write_text(json.dumps(document, indent=1) + "\n")
    for failure in FAILURES:
        print("FAILED", failure)
    shutil.rmtree(WORK, ignore_errors=True)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
