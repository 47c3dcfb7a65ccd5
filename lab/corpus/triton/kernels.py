"""Triton kernels, compiled ahead of time: kernels.py DIRECTORY CAPABILITY writes DIRECTORY/NAME.ptx.

No GPU is needed: the target is named, not asked for.
"""

import pathlib
import sys
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    e = tl.exp((v - tl.max(v, axis=0)).to(tl.float32))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, y, weight, bias, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total) / n
    scale = 1 / tl.sqrt(tl.sum(squares) / n - mean * mean + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        v = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=mask)
        tl.store(y + row * stride + at, (v - mean) * scale * w + tl.load(bias + at, mask=mask), mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EPI: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * sa + k[None, :]
    pb = b + k[:, None] * sb + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        va = tl.load(pa, mask=k[None, :] < K - i * BK, other=0.0)
        vb = tl.load(pb, mask=k[:, None] < K - i * BK, other=0.0)
        acc = tl.dot(va, vb, acc)
        pa += BK
        pb += BK * sb
    if EPI == 1:
        acc = tl.where(acc > 0, acc, 0.01 * acc)
    if EPI == 2:
        acc = acc * tl.sigmoid(acc)
    tl.store(c + m[:, None] * sc + n[None, :], acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(q, k, v, o, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    vq = tl.load(q + m[:, None] * D + d[None, :], mask=m[:, None] < n, other=0.0)
    top = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for start in range(0, n, BN):
        at = start + tl.arange(0, BN)
        vk = tl.load(k + at[None, :] * D + d[:, None], mask=at[None, :] < n, other=0.0)
        s = tl.dot(vq, vk) * scale
        s = tl.where(at[None, :] < n, s, -float("inf"))
        if CAUSAL:
            s = tl.where(m[:, None] >= at[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        vv = tl.load(v + at[:, None] * D + d[None, :], mask=at[:, None] < n, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(vv.dtype), vv)
        top = new
    tl.store(o + m[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=m[:, None] < n)


@triton.jit
def reduce_all(x, o, i, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.store(o, tl.sum(v))
    tl.store(o + 1, tl.max(v))
    tl.store(o + 2, tl.min(v))
    tl.store(i, tl.argmax(v, 0))
    tl.atomic_add(o + 3, tl.sum(v))
    tl.store(o + 4 + at, tl.cumsum(v, 0), mask=at < n)


@triton.jit
def integers(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    w = (v * 31 + 7) // (at + 1) % 13
    tl.store(o + at, (w << 3) ^ (v >> 2) | (v & 15), mask=at < n)
    tl.atomic_max(o + (at % 4), w)
    none = (n * 0).to(o.dtype.element_ty)
    tl.atomic_cas(o + n, none, none + 1)


@triton.jit
def functions(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    r = tl.sin(v) + tl.cos(v) + tl.exp(v) + tl.log(v) + tl.sqrt(v) + tl.rsqrt(v) + tl.erf(v) + tl.abs(v) + tl.floor(v)
    tl.store(o + at, tl.fma(r, v, tl.clamp(v, 0.0, 1.0)), mask=at < n)


@triton.jit
def sort_rows(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.sort(tl.load(x + tl.program_id(0) * BLOCK + at)))


@triton.jit
def transpose(x, o, sx, so, BLOCK: tl.constexpr):
    a = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + b[:, None] * so + a[None, :], tl.trans(tl.load(x + a[:, None] * sx + b[None, :])))


@triton.jit
def dropout(x, o, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(o + at, tl.where(tl.rand(seed, at) > p, v / (1 - p), 0.0), mask=at < n)


@triton.jit
def descriptor_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    dc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(da.load([m, k]), db.load([k, n]), acc)
    dc.store([m, n], acc.to(tl.float16))


def plan(capability):
    """Name, kernel, types of the arguments, constants, options."""
    f = ["fp16", "bf16", "fp32"]
    for t in f + ["fp64", "i32", "i64", "i8"]:
        for block in (128, 1024):
            yield f"add_{t}_{block}", add, [f"*{t}"] * 3 + ["i32"], {"BLOCK": block}, {}
    for t in f:
        for block, warps in ((256, 4), (4096, 8)):
            yield f"softmax_{t}_{block}", softmax, [f"*{t}"] * 2 + ["i32"] * 2, {"BLOCK": block}, {"num_warps": warps}
        yield f"layer_norm_{t}", layer_norm, [f"*{t}"] * 4 + ["i32"] * 2 + ["fp32"], {"BLOCK": 1024}, {}
        yield f"functions_{t}", functions, [f"*{t}"] * 2 + ["i32"], {"BLOCK": 256}, {}
        yield f"transpose_{t}", transpose, [f"*{t}"] * 2 + ["i32"] * 2, {"BLOCK": 32}, {}
        yield f"dropout_{t}", dropout, [f"*{t}"] * 2 + ["i32", "fp32", "i32"], {"BLOCK": 512}, {}
    for t in ("fp32", "i32", "fp64"):
        yield f"reduce_{t}", reduce_all, [f"*{t}"] * 2 + ["*i32", "i32"], {"BLOCK": 1024}, {}
    for t in ("i32", "i64"):
        yield f"integers_{t}", integers, [f"*{t}"] * 2 + ["i32"], {"BLOCK": 256}, {}
    for t in ("fp32", "i32"):
        yield f"sort_{t}", sort_rows, [f"*{t}"] * 2, {"BLOCK": 256}, {}
    types = [("fp16", "fp16"), ("bf16", "bf16"), ("fp32", "fp32"), ("fp16", "fp32"), ("i8", "i32")]
    if capability >= 90:
        types.append(("fp8e4nv", "fp16"))
    for t, out in types:
        for bm, bn, bk, warps, stages in ((64, 64, 32, 4, 1), (128, 128, 64, 4, 3), (128, 256, 64, 8, 3)):
            if t == "i8":
                continue
            constants = {"BM": bm, "BN": bn, "BK": bk, "EPI": (bm + bn + stages) % 3}
            options = {"num_warps": warps, "num_stages": stages}
            name = f"matmul_{t}_{out}_{bm}x{bn}x{bk}"
            yield name, matmul, [f"*{t}", f"*{t}", f"*{out}"] + ["i32"] * 6, constants, options
    for t in ("fp16", "bf16"):
        for d in (64, 128):
            for causal in (False, True):
                constants = {"D": d, "BM": 128, "BN": 64, "CAUSAL": causal}
                name = f"attention_{t}_{d}{'_causal' if causal else ''}"
                yield name, attention, [f"*{t}"] * 4 + ["i32", "fp32"], constants, {"num_warps": 8}
    if capability >= 90:
        constants = {"BM": 128, "BN": 128, "BK": 64}
        yield "descriptor_matmul", descriptor_matmul, ["*fp16"] * 3 + ["i32"] * 3, constants, {"num_warps": 8}


def main():
    directory, capability = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    target = GPUTarget("cuda", capability, 32)
    failed = 0
    for name, kernel, types, constants, options in plan(capability):
        names = [n for n in kernel.arg_names if n not in constants]
        signature = dict(zip(names, types)) | {n: "constexpr" for n in constants}
        # Pointers and sizes that are multiples of 16, as launches usually have them, allow vector accesses.
        attributes = {
            (i,): [["tt.divisibility", 16]] for i, n in enumerate(kernel.arg_names) if signature[n].startswith("*")
        }
        try:
            source = ASTSource(kernel, signature, constants, attributes)
            text = triton.compile(source, target=target, options=options).asm["ptx"]
            (directory / f"{name}.ptx").write_text(text)
        except Exception as error:  # noqa: BLE001: one kernel that Triton refuses is a finding, not the end
            failed += 1
            print(f"{name}: {str(error).strip().splitlines()[-1] if str(error).strip() else error!r}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
