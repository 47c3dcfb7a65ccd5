#define MX 64
#define MY 64
#define MZ 64
#define SPENCILS 4
__constant__ float c_ax, c_bx, c_cx, c_dx;
__global__ void derivative_x(float *f, float *df) {
    __shared__ float s_f[SPENCILS][MX + 8];
    int i = threadIdx.x;
    int j = blockIdx.x * blockDim.y + threadIdx.y;
    int k = blockIdx.y;
    int si = i + 4;
    int sj = threadIdx.y;
    int globalIdx = k * MX * MY + j * MX + i;
    s_f[sj][si] = f[globalIdx];
    __syncthreads();
    if (i < 4) {
        s_f[sj][si - 4] = s_f[sj][si + MX - 5];
        s_f[sj][si + MX] = s_f[sj][si + 1];
    }
    __syncthreads();
    df[globalIdx] = (c_ax * (s_f[sj][si + 1] - s_f[sj][si - 1]) + c_bx * (s_f[sj][si + 2] - s_f[sj][si - 2])
                   + c_cx * (s_f[sj][si + 3] - s_f[sj][si - 3]) + c_dx * (s_f[sj][si + 4] - s_f[sj][si - 4]));
}
// expect:
// stencil::barrier
//
//   × there is no barrier between stores to `s_f` and reads of it
//     ╭─[course-derivative-pencils-periodic.cu:17:9]
//  16 │     if (i < 4) {
//  17 │         s_f[sj][si - 4] = s_f[sj][si + MX - 5];
//     ·         ───────────────────┬───────────────────
//     ·                            ╰── other threads may still read it
//  18 │         s_f[sj][si + MX] = s_f[sj][si + 1];
//     ╰────
//   help: put `__syncthreads()` between them
