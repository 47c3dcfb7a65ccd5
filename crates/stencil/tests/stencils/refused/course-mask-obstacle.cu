__global__ void obstacle(const float *in, float *out, const int *mask, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1) {
        int c = y * nx + x;
        if (mask[c]) out[c] = 0.25f * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
        else out[c] = in[c];
    }
}
// expect:
// stencil::argument
//
//   × `mask` is no array of `float` or `double`
//    ╭─[course-mask-obstacle.cu:6:13]
//  5 │         int c = y * nx + x;
//  6 │         if (mask[c]) out[c] = 0.25f * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
//    ·             ──┬─
//    ·               ╰── cannot be part of a stencil
//  7 │         else out[c] = in[c];
//    ╰────
