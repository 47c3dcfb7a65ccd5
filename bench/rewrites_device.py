#!/usr/bin/env python3
"""The verdicts of `check` on random pairs of kernels, held against a device.

    warpwright-rewritegen emit FOLDER --count 200    (where there is a toolchain; no GPU)
    rewrites_device.py FOLDER OUT.json               (where there is a GPU; the driver API alone)

Each pair runs at its sizes, on several random inputs and on the inputs that refute it. `bit-for-bit` must leave the same
bits (payloads of NaN apart), `up-to-rounding` what the host computes within 1e-5 of the magnitudes that are summed, a
witness must show its difference. Kernels that are at fault on their own (out of bounds, a barrier that not all come to) do
not run. The exit code is 1 if a verdict and the device disagree. Outputs stand between guards of 64 KiB.
"""
import argparse, ctypes, json, struct, sys, time
from pathlib import Path

# A kernel with one of these may end the context, or never end.
AT_FAULT = {"out-of-bounds", "misaligned", "read-only", "barrier-divergence", "warp-divergence", "inactive-lane", "trap",
            "assertion", "fault", "launch"}
GUARD = 1 << 16
cuda = None


class Failed(Exception):
    pass


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(text))
        raise Failed(f"{name}: {(text.value or b'').decode() or status}")


def begin():
    """The device, as it calls itself."""
    global cuda
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    cuda.cuMemcpyHtoD_v2.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    cuda.cuMemcpyDtoH_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]
    cuda.cuMemsetD8_v2.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t]
    call("cuInit", 0)
    device, version, name, context = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", name, 100, device)
    call("cuDriverGetVersion", ctypes.byref(version))
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    return name.value.decode(), version.value


class Arena:
    """One allocation in which the buffers of a launch stand between guards."""

    def __init__(self, size):
        self.size, self.base = size, ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.base), size)

    def place(self, contents):
        call("cuMemsetD8_v2", self.base.value, 0xA5, self.size)
        at, places = self.base.value + GUARD, []
        for data in contents:
            call("cuMemcpyHtoD_v2", at, data, len(data))
            places.append(at)
            at += (len(data) + 255) // 256 * 256 + GUARD
        if at > self.base.value + self.size:
            raise Failed("the arena is too small")
        return places


def load(path, kernel):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), path.read_bytes() + b"\0")
    call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    return module, function


def run(arena, function, launch, contents, output):
    """What a launch leaves in one of its buffers."""
    places = arena.place(contents)
    values = [ctypes.c_uint64(places[arg["buffer"]]) if "buffer" in arg else ctypes.c_uint32(arg["value"])
              for arg in launch["args"]]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values))
    call("cuLaunchKernel", function, *launch["grid"], *launch["block"], launch["dynamic_smem"], None, pointers, None)
    call("cuCtxSynchronize")
    left = ctypes.create_string_buffer(len(contents[output]))
    call("cuMemcpyDtoH_v2", left, places[output], len(contents[output]))
    return left.raw


def numbers(elem, data):
    return struct.unpack(f"<{len(data) // 4}{'f' if elem == 'f32' else 'i'}", data)


def different_bits(elem, a, b):
    """Elements whose bits differ; any NaN is as good as another."""
    if a == b:
        return []
    words = zip(numbers("s32", a), numbers("s32", b), numbers(elem, a), numbers(elem, b))
    return [i for i, (x, y, p, q) in enumerate(words) if x != y and not (p != p and q != q)]


def far(elem, data, expected, scales):
    """Elements that are not what the host says, and the largest distance relative to what was summed."""
    wrong, largest = [], 0.0
    for i, (x, y, scale) in enumerate(zip(numbers(elem, data), numbers(elem, expected), numbers("f32", scales))):
        if elem == "s32":
            if x != y:
                wrong.append(i)
            continue
        distance = abs(x - y)
        if not distance <= 1e-5 * scale + 1e-9:
            wrong.append(i)
        elif scale > 0:
            largest = max(largest, distance / scale)
    return wrong, largest


