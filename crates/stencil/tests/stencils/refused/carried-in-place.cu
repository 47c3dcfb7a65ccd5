__global__ void f(double *a, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double below = a[i];
    for (int k = 1; k < l; k++) {
        double here = a[k * n + i];
        a[k * n + i] = here - below;
        below = here;
    }
}
// expect:
// stencil::in-place
//
//   × values of `a` are kept while it is written
//    ╭─[carried-in-place.cu:6:23]
//  5 │     for (int k = 1; k < l; k++) {
//  6 │         double here = a[k * n + i];
//    ·                       ──────┬─────
//    ·                             ╰── kept here
//  7 │         a[k * n + i] = here - below;
//    ·         ──────┬─────
//    ·               ╰── written here
//  8 │         below = here;
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
