__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double below = in[n + i];
    for (int k = 1; k < l; k++) {
        double here = in[k * n + i];
        out[k * n + i] = here - below;
        below = here;
    }
}
// expect:
// stencil::carried
//
//   × `below` begins with another element than it goes on with
//    ╭─[carried-from-another-row.cu:4:20]
//  3 │     if (i >= n) return;
//  4 │     double below = in[n + i];
//    ·                    ────┬────
//    ·                        ╰── loaded before the loop
//  5 │     for (int k = 1; k < l; k++) {
//  6 │         double here = in[k * n + i];
//    ·                       ──────┬──────
//    ·                             ╰── loaded in the loop
//  7 │         out[k * n + i] = here - below;
//    ╰────
