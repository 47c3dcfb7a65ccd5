__global__ void k(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
    int plane = nx * ny, p = j * nx + i;
    double below = in[p], here = in[p + plane];
    for (int k = 1; k < nz - 1; k++) {
        p += plane;
        double above = in[p + plane];
        out[p] = here + below + above;
        here = above;
        below = here;
    }
}
// expect:
// stencil::carried
//
//   × `below` begins with another element than it goes on with
//     ╭─[twin-marching-wrong-rotate.cu:6:20]
//   5 │     int plane = nx * ny, p = j * nx + i;
//   6 │     double below = in[p], here = in[p + plane];
//     ·                    ──┬──
//     ·                      ╰── loaded before the loop
//   7 │     for (int k = 1; k < nz - 1; k++) {
//   8 │         p += plane;
//   9 │         double above = in[p + plane];
//     ·                        ──────┬──────
//     ·                              ╰── loaded in the loop
//  10 │         out[p] = here + below + above;
//     ╰────
