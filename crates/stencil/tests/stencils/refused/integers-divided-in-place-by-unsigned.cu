__global__ void divided(int *out, const int *in, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    int v = in[i - 1] - in[i + 1];
    v /= 3u;
    out[i] = v;
}
// expect:
// stencil::integer
//
//   × a number beside whole numbers that are data is not of type `int`
//    ╭─[integers-divided-in-place-by-unsigned.cu:5:5]
//  4 │     int v = in[i - 1] - in[i + 1];
//  5 │     v /= 3u;
//    ·     ────┬───
//    ·         ╰── computed in another type
//  6 │     out[i] = v;
//    ╰────
//   help: declare it as `int`
