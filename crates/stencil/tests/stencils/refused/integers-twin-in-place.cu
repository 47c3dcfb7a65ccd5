__global__ void f(unsigned char *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    a[i] = (a[i - 1] + a[i + 1]) / 2;
}
// expect:
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[integers-twin-in-place.cu:4:5]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     a[i] = (a[i - 1] + a[i + 1]) / 2;
//    ·     ──┬─    ────┬───
//    ·       │         ╰── depends on the order of the points
//    ·       ╰── written here
//  5 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[integers-twin-in-place.cu:4:5]
//  3 │     if (i < 1 || i >= n - 1) return;
//  4 │     a[i] = (a[i - 1] + a[i + 1]) / 2;
//    ·     ──┬─               ────┬───
//    ·       │                    ╰── depends on the order of the points
//    ·       ╰── written here
//  5 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
