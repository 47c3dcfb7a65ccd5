struct Grid { int nx, ny; double dx, dy; };
__global__ void sp(double *out, const double *in, Grid g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= g.nx - 1 || j < 1 || j >= g.ny - 1) return;
    out[j * g.nx + i] = (in[j * g.nx + i + 1] - in[j * g.nx + i - 1]) / g.dx + (in[(j + 1) * g.nx + i] - in[(j - 1) * g.nx + i]) / g.dy;
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function sp (out, in, g_dx, g_dy) {
//   out[j][i] = (in[j][i+1] - in[j][i-1]) / g_dx + (in[j+1][i] - in[j-1][i]) / g_dy;
// }
// parameter g_nx, g_ny;
// iterator j, i;
// double out[g_ny][g_nx], in[g_ny][g_nx], g_dx, g_dy;
// sp (out, in, g_dx, g_dy);
// return out;
