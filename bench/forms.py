#!/usr/bin/env python3
"""Every form that the emulator runs, on this device: digests of the results against the emulator's.

    warpwright-fuzz forms FOLDER                      writes the kernels and what the emulator gives (no GPU needed)
    python3 bench/forms.py FOLDER RESULTS [PTXAS]     where the device is: Python and the driver are enough
    warpwright-fuzz forms FOLDER --compare RESULTS    says which forms differ, with operands

RESULTS is a folder: `result.json`, and `raw.bin` with the words of the forms whose digest is another. FOLDER may be a
.tar.gz of it. The machine code of FOLDER is loaded; where the driver does not take it, PTXAS (`ptxas`) assembles the text.
"""

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

BEGIN = time.monotonic()
FOLDER, RESULTS = Path(sys.argv[1]), Path(sys.argv[2])
PTXAS = sys.argv[3] if len(sys.argv) > 3 else "ptxas"
if FOLDER.is_file():
    unpacked = Path(tempfile.mkdtemp())
    with tarfile.open(FOLDER) as archive:
        archive.extractall(unpacked)
    FOLDER = next(unpacked.rglob("forms.json")).parent
RESULTS.mkdir(parents=True, exist_ok=True)
MANIFEST = json.loads((FOLDER / "forms.json").read_text())
OPERANDS = (FOLDER / "operands.bin").read_bytes()
THREADS = MANIFEST["threads"]
PARAMETER = 0x0123456789ABCDEF
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
cuda.cuMemFree_v2.argtypes = [ctypes.c_uint64]
cuda.cuMemcpyHtoD_v2.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
cuda.cuMemcpyDtoH_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]
cuda.cuMemsetD8_v2.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t]


class Failed(Exception):
    pass


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(text))
        raise Failed(f"{name}: {(text.value or b'').decode() or status}")


def allocate(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), size)
    return address


class Session:
    """A context with the operands in it."""

    def __init__(self, device):
        self.device = device
        context = ctypes.c_void_p()
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        self.operands = allocate(len(OPERANDS))
        call("cuMemcpyHtoD_v2", self.operands, OPERANDS, len(OPERANDS))
        most = max(kernel["words"] for kernel in MANIFEST["kernels"])
        self.out = allocate(most * THREADS * 8)
        self.memory = allocate(MANIFEST["memory"] * THREADS)

    def run(self, image, words):
        """The output of one kernel."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), image)
        call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        size = words * THREADS * 8
        call("cuMemsetD8_v2", self.out, 0, size)
        call("cuMemsetD8_v2", self.memory, 0, MANIFEST["memory"] * THREADS)
        values = [self.operands, self.out, self.memory, ctypes.c_uint64(PARAMETER)]
        pointers = (ctypes.c_void_p * 4)(*(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values))
        call("cuLaunchKernel", function, THREADS // 128, 1, 1, 128, 1, 1, 0, None, pointers, None)
        call("cuCtxSynchronize")
        output = ctypes.create_string_buffer(size)
        call("cuMemcpyDtoH_v2", output, self.out, size)
        call("cuModuleUnload", module)
        return output.raw


def assembled(name):
    """What ptxas here makes of the text."""
    out = Path(tempfile.mkdtemp()) / "k.cubin"
    built = subprocess.run(
        [PTXAS, "--gpu-name", "sm_90a", "--fmad=false", str(FOLDER / f"{name}.ptx"), "-o", str(out)],
        capture_output=True, text=True)
    if built.returncode:
        raise Failed(f"ptxas: {(built.stdout + built.stderr)[:500]}")
    return out.read_bytes()


def begin():
    """The device, as it calls itself."""
    call("cuInit", 0)
    device, version, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", name, 100, device)
    call("cuDriverGetVersion", ctypes.byref(version))
    return device, name.value.decode(), version.value


def work(first, write):
    """Runs kernels from `first` on and says what came of each; a fault ends the process with its context."""
    device, name, version = begin()
    session = Session(device)
    write({"gpu": name, "driver_api": version})
    for number in range(first, len(MANIFEST["kernels"])):
        kernel = MANIFEST["kernels"][number]
        is_assembled = False
        try:
            try:
                output = session.run((FOLDER / f"{kernel['name']}.cubin").read_bytes(), kernel["words"])
            except Failed as failed:
                if "cuModule" not in str(failed):
                    raise
                is_assembled = True
                output = session.run(assembled(kernel["name"]), kernel["words"])
        except Failed as failed:
            write({"number": number, "failed": str(failed)})
            return
        differing = []
        for form, entry in enumerate(kernel["forms"]):
            part = output[entry["at"] * THREADS * 8:(entry["at"] + entry["words"]) * THREADS * 8]
            if hashlib.sha256(part).hexdigest()[:32] != entry["digest"]:
                differing.append([form, part.hex()])
        write({"number": number, "assembled": is_assembled, "differing": differing})


def main():
    result = {
        "schema": "warpwright.forms-on-device/1", "gpu": None, "driver_api": None,
        "kernels": len(MANIFEST["kernels"]), "forms": 0, "identical": 0, "assembled_here": [], "differing": [],
        "failed": [], "seconds": 0,
    }
    raw = bytearray()
    at = 0
    while at < len(MANIFEST["kernels"]):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as pipe:
                work(at, lambda line: print(json.dumps(line), file=pipe, flush=True))
            os._exit(0)
        os.close(write)
        before = at
        with os.fdopen(read) as pipe:
            for line in map(json.loads, pipe):
                if "gpu" in line:
                    result.update(line)
                    continue
                number = line["number"]
                kernel = MANIFEST["kernels"][number]
                at = number + 1
                if "failed" in line:
                    result["failed"].append([kernel["name"], line["failed"]])
                    continue
                if line["assembled"]:
                    result["assembled_here"].append(kernel["name"])
                result["forms"] += len(kernel["forms"])
                result["identical"] += len(kernel["forms"]) - len(line["differing"])
                for form, part in line["differing"]:
                    result["differing"].append([number, form, len(raw)])
                    raw += bytes.fromhex(part)
        os.waitpid(child, 0)
        if at == before:
            result["failed"].append([MANIFEST["kernels"][at]["name"], "the process died"])
            at += 1
    result["seconds"] = round(time.monotonic() - BEGIN)
    (RESULTS / "raw.bin").write_bytes(raw)
    (RESULTS / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    print({key: value for key, value in result.items() if key != "differing"}, len(result["differing"]), "differ")


main()
