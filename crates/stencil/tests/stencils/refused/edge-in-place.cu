__global__ void f(float *u, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) u[x] = u[max(x - 1, 0)] + u[min(x + 1, n - 1)];
}
// expect:
// stencil::in-place
//
//   × `u` is read at another point than the one that is written
//    ╭─[edge-in-place.cu:3:16]
//  2 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (x < n) u[x] = u[max(x - 1, 0)] + u[min(x + 1, n - 1)];
//    ·                ──┬─   ────────┬───────
//    ·                  │            ╰── depends on the order of the points
//    ·                  ╰── written here
//  4 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
// stencil::in-place
//
//   × `u` is read at another point than the one that is written
//    ╭─[edge-in-place.cu:3:16]
//  2 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     if (x < n) u[x] = u[max(x - 1, 0)] + u[min(x + 1, n - 1)];
//    ·                ──┬─                      ──────────┬─────────
//    ·                  │                                 ╰── depends on the order of the points
//    ·                  ╰── written here
//  4 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
