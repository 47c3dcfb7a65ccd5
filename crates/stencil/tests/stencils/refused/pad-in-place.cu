// in place: races
__global__ void smooth(float *u, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? u[i - 1] : 0.0f;
    u[i] = 0.5f * (left + u[i]);
}
// expect:
// stencil::in-place
//
//   × `u` is read at another point than the one that is written
//    ╭─[pad-in-place.cu:5:26]
//  4 │     if (i >= n) return;
//  5 │     float left = i > 0 ? u[i - 1] : 0.0f;
//    ·                          ────┬───
//    ·                              ╰── depends on the order of the points
//  6 │     u[i] = 0.5f * (left + u[i]);
//    ·     ──┬─
//    ·       ╰── written here
//  7 │ }
//    ╰────
//   help: write to a second array, and exchange the two between sweeps
