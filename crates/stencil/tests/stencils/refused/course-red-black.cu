__global__ void sor(double *u, const double *f, int n, double w, int colour) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int j = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (i < n - 1 && j < n - 1 && (i + j) % 2 == colour)
        u[j * n + i] = (1 - w) * u[j * n + i] + 0.25 * w * (u[j * n + i - 1] + u[j * n + i + 1] + u[(j - 1) * n + i] + u[(j + 1) * n + i] - f[j * n + i]);
}
// expect:
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[course-red-black.cu:4:35]
//  3 │     int j = blockIdx.y * blockDim.y + threadIdx.y + 1;
//  4 │     if (i < n - 1 && j < n - 1 && (i + j) % 2 == colour)
//    ·                                   ─────┬─────
//    ·                                        ╰── an index that wraps at the border, a colour, a row of one long array?
//  5 │         u[j * n + i] = (1 - w) * u[j * n + i] + 0.25 * w * (u[j * n + i - 1] + u[j * n + i + 1] + u[(j - 1) * n + i] + u[(j + 1) * n + i] - f[j * n + i]);
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
