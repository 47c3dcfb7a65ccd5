__global__ void k(double *a, int n, int m, int color) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    if ((i + j) % 2 == color) a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
}
// expect:
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[twin-alias-red-black.cu:5:9]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     if ((i + j) % 2 == color) a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
//    ·         ─────┬─────
//    ·              ╰── an index that wraps at the border, a colour, a row of one long array?
//  6 │ }
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
