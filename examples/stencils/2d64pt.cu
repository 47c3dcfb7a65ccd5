// 64-point stencil in the plane, order 4 (Rawat et al., PPoPP 2018, Table 1): the mixed derivative
// d2/dxdy, the product of two central first derivatives of eighth order. Their weights, for unit
// spacing, are 4/5, -1/5, 4/105 and -1/280 at distances 1 to 4, with the last two cut to 0.0381
// and 0.00357; nothing is read on the two axes. The signs stand in the sums.
//
// The arrays are plain pointers, and their sizes are arguments.

#pragma warpwright stencil unroll(j=4)
__global__ void j2d64pt(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 4 || i >= n - 4 || j < 4 || j >= m - 4) return;

    out[j * n + i] =
      0.64 * (in[(j - 1) * n + i - 1] + in[(j + 1) * n + i + 1] - in[(j - 1) * n + i + 1] -
        in[(j + 1) * n + i - 1]) +
      0.16 * (in[(j - 2) * n + i + 1] + in[(j - 1) * n + i + 2] + in[(j + 1) * n + i - 2] +
        in[(j + 2) * n + i - 1] - in[(j - 2) * n + i - 1] - in[(j - 1) * n + i - 2] -
        in[(j + 1) * n + i + 2] - in[(j + 2) * n + i + 1]) +
      0.03048 * (in[(j - 3) * n + i - 1] + in[(j - 1) * n + i - 3] + in[(j + 1) * n + i + 3] +
        in[(j + 3) * n + i + 1] - in[(j - 3) * n + i + 1] - in[(j - 1) * n + i + 3] -
        in[(j + 1) * n + i - 3] - in[(j + 3) * n + i - 1]) +
      0.002856 * (in[(j - 4) * n + i + 1] + in[(j - 1) * n + i + 4] + in[(j + 1) * n + i - 4] +
        in[(j + 4) * n + i - 1] - in[(j - 4) * n + i - 1] - in[(j - 1) * n + i - 4] -
        in[(j + 1) * n + i + 4] - in[(j + 4) * n + i + 1]) +
      0.04 * (in[(j - 2) * n + i - 2] + in[(j + 2) * n + i + 2] - in[(j - 2) * n + i + 2] -
        in[(j + 2) * n + i - 2]) +
      0.00762 * (in[(j - 3) * n + i + 2] + in[(j - 2) * n + i + 3] + in[(j + 2) * n + i - 3] +
        in[(j + 3) * n + i - 2] - in[(j - 3) * n + i - 2] - in[(j - 2) * n + i - 3] -
        in[(j + 2) * n + i + 3] - in[(j + 3) * n + i + 2]) +
      0.000714 * (in[(j - 4) * n + i - 2] + in[(j - 2) * n + i - 4] + in[(j + 2) * n + i + 4] +
        in[(j + 4) * n + i + 2] - in[(j - 4) * n + i + 2] - in[(j - 2) * n + i + 4] -
        in[(j + 2) * n + i - 4] - in[(j + 4) * n + i - 2]) +
      0.00145161 * (in[(j - 3) * n + i - 3] + in[(j + 3) * n + i + 3] - in[(j - 3) * n + i + 3] -
        in[(j + 3) * n + i - 3]) +
      0.000136017 * (in[(j - 4) * n + i + 3] + in[(j - 3) * n + i + 4] + in[(j + 3) * n + i - 4] +
        in[(j + 4) * n + i - 3] - in[(j - 4) * n + i - 3] - in[(j - 3) * n + i - 4] -
        in[(j + 3) * n + i + 4] - in[(j + 4) * n + i + 3]) +
      1.27449e-05 * (in[(j - 4) * n + i - 4] + in[(j + 4) * n + i + 4] - in[(j - 4) * n + i + 4] -
        in[(j + 4) * n + i - 4]);
}
