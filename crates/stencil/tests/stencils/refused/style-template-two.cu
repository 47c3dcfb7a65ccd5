template <typename T, int RADIUS>
__global__ void box(const T *in, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < RADIUS || i >= n - RADIUS) return;
    T s = 0;
    for (int d = -RADIUS; d <= RADIUS; d++) s += in[i + d];
    out[i] = s / T(2 * RADIUS + 1);
}
void g(const double *a, double *b, const float *c, float *d, int n) {
    box<double, 3><<<(n + 255) / 256, 256>>>(a, b, n);
    box<float, 2><<<(n + 127) / 128, 128>>>(c, d, n);
}
// expect:
// stencil::template
//
//   × `box` is instantiated in several ways
//    ╭─[style-template-two.cu:2:17]
//  1 │ template <typename T, int RADIUS>
//  2 │ __global__ void box(const T *in, T *out, int n) {
//    ·                 ─┬─
//    ·                  ╰── this template
//  3 │     int i = blockIdx.x * blockDim.x + threadIdx.x;
//    ╰────
//     ╭─[style-template-two.cu:10:5]
//   9 │ void g(const double *a, double *b, const float *c, float *d, int n) {
//  10 │     box<double, 3><<<(n + 255) / 256, 256>>>(a, b, n);
//     ·     ─┬─
//     ·      ╰── in this way
//  11 │     box<float, 2><<<(n + 127) / 128, 128>>>(c, d, n);
//     ·     ─┬─
//     ·      ╰── and in this
//  12 │ }
//     ╰────
