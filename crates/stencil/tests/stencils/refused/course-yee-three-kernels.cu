__global__ void update_ex(float *ex, const float *hz, int nx, int ny, float c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < nx && j > 0 && j < ny) ex[j * nx + i] += c * (hz[j * nx + i] - hz[(j - 1) * nx + i]);
}
__global__ void update_ey(float *ey, const float *hz, int nx, int ny, float c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < nx && j < ny) ey[j * nx + i] -= c * (hz[j * nx + i] - hz[j * nx + i - 1]);
}
__global__ void update_hz(float *hz, const float *ex, const float *ey, int nx, int ny, float c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < nx - 1 && j < ny - 1)
        hz[j * nx + i] -= c * (ey[j * nx + i + 1] - ey[j * nx + i] - ex[(j + 1) * nx + i] + ex[j * nx + i]);
}
// expect:
// stencil::kernel
//
//   × `course-yee-three-kernels.cu` has several kernels that are stencils
//    ╭─[course-yee-three-kernels.cu:1:17]
//  1 │ __global__ void update_ex(float *ex, const float *hz, int nx, int ny, float c) {
//    ·                 ────┬────
//    ·                     ╰── a stencil
//  2 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//     ╭─[course-yee-three-kernels.cu:6:17]
//   5 │ }
//   6 │ __global__ void update_ey(float *ey, const float *hz, int nx, int ny, float c) {
//     ·                 ────┬────
//     ·                     ╰── a stencil
//   7 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//   8 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//   9 │     if (i > 0 && i < nx && j < ny) ey[j * nx + i] -= c * (hz[j * nx + i] - hz[j * nx + i - 1]);
//  10 │ }
//  11 │ __global__ void update_hz(float *hz, const float *ex, const float *ey, int nx, int ny, float c) {
//     ·                 ────┬────
//     ·                     ╰── a stencil
//  12 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//     ╰────
//   help: name one with `--kernel`, to transform it or to see what is in its way
