struct Grid { int nx; };
__global__ void f(double *out, const double *in, Grid g, int g_nx) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < 1 || x >= g.nx - g_nx) return;
    out[x] = in[x - 1];
}
// expect:
// stencil::argument
//
//   × an argument and a member of another one are both called `g_nx` here
//    ╭─[members-that-are-called-like-an-argument.cu:2:17]
//  1 │ struct Grid { int nx; };
//  2 │ __global__ void f(double *out, const double *in, Grid g, int g_nx) {
//    ·                 ┬
//    ·                 ╰── in this kernel
//  3 │     int x = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
