"""What the programs read, made small and always the same."""

import random
import struct


def _write(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def graph(folder):
    """A random graph: nodes (first edge, number of edges), the source, edges (node, cost)."""
    rng, nodes, degree = random.Random(1), 2048, 4
    lines = [str(nodes)] + [f"{degree * i} {degree}" for i in range(nodes)] + ["0", str(nodes * degree)]
    lines += [f"{rng.randrange(nodes)} {rng.randrange(1, 10)}" for _ in range(nodes * degree)]
    _write(folder, "graph.txt", "\n".join(lines) + "\n")


def tree(folder):
    """Keys, and queries of a B+ tree."""
    keys = random.Random(2).sample(range(1, 20_000), 8000)
    _write(folder, "mil.txt", "\n".join([str(len(keys)), *map(str, keys)]) + "\n")
    _write(folder, "command.txt", "k 500\nj 300 100\n")


def domain(folder):
    """A mesh: elements with area, and for each of four neighbours its number (from 1) and a normal."""
    rng, elements = random.Random(3), 768
    lines = [str(elements)]
    for i in range(elements):
        sides = [(i + step) % elements + 1 for step in (1, elements - 1, 16, elements - 16)]
        normal = lambda: " ".join(f"{rng.uniform(-0.1, 0.1):.5f}" for _ in range(3))
        lines.append(f"{rng.uniform(0.5, 1.5):.5f} " + " ".join(f"{s} {normal()}" for s in sides))
    _write(folder, "domain.txt", "\n".join(lines) + "\n")


def _field(folder, name, count, low, high, seed):
    rng = random.Random(seed)
    _write(folder, name, "".join(f"{rng.uniform(low, high):.4f}\n" for _ in range(count)))


def temperature(folder):
    _field(folder, "temp.txt", 64 * 64, 320.0, 340.0, 4)
    _field(folder, "power.txt", 64 * 64, 0.0, 1e-3, 5)


def temperature3d(folder):
    _field(folder, "temp.txt", 64 * 64 * 8, 320.0, 340.0, 4)
    _field(folder, "power.txt", 64 * 64 * 8, 0.0, 1e-3, 5)


def text(folder):
    rng = random.Random(6)
    _write(folder, "text.in", bytes(rng.choice(b"aaaabbbccdefgh") for _ in range(1 << 16)))


def points(folder):
    rng = random.Random(7)
    rows = (" ".join([str(i)] + [f"{rng.uniform(0, 10):.3f}" for _ in range(8)]) for i in range(1, 1025))
    _write(folder, "points.txt", "\n".join(rows) + "\n")


def cell(folder):
    rng = random.Random(8)
    for name, count in (("y.txt", 91), ("params.txt", 16)):
        _write(folder, f"../../data/myocyte/{name}", "".join(f"{rng.uniform(0.1, 1.0):.6f}\n" for _ in range(count)))


def records(folder):
    """Storms: latitude from column 28 on, longitude from column 33 on."""
    rng = random.Random(9)
    line = lambda i: f"{1950 + i % 50} 1 1 0 1 STORM{i % 1000:04d}".ljust(28)[:28] + f"{rng.uniform(7, 70):5.1f}{rng.uniform(0, 359):5.1f}"
    _write(folder, "storms.db", "".join(line(i).ljust(48)[:48] + "\n" for i in range(2048)))
    _write(folder, "list.txt", "storms.db\n")


def image(folder):
    rng = random.Random(10)
    pixels = " ".join(str(rng.randrange(1, 256)) for _ in range(502 * 458))
    _write(folder, "../../../data/srad/image.pgm", f"P2\n458 502\n255\n{pixels}\n")


def matrices(folder):
    rng, n = random.Random(11), 128
    for name in ("a.txt", "b.txt", "bt.txt"):
        _write(folder, name, f"{n} {n} " + " ".join(f"{rng.uniform(-1, 1):.4f}" for _ in range(n * n)) + "\n")


def grid(folder):
    rng = random.Random(12)
    _write(folder, "grid.bin", struct.pack(f"<{64 * 64 * 16}f", *(rng.random() for _ in range(64 * 64 * 16))))


def mri(folder):
    """Samples and voxels: two numbers, then six and two fields of floats."""
    rng, samples, voxels = random.Random(13), 512, 1024
    values = [rng.uniform(-1, 1) for _ in range(3 * samples + 3 * voxels + 2 * samples)]
    _write(folder, "mri.bin", struct.pack("<2i", samples, voxels) + struct.pack(f"<{len(values)}f", *values))
