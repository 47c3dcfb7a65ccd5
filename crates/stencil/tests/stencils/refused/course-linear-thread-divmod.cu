__global__ void flat(const float *in, float *out, int nx, int ny) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    int x = id % nx;
    int y = id / nx;
    if (y < ny && x > 0 && x < nx - 1 && y > 0 && y < ny - 1)
        out[id] = 0.25f * (in[id - 1] + in[id + 1] + in[id - nx] + in[id + nx]);
}
// expect:
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[course-linear-thread-divmod.cu:3:13]
//  2 │     int id = blockIdx.x * blockDim.x + threadIdx.x;
//  3 │     int x = id % nx;
//    ·             ───┬───
//    ·                ╰── an index that wraps at the border, a colour, a row of one long array?
//  4 │     int y = id / nx;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
