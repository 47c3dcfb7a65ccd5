__global__ void k(double *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double *b = a + 1;
    if (i < 1 || i >= n - 2) return;
    b[i] = a[i] + a[i - 1];
}
// expect:
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[twin-alias-pointer.cu:5:5]
//  4 │     if (i < 1 || i >= n - 2) return;
//  5 │     b[i] = a[i] + a[i - 1];
//    ·     ──┬─   ──┬─
//    ·       │      ╰── depends on the order of the points
//    ·       ╰── written here
//  6 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[twin-alias-pointer.cu:5:5]
//  4 │     if (i < 1 || i >= n - 2) return;
//  5 │     b[i] = a[i] + a[i - 1];
//    ·     ──┬─          ────┬───
//    ·       │               ╰── depends on the order of the points
//    ·       ╰── written here
//  6 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
