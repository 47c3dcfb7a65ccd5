"""Triton kernels of our own, of the kinds that people write: normalisations, losses, activations, matrix products, attention.

Each case has a kernel, a grid, arguments that a seed makes, and configurations that an autotuner would try. No name of a
kernel stands twice, so that a trace can be read by name.
"""
import triton
import triton.language as tl


@triton.jit
def softmax_rows(y, x, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def softmax_backward(dx, dy, y, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = row * stride + tl.arange(0, B)
    inside = tl.arange(0, B) < n
    p = tl.load(y + at, mask=inside, other=0.0)
    d = tl.load(dy + at, mask=inside, other=0.0)
    tl.store(dx + at, p * (d - tl.sum(p * d, axis=0)), mask=inside)


@triton.jit
def layer_norm_forward(y, x, w, b, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * stride + at, mask=at < n, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(at < n, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=0) / n + eps)
    gain = tl.load(w + at, mask=at < n, other=0.0)
    base = tl.load(b + at, mask=at < n, other=0.0)
    tl.store(y + row * stride + at, d * scale * gain + base, mask=at < n)


@triton.jit
def layer_norm_backward(dx, dy, x, w, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < n
    v = tl.load(x + row * stride + at, mask=inside, other=0.0)
    g = tl.load(dy + row * stride + at, mask=inside, other=0.0) * tl.load(w + at, mask=inside, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=0) / n + eps)
    hat = d * scale
    c1 = tl.sum(hat * g, axis=0) / n
    c2 = tl.sum(g, axis=0) / n
    tl.store(dx + row * stride + at, (g - (hat * c1 + c2)) * scale, mask=inside)


@triton.jit
def rms_norm_blocked(y, x, w, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([B], dtype=tl.float32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        total += v * v
    scale = tl.rsqrt(tl.sum(total, axis=0) / n + eps)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        g = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(y + row * stride + at, v * scale * g, mask=at < n)


@triton.jit
def cross_entropy_rows(loss, dx, x, label, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    wanted = tl.load(label + row)
    most = -float("inf")
    total = 0.0
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        here = tl.maximum(most, tl.max(v, axis=0))
        total = total * tl.exp(most - here) + tl.sum(tl.exp(v - here), axis=0)
        most = here
    of_label = tl.load(x + row * stride + wanted).to(tl.float32)
    tl.store(loss + row, tl.log(total) + most - of_label)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        p = tl.exp(v - most) / total
        tl.store(dx + row * stride + at, p - tl.where(at == wanted, 1.0, 0.0), mask=at < n)


@triton.jit
def rotate_pairs(y, x, cosine, sine, heads, half, B: tl.constexpr):
    token = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < half
    c = tl.load(cosine + token * half + at, mask=inside, other=0.0)
    s = tl.load(sine + token * half + at, mask=inside, other=0.0)
    for head in range(0, heads):
        base = (token * heads + head) * 2 * half
        u = tl.load(x + base + at, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + base + half + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + base + at, u * c - v * s, mask=inside)
        tl.store(y + base + half + at, v * c + u * s, mask=inside)


@triton.jit
def swish_gate(y, a, b, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    u = tl.load(a + at, mask=at < n, other=0.0).to(tl.float32)
    v = tl.load(b + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + at, u * tl.sigmoid(u) * v, mask=at < n)


@triton.jit
def swish_gate_backward(da, db, dy, a, b, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    d = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(a + at, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
    s = tl.sigmoid(u)
    tl.store(db + at, d * u * s, mask=inside)
    tl.store(da + at, d * v * (s + u * s * (1 - s)), mask=inside)


@triton.jit
def tanh_gelu(y, x, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0.0)
    u = 0.7978845608 * (v + 0.044715 * v * v * v)
    t = 1.0 - 2.0 / (tl.exp(2.0 * u) + 1.0)
    tl.store(y + at, 0.5 * v * (1.0 + t), mask=at < n)


@triton.jit
def matmul_half(c, a, b, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * k + rk[None, :]
    pb = b + rk[:, None] * n + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * n
    tl.store(c + rm[:, None] * n + rn[None, :], acc.to(tl.float16))


@triton.jit
def matmul_single(c, a, b, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * k + rk[None, :]
    pb = b + rk[:, None] * n + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc, input_precision="ieee")
        pa += BK
        pb += BK * n
    tl.store(c + rm[:, None] * n + rn[None, :], acc)


@triton.jit
def attention_forward(o, q, k, v, n, scale, B: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    head = tl.program_id(1) * n * D
    d = tl.arange(0, D)
    qs = tl.load(q + head + rows[:, None] * D + d[None, :])
    most = tl.full([B], -float("inf"), dtype=tl.float32)
    total = tl.zeros([B], dtype=tl.float32)
    acc = tl.zeros([B, D], dtype=tl.float32)
    for start in range(0, n, BN):
        cols = start + tl.arange(0, BN)
        ks = tl.load(k + head + cols[None, :] * D + d[:, None])
        s = tl.dot(qs, ks) * scale
        here = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - here[:, None])
        old = tl.exp(most - here)
        total = total * old + tl.sum(p, axis=1)
        vs = tl.load(v + head + cols[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), vs, acc * old[:, None])
        most = here
    tl.store(o + head + rows[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def bodies_force(ax, ay, az, px, py, pz, mass, n, soft, B: tl.constexpr, BJ: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x, y, z = tl.load(px + i), tl.load(py + i), tl.load(pz + i)
    fx = tl.zeros([B], dtype=tl.float32)
    fy = tl.zeros([B], dtype=tl.float32)
    fz = tl.zeros([B], dtype=tl.float32)
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        dx = tl.load(px + j)[None, :] - x[:, None]
        dy = tl.load(py + j)[None, :] - y[:, None]
        dz = tl.load(pz + j)[None, :] - z[:, None]
        r = tl.rsqrt(dx * dx + dy * dy + dz * dz + soft)
        s = tl.load(mass + j)[None, :] * r * r * r
        fx += tl.sum(dx * s, axis=1)
        fy += tl.sum(dy * s, axis=1)
        fz += tl.sum(dz * s, axis=1)
    tl.store(ax + i, fx)
    tl.store(ay + i, fy)
    tl.store(az + i, fz)


@triton.jit
def row_statistics(mean, spread, largest, x, stride, n, B: tl.constexpr, R: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    a = tl.zeros([R, B], dtype=tl.float32)
    q = tl.zeros([R, B], dtype=tl.float32)
    m = tl.full([R, B], -float("inf"), dtype=tl.float32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + rows[:, None] * stride + at[None, :])
        a += v
        q += v * v
        m = tl.maximum(m, v)
    s = tl.sum(a, axis=1) / n
    tl.store(mean + rows, s)
    tl.store(spread + rows, tl.sum(q, axis=1) / n - s * s)
    tl.store(largest + rows, tl.max(m, axis=1))


@triton.jit
def gather_rows(y, table, index, stride, n, B: tl.constexpr, R: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    where = tl.load(index + rows)
    at = tl.arange(0, B)
    v = tl.load(table + where[:, None] * stride + at[None, :], mask=at[None, :] < n, other=0.0)
    tl.store(y + rows[:, None] * stride + at[None, :], v, mask=at[None, :] < n)


class Case:
    """`make(torch)` gives the arguments, outputs first; `configs` are the constants, warps and stages to try; `grid`
    makes the grid from the constants."""

    def __init__(self, kernel, outputs, make, grid, configs):
        self.kernel, self.outputs, self.make, self.grid, self.configs = kernel, outputs, make, grid, configs
        self.name = kernel.__name__


def warps(*counts, stages=(3,), **constants):
    return [dict(constants, num_warps=w, num_stages=s) for w in counts for s in stages]


def cases():
    rows, wide = 8192, 4000

    def random(t, *shape, dtype=None):
        return t.randn(*shape, device="cuda", dtype=dtype or t.float32)

    def norm(t, like):
        x = random(t, rows, wide)
        return [t.empty_like(x), *([random(t, rows, wide)] if like == "backward" else []), x]

    big = 1 << 25
    yield Case(softmax_rows, 1, lambda t: [t.empty(rows, wide, device="cuda"), random(t, rows, wide), wide, wide],
               lambda c: (rows,), warps(2, 4, 8, 16, B=4096))
    yield Case(softmax_backward, 1, lambda t: [t.empty(rows, wide, device="cuda"), random(t, rows, wide),
                                              t.softmax(random(t, rows, wide), 1), wide, wide],
               lambda c: (rows,), warps(4, 8, 16, B=4096))
    yield Case(layer_norm_forward, 1, lambda t: [*norm(t, ""), random(t, wide), random(t, wide), wide, wide, 1e-5],
               lambda c: (rows,), warps(2, 4, 8, 16, B=4096))
    yield Case(layer_norm_backward, 1, lambda t: [*norm(t, "backward"), random(t, wide), wide, wide, 1e-5],
               lambda c: (rows,), warps(2, 4, 8, B=4096))
    yield Case(rms_norm_blocked, 1, lambda t: [t.empty(rows, wide, device="cuda", dtype=t.float16),
                                              random(t, rows, wide, dtype=t.float16), random(t, wide, dtype=t.float16), wide, wide, 1e-5],
               lambda c: (rows,), warps(4, 8, B=1024) + warps(4, 8, 16, B=4096))
    yield Case(cross_entropy_rows, 2, lambda t: [t.empty(1024, device="cuda"), t.empty(1024, 32000, device="cuda"),
                                                random(t, 1024, 32000), t.randint(0, 32000, (1024,), device="cuda", dtype=t.int32), 32000, 32000],
               lambda c: (1024,), warps(4, 8, 16, B=4096) + warps(8, 16, B=8192))
    yield Case(rotate_pairs, 1, lambda t: [t.empty(4096, 32, 128, device="cuda", dtype=t.float16), random(t, 4096, 32, 128, dtype=t.float16),
                                          random(t, 4096, 64), random(t, 4096, 64), 32, 64],
               lambda c: (4096,), warps(1, 2, 4, B=64))
    yield Case(swish_gate, 1, lambda t: [t.empty(big, device="cuda", dtype=t.float16), random(t, big, dtype=t.float16),
                                        random(t, big, dtype=t.float16), big],
               lambda c: (big // c["B"],), warps(4, 8, B=1024) + warps(4, 8, B=4096))
    yield Case(swish_gate_backward, 2, lambda t: [t.empty(big, device="cuda"), t.empty(big, device="cuda"), random(t, big),
                                                 random(t, big), random(t, big), big],
               lambda c: (big // c["B"],), warps(4, 8, B=1024) + warps(4, 8, B=4096))
    yield Case(tanh_gelu, 1, lambda t: [t.empty(big, device="cuda"), random(t, big), big],
               lambda c: (big // c["B"],), warps(4, 8, B=1024) + warps(4, B=8192))
    side = 2048
    tiles = [dict(BM=m, BN=n, BK=k, num_warps=w, num_stages=s) for m, n, k, w, s in
             [(128, 128, 32, 4, 3), (128, 128, 64, 8, 3), (64, 128, 32, 4, 4), (128, 256, 64, 8, 3)]]
    yield Case(matmul_half, 1, lambda t: [t.empty(side, side, device="cuda", dtype=t.float16), random(t, side, side, dtype=t.float16),
                                         random(t, side, side, dtype=t.float16), side, side, side],
               lambda c: (side // c["BM"], side // c["BN"]), tiles)
    tiles = [dict(BM=m, BN=n, BK=k, num_warps=w, num_stages=s) for m, n, k, w, s in
             [(64, 64, 16, 4, 2), (64, 64, 32, 4, 3), (128, 64, 16, 4, 2), (128, 128, 16, 8, 2)]]
    yield Case(matmul_single, 1, lambda t: [t.empty(1024, 1024, device="cuda"), random(t, 1024, 1024), random(t, 1024, 1024), 1024, 1024, 1024],
               lambda c: (1024 // c["BM"], 1024 // c["BN"]), tiles)
    yield Case(attention_forward, 1, lambda t: [t.empty(32, 2048, 64, device="cuda", dtype=t.float16),
                                               *(random(t, 32, 2048, 64, dtype=t.float16) for _ in range(3)), 2048, 0.125],
               lambda c: (2048 // c["B"], 32),
               [dict(B=b, D=64, BN=n, num_warps=w, num_stages=s) for b, n, w, s in [(64, 64, 4, 3), (128, 64, 4, 3), (128, 128, 8, 2), (128, 64, 8, 3)]])
    yield Case(bodies_force, 3, lambda t: [*(t.empty(16384, device="cuda") for _ in range(3)), *(random(t, 16384) for _ in range(4)), 16384, 0.01],
               lambda c: (16384 // c["B"],),
               [dict(B=b, BJ=j, num_warps=w, num_stages=2) for b, j, w in [(64, 32, 2), (64, 64, 4), (128, 32, 4), (32, 128, 4)]])
    yield Case(row_statistics, 3, lambda t: [*(t.empty(rows, device="cuda") for _ in range(3)), random(t, rows, 4096), 4096, 4096],
               lambda c: (rows // c["R"],),
               [dict(B=b, R=r, num_warps=w, num_stages=2) for b, r, w in [(512, 4, 4), (1024, 4, 4), (1024, 8, 8), (256, 8, 4)]])
    yield Case(gather_rows, 1, lambda t: [t.empty(65536, 256, device="cuda"), random(t, 200000, 256),
                                         t.randint(0, 200000, (65536,), device="cuda", dtype=t.int32), 256, 250],
               lambda c: (65536 // c["R"],), [dict(B=256, R=r, num_warps=w, num_stages=2) for r, w in [(1, 1), (4, 2), (8, 4), (16, 4)]])
