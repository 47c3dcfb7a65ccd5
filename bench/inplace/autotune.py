"""Triton with autotuning: softmax and layer norm. Prints digests."""
import hashlib

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({}, num_warps=w) for w in (2, 4, 8)], key=["n"])
@triton.jit
def softmax(y, x, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, v / tl.sum(v, 0), mask=at < n)


@triton.jit
def norm(y, x, w, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(at < n, v - mean, 0.0)
    s = tl.load(w + at, mask=at < n, other=0.0)
    tl.store(y + row * n + at, d / tl.sqrt(tl.sum(d * d, 0) / n + 1e-5) * s, mask=at < n)


torch.manual_seed(2)
x = torch.randn(8192, 1000, device="cuda")
w = torch.randn(1000, device="cuda")
y, z = torch.empty_like(x), torch.empty_like(x)
for _ in range(50):
    softmax[(8192,)](y, x, 1000, B=1024)
    norm[(8192,)](z, y, w, 1000, B=1024, num_warps=4)
    x = x + 0.01 * z
print(hashlib.sha256(x.cpu().numpy().tobytes()).hexdigest())
