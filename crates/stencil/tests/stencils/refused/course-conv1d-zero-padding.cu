#define MASK_WIDTH 7
__constant__ float M[MASK_WIDTH];
__global__ void convolution_1D(float *N, float *P, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float Pvalue = 0;
    int start = i - (MASK_WIDTH / 2);
    for (int j = 0; j < MASK_WIDTH; j++) {
        if (start + j >= 0 && start + j < width) {
            Pvalue += N[start + j] * M[j];
        }
    }
    if (i < width) P[i] = Pvalue;
}
// expect:
// stencil::divergent
//
//   × `Pvalue` is set under a condition
//     ╭─[course-conv1d-zero-padding.cu:9:13]
//   8 │         if (start + j >= 0 && start + j < width) {
//   9 │             Pvalue += N[start + j] * M[j];
//     ·             ───────────────┬──────────────
//     ·                            ╰── and again here
//  10 │         }
//     ╰────
//   help: sums that leave out neighbours beyond the border are not understood
