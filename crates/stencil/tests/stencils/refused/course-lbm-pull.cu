#define W 512
#define H 512
__global__ void stream_d2q5(const float *f, float *g, float tau) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < W - 1 && y > 0 && y < H - 1) {
        float f0 = f[0 * W * H + y * W + x];
        float f1 = f[1 * W * H + y * W + x - 1];
        float f2 = f[2 * W * H + y * W + x + 1];
        float f3 = f[3 * W * H + (y - 1) * W + x];
        float f4 = f[4 * W * H + (y + 1) * W + x];
        float rho = f0 + f1 + f2 + f3 + f4;
        g[0 * W * H + y * W + x] = f0 - (f0 - rho / 3.0f) / tau;
        g[1 * W * H + y * W + x] = f1 - (f1 - rho / 6.0f) / tau;
        g[2 * W * H + y * W + x] = f2 - (f2 - rho / 6.0f) / tau;
        g[3 * W * H + y * W + x] = f3 - (f3 - rho / 6.0f) / tau;
        g[4 * W * H + y * W + x] = f4 - (f4 - rho / 6.0f) / tau;
    }
}
// expect:
// stencil::scatter
//
//   × `g` is written at another point than the thread's own
//     ╭─[course-lbm-pull.cu:14:9]
//  13 │         g[0 * W * H + y * W + x] = f0 - (f0 - rho / 3.0f) / tau;
//  14 │         g[1 * W * H + y * W + x] = f1 - (f1 - rho / 6.0f) / tau;
//     ·         ────────────┬───────────
//     ·                     ╰── `y+512`
//  15 │         g[2 * W * H + y * W + x] = f2 - (f2 - rho / 6.0f) / tau;
//     ╰────
//   help: shift the iterators so that what is written has no offset
// stencil::scatter
//
//   × `g` is written at another point than the thread's own
//     ╭─[course-lbm-pull.cu:15:9]
//  14 │         g[1 * W * H + y * W + x] = f1 - (f1 - rho / 6.0f) / tau;
//  15 │         g[2 * W * H + y * W + x] = f2 - (f2 - rho / 6.0f) / tau;
//     ·         ────────────┬───────────
//     ·                     ╰── `y+1024`
//  16 │         g[3 * W * H + y * W + x] = f3 - (f3 - rho / 6.0f) / tau;
//     ╰────
//   help: shift the iterators so that what is written has no offset
// stencil::scatter
//
//   × `g` is written at another point than the thread's own
//     ╭─[course-lbm-pull.cu:16:9]
//  15 │         g[2 * W * H + y * W + x] = f2 - (f2 - rho / 6.0f) / tau;
//  16 │         g[3 * W * H + y * W + x] = f3 - (f3 - rho / 6.0f) / tau;
//     ·         ────────────┬───────────
//     ·                     ╰── `y+1536`
//  17 │         g[4 * W * H + y * W + x] = f4 - (f4 - rho / 6.0f) / tau;
//     ╰────
//   help: shift the iterators so that what is written has no offset
// stencil::scatter
//
//   × `g` is written at another point than the thread's own
//     ╭─[course-lbm-pull.cu:17:9]
//  16 │         g[3 * W * H + y * W + x] = f3 - (f3 - rho / 6.0f) / tau;
//  17 │         g[4 * W * H + y * W + x] = f4 - (f4 - rho / 6.0f) / tau;
//     ·         ────────────┬───────────
//     ·                     ╰── `y+2048`
//  18 │     }
//     ╰────
//   help: shift the iterators so that what is written has no offset
