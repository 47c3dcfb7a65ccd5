__global__ void least(float *out, const signed char *in, int N, int M, unsigned bound) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= N - 1 || j >= M - 1) return;
    out[j * N + i] = in[j * N + i + 1] + min((int)in[j * N + i - 1], (int)bound);
}
// expect:
// stencil::position
//
//   × a place or a size is used as a value
//    ╭─[integers-size-in-another-type.cu:5:42]
//  4 │     if (i < 1 || j < 1 || i >= N - 1 || j >= M - 1) return;
//  5 │     out[j * N + i] = in[j * N + i + 1] + min((int)in[j * N + i - 1], (int)bound);
//    ·                                          ───────────────────┬───────────────────
//    ·                                                             ╰── depends on where the point is
//  6 │ }
//    ╰────
//   help: points compute from arrays, scalars and constants, not from their place
