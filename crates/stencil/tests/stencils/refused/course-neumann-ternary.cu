__global__ void neumann(const double *a, double *b, int nx, int ny, double k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < nx && j < ny) {
        int p = j * nx + i;
        double left  = i > 0      ? a[p - 1]  : a[p];
        double right = i < nx - 1 ? a[p + 1]  : a[p];
        double down  = j > 0      ? a[p - nx] : a[p];
        double up    = j < ny - 1 ? a[p + nx] : a[p];
        b[p] = a[p] + k * (left + right + up + down - 4.0 * a[p]);
    }
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[course-neumann-ternary.cu:6:24]
//  5 │         int p = j * nx + i;
//  6 │         double left  = i > 0      ? a[p - 1]  : a[p];
//    ·                        ──────────────┬──────────────
//    ·                                      ╰── a neighbour that is clamped, wrapped or zero outside?
//  7 │         double right = i < nx - 1 ? a[p + 1]  : a[p];
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
