__global__ void step(const float *in, float *out, float *err, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x < nx - 1 && y < ny - 1) {
        float v = 0.25f * (in[y * nx + x - 1] + in[y * nx + x + 1] + in[(y - 1) * nx + x] + in[(y + 1) * nx + x]);
        out[y * nx + x] = v;
        atomicAdd(err, fabsf(v - in[y * nx + x]));
    }
}
// expect:
// stencil::atomic
//
//   × atomic operations depend on the order of the threads
//    ╭─[course-mean-abs-error-atomic.cu:7:9]
//  6 │         out[y * nx + x] = v;
//  7 │         atomicAdd(err, fabsf(v - in[y * nx + x]));
//    ·         ────┬────
//    ·             ╰── `atomicAdd`
//  8 │     }
//    ╰────
