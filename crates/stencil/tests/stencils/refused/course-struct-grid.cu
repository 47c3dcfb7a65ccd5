struct Grid { int nx, ny; double dx, dy; };
__global__ void lap(const double *u, double *l, Grid g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= g.nx - 1 || j >= g.ny - 1) return;
    int c = j * g.nx + i;
    l[c] = (u[c - 1] - 2 * u[c] + u[c + 1]) / (g.dx * g.dx) + (u[c - g.nx] - 2 * u[c] + u[c + g.nx]) / (g.dy * g.dy);
}
// expect:
// stencil::expression
//
//   × the member `.nx` of a structure is not understood in a stencil
//    ╭─[course-struct-grid.cu:5:32]
//  4 │     int j = blockIdx.y * blockDim.y + threadIdx.y;
//  5 │     if (i < 1 || j < 1 || i >= g.nx - 1 || j >= g.ny - 1) return;
//    ·                                ──┬─
//    ·                                  ╰── here
//  6 │     int c = j * g.nx + i;
//    ╰────
