"""Do the launches of a program on the stand-in equal those on a device? Both are read from what `observed.cpp` wrote."""

import re
from collections import Counter, namedtuple

Line = namedtuple("Line", "kind kernel grid block smem bytes pointers")
#: differences of a program that are kept
KEPT = 4


def extents(text):
    return tuple(int(n) for n in text.split(","))


def lines(text):
    """The launches of a file, in their order."""
    found = []
    for line in text.splitlines():
        kind, kernel, grid, block, smem, parameters, pointers = line.split(" ")
        data = None if parameters == "?" else bytes.fromhex("" if parameters == "-" else parameters)
        places = [tuple(map(int, word.split(":"))) for word in pointers.split(",")] if pointers != "-" else []
        found.append(Line(kind, kernel, extents(grid), extents(block), int(smem), data, {at: (size, offset) for at, size, offset in places}))
    return found


#: sizes of what PTX calls types, in bytes
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def read_by_kernels(ptx):
    """Which bytes of their parameters the kernels of a text in PTX read: all of one whose address is taken, and of a kernel that
    another text has as well what either reads. The others are padding, which a program leaves as it happens to be."""
    found = {}
    for entry in re.finditer(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)(.*?)\n}", ptx, re.S):
        name, declared, body = entry.groups()
        places, end = {}, 0
        for align, width, parameter, count in re.findall(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.[bsuf](\d+)\s+(?:\.ptr(?:\s+\.(?:global|const|local|shared))?(?:\s+\.align\s+\d+)?\s+)?([\w$]+)(?:\[(\d+)\])?", declared):
            size = SIZES[width] * int(count or 1)
            align = int(align or SIZES[width])
            end = (end + align - 1) // align * align
            places[parameter] = (end, size)
            end += size
        read, loads = found.setdefault(name, set()), r"ld\.param(?:\.v[248])?\.[bsuf](\d+)\s+\{?([^\[{}]*)\}?,\s*\[([\w$]+)(?:\+(\d+))?\]"
        named = Counter(re.findall(r"%\w+", body))
        for width, registers, parameter, offset in re.findall(loads, body):
            for number, register in enumerate(re.findall(r"%\w+", registers)):
                begin = places[parameter][0] + int(offset or 0) + number * SIZES[width]
                # Compilers load neighbours along, into registers that nothing names again.
                read.update(range(begin, begin + SIZES[width]) if named[register] > 1 else ())
        for parameter in re.findall(r"[\w$]+", re.sub(loads, "", body)):
            begin, size = places.get(parameter, (0, 0))
            read.update(range(begin, begin + size))
    return found


def unsteady(device, again):
    """Of each launch, counted from 0, the bytes of its parameters that two runs on one device do not agree on: what a clock seeds."""
    found = {}
    for at, (first, second) in enumerate(zip(device, again)):
        if first.kernel == second.kernel and first.bytes and second.bytes:
            hidden = {byte for place in first.pointers for byte in range(place, place + 8)}
            found[at] = {byte for byte, (a, b) in enumerate(zip(first.bytes, second.bytes)) if a != b} - hidden
    return {at: differing for at, differing in found.items() if differing}


def left_out(reads, changing):
    """Of a launch by number, counted from 0, and kernel the bytes of its parameters that are not compared."""
    return lambda at, line: changing.get(at, set()) | (set(range(len(line.bytes or b""))) - reads[line.kernel] if line.kernel in reads else set())


def difference(own, device, ignored=frozenset()):
    """In what two launches differ first, bytes of parameters that are ignored apart; None where they are the same."""
    for name in ("kind", "kernel", "grid", "block", "smem"):
        if getattr(own, name) != getattr(device, name):
            return f"{name}: {getattr(own, name)}, on the device {getattr(device, name)}"
    if own.bytes is None or device.bytes is None:
        return None if own.bytes == device.bytes else "parameters: known on one side"
    if own.pointers.keys() != device.pointers.keys():
        return f"pointers: at {sorted(own.pointers)}, on the device at {sorted(device.pointers)}"
    for at, (size, offset) in own.pointers.items():
        if (size, offset) != device.pointers[at]:
            return f"allocation of the pointer at {at}: size and offset {(size, offset)}, on the device {device.pointers[at]}"
    hidden = {byte for at in own.pointers for byte in range(at, at + 8)} | ignored
    if len(own.bytes) != len(device.bytes):
        return f"parameters: {len(own.bytes)} bytes, on the device {len(device.bytes)}"
    for at, (a, b) in enumerate(zip(own.bytes, device.bytes)):
        if a != b and at not in hidden:
            return f"parameters: byte {at} is {a}, on the device {b}"
    return None


def last_exact(without):
    """The last launch before the first that a trace marks: behind it some may rest on what was not computed, or is rounded
    otherwise."""
    rounded = (without.get("rounded") or {}).get("launch")
    marks = [mark for mark in (without["exact_until"], rounded) if mark is not None]
    return min(marks) if marks else None


def until(launches, last):
    """Those up to a launch, counted from 1; where graphs launch as well, up to the first that goes into one."""
    if last is None:
        return launches
    graph = next((at for at, line in enumerate(launches) if line.kind == "graph"), len(launches))
    return launches[: min(last, graph)]


NOTHING = left_out({}, {})


def compared(own, device, last, ignored=NOTHING):
    """Each launch up to the last one that is exact (None: all) beside the device's."""
    exact = until(own, last)
    pairs = list(zip(exact, device))
    found = [(at + 1, difference(a, b, ignored(at, a))) for at, (a, b) in enumerate(pairs)]
    wrong = [f"launch {number}: {own[number - 1].kernel}: {why}" for number, why in found if why]
    missing = len(exact) - len(pairs) + (len(device) - len(pairs) if last is None else 0)
    if missing:
        wrong.append(f"{len(exact)} launches, on the device {len(device)}")
    return {
        "launches": len(exact), "alike": len(pairs) - sum(why is not None for _, why in found),
        "parameters not known": sum(line.bytes is None for line in exact), "all alike": not wrong, "different": wrong[:KEPT],
    }


def given(document, device, ignored=NOTHING):
    """What the trace says of the first launch of each kind beside the device's launch of that number."""
    last, in_graphs = last_exact(document["without_gpu"]), any(row["in_graphs"] for row in document["launches"])
    wrong, checked = [], 0
    for row in document["launches"]:
        number = (row.get("given") or {}).get("launch")
        if number is None or last is not None and number > last or in_graphs:
            continue
        pointers = {p["at"]: (p["size"], p["offset"]) for p in row["given"]["pointers"]}
        own = Line("launch", row["kernel"], tuple(row["grid"]), tuple(row["block"]), row["dynamic_smem"], bytes.fromhex(row["given"]["parameters"]), pointers)
        checked += 1
        why = difference(own, device[number - 1], ignored(number - 1, own)) if number <= len(device) else "the device has no such launch"
        if why:
            wrong.append(f"launch {number}: {row['kernel']}: {why}")
    return {"first launches": checked, "different": wrong[:KEPT]}


def shapes(document):
    """How often each kernel is launched in each shape."""
    found = Counter()
    for launch in document["launches"]:
        key = (launch["kernel"], tuple(launch["grid"]), tuple(launch["block"]), launch["dynamic_smem"])
        found[key] += launch["launches"] + launch["in_graphs"]
    return found


def steady(own, device):
    """What a device's trace says stayed the same over all launches of a kind, beside what the first was given without one."""
    key = lambda row: (row["kernel"], tuple(row["grid"]), tuple(row["block"]), row["dynamic_smem"])
    stayed = {key(row): row["stayed"]["parameters"] for row in device["launches"] if row.get("stayed")}
    wrong = []
    for row in own["launches"]:
        if row.get("given") and key(row) in stayed:
            parameters, known = row["given"]["parameters"], stayed[key(row)]
            hidden = {at for p in row["given"]["pointers"] for at in range(2 * p["at"], 2 * p["at"] + 16)}
            if any(b != "." and a != b and at not in hidden for at, (a, b) in enumerate(zip(parameters, known))):
                wrong.append(row["kernel"])
    return wrong


def traces(own, device):
    """The trace without a GPU beside that of a device: kinds of launches, how many of each, and what stayed the same."""
    a, b = shapes(own), shapes(device)
    return {
        "shapes": len(b), "shapes alike": len(a.keys() & b.keys()), "counts alike": sum(a[key] == b[key] for key in b),
        "only here": [str(key) for key in a.keys() - b.keys()][:KEPT], "only on the device": [str(key) for key in b.keys() - a.keys()][:KEPT],
        "other constants": steady(own, device)[:KEPT],
    }