class Judge:
    def __init__(self, document, data):
        self.document, self.data = document, data
        self.counts, self.wrong, self.largest = {}, [], 0.0

    def count(self, *words):
        key = ", ".join(words)
        self.counts[key] = self.counts.get(key, 0) + 1

    def bytes(self, places):
        return [self.data[r["at"]:r["at"] + r["bytes"]] for r in places]

    def disagree(self, pair, launch, what):
        self.wrong.append({"pair": pair["pair"], "sizes": launch["sizes"], "verdict": launch["verdict"], "what": what})

    def launch(self, arena, pair, functions, launch):
        verdict, elem, out = launch["verdict"], launch["elem"], launch["output"]
        if verdict == "refuted" and AT_FAULT & set(launch["why"]):
            return self.count("refuted", "at fault: not run")

        def both(contents):
            return [run(arena, f, k, self.bytes(side), out)
                    for f, k, side in zip(functions, launch["kernels"], contents["sides"])]

        shown = False
        for number, contents in enumerate(launch["inputs"]):
            a, b = both(contents)
            expected, scales = self.bytes(contents["expected"])
            off, largest = far(elem, a, expected, scales)
            if off:
                self.disagree(pair, launch, f"the plain kernel's element {off[0]} is not the host's, input {number}")
            bits = different_bits(elem, a, b)
            away, reach = far(elem, b, expected, scales)
            shown |= bool(away)
            if verdict == "bit-for-bit" and bits:
                self.disagree(pair, launch, f"other bits in element {bits[0]}, input {number}")
            if verdict in ("bit-for-bit", "up-to-rounding"):
                self.largest = max(self.largest, largest, reach)
                if away:
                    self.disagree(pair, launch, f"element {away[0]} is not the host's, input {number}")
            if verdict == "tested" and pair.get("mistake") is None and away:
                self.disagree(pair, launch, f"a right rewrite: element {away[0]} is not the host's, input {number}")
        if verdict != "refuted":
            return self.count(verdict, "agrees on all inputs" if not shown else "differs on some input")
        # What was never set holds anything, and so perhaps what would be right.
        if "witness" not in launch or "unset" in launch["why"]:
            return self.count("refuted", " ".join(launch["why"]), "seen" if shown else "not seen")
        a, b = both(launch["witness"])
        if not different_bits(elem, a, b):
            self.disagree(pair, launch, "the witness shows no difference")
        self.count("refuted", "witness", "shown" if different_bits(elem, a, b) else "not shown")

    def pair(self, arena, folder, pair):
        loaded = [load(folder / name, self.document["kernel"]) for name in pair["files"]]
        for launch in pair["launches"]:
            self.launch(arena, pair, [function for _, function in loaded], launch)
        for module, _ in loaded:
            call("cuModuleUnload", module)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    o = parser.parse_args()
    began = time.time()
    document = json.loads((o.folder / "pairs.json").read_text())
    judge = Judge(document, (o.folder / "data.bin").read_bytes())
    gpu, driver = begin()
    largest = max(sum(r["bytes"] + 256 + GUARD for r in side) for p in document["pairs"] for l in p["launches"]
                  for c in l["inputs"] for side in c["sides"])
    arena, stopped = Arena(largest + 2 * GUARD), None
    for number, pair in enumerate(document["pairs"]):
        try:
            judge.pair(arena, o.folder, pair)
        except Failed as failed:
            # The context may be gone: what follows is not judged.
            stopped = f"{pair['pair']}: {failed}"
            break
    pairs = document["pairs"]
    done = len(pairs) if stopped is None else number
    result = {
        "schema": "warpwright.rewrites-on-device/1", "date": time.strftime("%Y-%m-%d"), "gpu": gpu, "driver_api": driver,
        "seed": document["seed"], "pairs": done, "of": len(pairs),
        "broken": sum(p.get("mistake") is not None for p in pairs[:done]),
        "launches": dict(sorted(judge.counts.items())), "wrong": judge.wrong, "stopped": stopped,
        "largest_relative_distance": judge.largest, "seconds": round(time.time() - began, 1),
    }
    o.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    sys.exit(1 if judge.wrong or stopped else 0)


if __name__ == "__main__":
    main()
