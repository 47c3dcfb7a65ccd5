// The 81-point stencil in the form in which its authors published it: anchored at the low corner (offsets 0 to 8), with 15
// weights that are no product of two rows. Harder than ../2d81pt.cu, whose product of two rows takes 38 operations a point.
#define N 8200
__global__ void corner81(const double* __restrict__ in, double* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i <= n - 9 && j <= n - 9) {
        out[j * N + i] = (in[(j + 0) * N + i + 0] + in[(j + 0) * N + i + 8] + in[(j + 8) * N + i + 0] + in[(j + 8) * N + i + 8]) * -2.09628 +
            (in[(j + 0) * N + i + 1] + in[(j + 0) * N + i + 7] + in[(j + 1) * N + i + 0] + in[(j + 1) * N + i + 8] + in[(j + 7) * N + i + 0] + in[(j + 7) * N + i + 8] + in[(j + 8) * N + i + 1] + in[(j + 8) * N + i + 7]) * 0.35383 +
            (in[(j + 0) * N + i + 2] + in[(j + 0) * N + i + 6] + in[(j + 2) * N + i + 0] + in[(j + 2) * N + i + 8] + in[(j + 6) * N + i + 0] + in[(j + 6) * N + i + 8] + in[(j + 8) * N + i + 2] + in[(j + 8) * N + i + 6]) * -1.04036 +
            (in[(j + 0) * N + i + 3] + in[(j + 0) * N + i + 5] + in[(j + 3) * N + i + 0] + in[(j + 3) * N + i + 8] + in[(j + 5) * N + i + 0] + in[(j + 5) * N + i + 8] + in[(j + 8) * N + i + 3] + in[(j + 8) * N + i + 5]) * 0.83136 +
            (in[(j + 0) * N + i + 4] + in[(j + 4) * N + i + 0] + in[(j + 4) * N + i + 8] + in[(j + 8) * N + i + 4]) * 1.00576 +
            (in[(j + 1) * N + i + 1] + in[(j + 1) * N + i + 7] + in[(j + 7) * N + i + 1] + in[(j + 7) * N + i + 7]) * 3.96516 +
            (in[(j + 1) * N + i + 2] + in[(j + 1) * N + i + 6] + in[(j + 2) * N + i + 1] + in[(j + 2) * N + i + 7] + in[(j + 6) * N + i + 1] + in[(j + 6) * N + i + 7] + in[(j + 7) * N + i + 2] + in[(j + 7) * N + i + 6]) * -0.23789 +
            (in[(j + 1) * N + i + 3] + in[(j + 1) * N + i + 5] + in[(j + 3) * N + i + 1] + in[(j + 3) * N + i + 7] + in[(j + 5) * N + i + 1] + in[(j + 5) * N + i + 7] + in[(j + 7) * N + i + 3] + in[(j + 7) * N + i + 5]) * 2.69169 +
            (in[(j + 1) * N + i + 4] + in[(j + 4) * N + i + 1] + in[(j + 4) * N + i + 7] + in[(j + 7) * N + i + 4]) * -0.18917 +
            (in[(j + 2) * N + i + 2] + in[(j + 2) * N + i + 6] + in[(j + 6) * N + i + 2] + in[(j + 6) * N + i + 6]) * 1.37129 +
            (in[(j + 2) * N + i + 3] + in[(j + 2) * N + i + 5] + in[(j + 3) * N + i + 2] + in[(j + 3) * N + i + 6] + in[(j + 5) * N + i + 2] + in[(j + 5) * N + i + 6] + in[(j + 6) * N + i + 3] + in[(j + 6) * N + i + 5]) * -3.48775 +
            (in[(j + 2) * N + i + 4] + in[(j + 4) * N + i + 2] + in[(j + 4) * N + i + 6] + in[(j + 6) * N + i + 4]) * 2.06584 +
            (in[(j + 3) * N + i + 3] + in[(j + 3) * N + i + 5] + in[(j + 5) * N + i + 3] + in[(j + 5) * N + i + 5]) * 1.71304 +
            (in[(j + 3) * N + i + 4] + in[(j + 4) * N + i + 3] + in[(j + 4) * N + i + 5] + in[(j + 5) * N + i + 4]) * 3.36879 +
            (in[(j + 4) * N + i + 4]) * 3.72384;
    }
}
