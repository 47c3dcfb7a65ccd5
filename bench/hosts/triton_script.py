"""Kernels of Triton, checked against PyTorch: a line of JSON for each. `--decorate`: through `warpwright.optimised`."""

import hashlib
import json
import sys

import torch
import triton
import triton.language as tl


def kernel(function):
    """`triton.jit`, or the decorator around it."""
    made = triton.jit(function)
    if "--decorate" not in sys.argv:
        return made
    import warpwright

    return warpwright.optimised(made)


@kernel
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < n
    v = tl.load(x + row * n + at, mask=keep, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + at, e / tl.sum(e, 0), mask=keep)


@kernel
def layer_norm_backward(dx, dy, x, w, mean, rstd, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < n
    xs = tl.load(x + row * n + at, mask=keep, other=0.0)
    dys = tl.load(dy + row * n + at, mask=keep, other=0.0)
    ws = tl.load(w + at, mask=keep, other=0.0)
    hat = (xs - tl.load(mean + row)) * tl.load(rstd + row)
    wdy = ws * dys
    c1 = tl.sum(hat * wdy, 0) / n
    c2 = tl.sum(wdy, 0) / n
    tl.store(dx + row * n + at, (wdy - (hat * c1 + c2)) * tl.load(rstd + row), mask=keep)


@kernel
def matmul(out, a, b, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a + rows[:, None] * k + start + inner[None, :])
        y = tl.load(b + (start + inner[:, None]) * n + columns[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(out + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def report(name, run, out, exact, made):
    """Runs it, compares, times."""
    out.fill_(float("nan"))
    run()
    torch.cuda.synchronize()
    error = ((out.double() - exact.double()).norm() / exact.double().norm()).item()
    digest = hashlib.sha256(out.cpu().numpy().tobytes()).hexdigest()[:16]
    line = {"kernel": name, "error": error, "digest": digest}
    line["ms"] = triton.testing.do_bench(run, warmup=100, rep=400, return_mode="median")
    if hasattr(made, "outcomes"):
        line["outcomes"] = [
            [k.chosen.recipe + ": " + k.reason for k in o] if not isinstance(o, Exception) else repr(o)
            for o in made.outcomes
        ]
    print(json.dumps(line), flush=True)
    assert error < 2e-3, name


def main():
    torch.manual_seed(1)
    n, rows = 32768, 4096
    x = torch.randn(rows, n, device="cuda")
    out = torch.empty_like(x)
    run = lambda: softmax[(rows,)](out, x, n, BLOCK=n, num_warps=4)
    report("softmax", run, out, torch.softmax(x, 1), softmax)

    n = 16384
    x, dy, out = x[:, :n].contiguous(), torch.randn(rows, n, device="cuda"), torch.empty(rows, n, device="cuda")
    w = torch.randn(n, device="cuda")
    mean, rstd = x.mean(1), 1 / (x.var(1, unbiased=False) + 1e-5).sqrt()
    leaf = x.clone().requires_grad_()
    torch.nn.functional.layer_norm(leaf, (n,), w, None, 1e-5).backward(dy)
    for warps in (4, 8):
        run = lambda: layer_norm_backward[(rows,)](out, dy, x, w, mean, rstd, n, BLOCK=n, num_warps=warps)
        report(f"layer_norm_backward of {warps} warps", run, out, leaf.grad, layer_norm_backward)

    n = 4096
    a = torch.randn(n, n, device="cuda", dtype=torch.float16)
    b = torch.randn(n, n, device="cuda", dtype=torch.float16)
    out = torch.empty_like(a)
    run = lambda: matmul[(n // 128, n // 256)](out, a, b, n, n, n, BM=128, BN=256, BK=64, num_warps=8, num_stages=3)
    report("matmul", run, out, a @ b, matmul)


main()
