__global__ void k(double *a, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
}
// expect:
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[twin-in-place.cu:5:5]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
//    ·     ──────┬─────           ────────┬───────
//    ·           │                        ╰── depends on the order of the points
//    ·           ╰── written here
//  6 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[twin-in-place.cu:5:5]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
//    ·     ──────┬─────                              ────────┬───────
//    ·           │                                           ╰── depends on the order of the points
//    ·           ╰── written here
//  6 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[twin-in-place.cu:5:5]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
//    ·     ──────┬─────                                                 ─────────┬────────
//    ·           │                                                               ╰── depends on the order of the points
//    ·           ╰── written here
//  6 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
// stencil::in-place
//
//   × `a` is read at another point than the one that is written
//    ╭─[twin-in-place.cu:5:5]
//  4 │     if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
//  5 │     a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
//    ·     ──────┬─────                                                                      ─────────┬────────
//    ·           │                                                                                    ╰── depends on the order of the points
//    ·           ╰── written here
//  6 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
