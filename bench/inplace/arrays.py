"""CuPy: element-wise, reduction and raw kernels. Prints a digest."""
import hashlib

import cupy as cp

raw = cp.RawKernel(
    r"""
extern "C" __global__ void stir(float *x, int n, int rounds) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= n) return;
    float v[24];
    for (int k = 0; k < 24; k++) v[k] = x[i] * (k + 1);
    for (int r = 0; r < rounds; r++)
        #pragma unroll
        for (int k = 0; k < 24; k++) v[k] = v[k] * 0.99f + v[(k + 5) % 24] * 1e-3f;
    float s = 0;
    for (int k = 0; k < 24; k++) s += v[k];
    x[i] = s * 0.01f;
}""",
    "stir",
)
x = (cp.arange(1 << 22, dtype=cp.float32) % 1013) * 0.01
for _ in range(50):
    y = cp.sqrt(x * x + 1) - x.mean()
    raw(((1 << 22) // 256,), (256,), (y, cp.int32(1 << 22), cp.int32(20)))
    x = cp.where(y > 0.5, y, x) * cp.float32(0.999)
print(hashlib.sha256(cp.asnumpy(x).tobytes()).hexdigest())
