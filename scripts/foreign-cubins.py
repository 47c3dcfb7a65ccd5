#!/usr/bin/env python3
"""Cubins out of a shared library as others ship it: random ones, the same for the same seed. For the measurements of
lab/sassmine on code that nobody here compiled. Needs lz4 and zstandard (pip).

    scripts/foreign-cubins.py LIBRARY DIR COUNT SEED SM...

writes DIR/sm_XX/DIGEST.cubin."""

import hashlib
import mmap
import os
import random
import re
import sys
from collections import defaultdict

import lz4.block
import zstandard

MAGIC = re.escape(0xBA55ED50.to_bytes(4, "little"))
CUBIN = 2
LZ4, ZSTD = 1 << 13, 1 << 15


def entries(data):
    """The payloads of all containers: kind, architecture, place and how they are stored."""
    last = 0
    for match in re.finditer(MAGIC, data):
        start = match.start()
        header = int.from_bytes(data[start + 6:start + 8], "little")
        end = start + header + int.from_bytes(data[start + 8:start + 16], "little")
        if header != 16 or end > len(data) or start < last:
            continue
        at, last = start + header, end
        while at < end:
            number = lambda offset, size: int.from_bytes(data[at + offset:at + offset + size], "little")
            head, padded = number(4, 4), number(8, 8)
            if head < 64 or at + head + padded > end:
                break
            yield {"kind": number(0, 2), "sm": number(28, 4), "at": at + head, "padded": padded,
                   "stored": number(16, 4), "flags": number(40, 8), "size": number(56, 8)}
            at += head + padded


def unpack(data, entry):
    stored = data[entry["at"]:entry["at"] + entry["stored"]]
    if entry["flags"] & LZ4:
        return lz4.block.decompress(stored, uncompressed_size=entry["size"])
    if entry["flags"] & ZSTD:
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=entry["size"])
    return data[entry["at"]:entry["at"] + entry["padded"]]


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    path, folder, count, seed, *architectures = sys.argv[1:]
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    found = defaultdict(list)
    for entry in entries(data):
        if entry["kind"] == CUBIN:
            found[entry["sm"]].append(entry)
    print({sm: len(of) for sm, of in sorted(found.items())})
    for sm in map(int, architectures):
        chosen = found[sm]
        random.Random(f"{seed}/{sm}").shuffle(chosen)
        os.makedirs(f"{folder}/sm_{sm}", exist_ok=True)
        for entry in chosen[:int(count)]:
            cubin = unpack(data, entry)
            with open(f"{folder}/sm_{sm}/{hashlib.sha256(cubin).hexdigest()[:12]}.cubin", "wb") as file:
                file.write(cubin)


main()
