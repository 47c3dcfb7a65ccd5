__global__ void f(double *out, const double *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < 511 && j < 99)
        out[j * 512 + i] = in[(j + 1) * 512 + i - 1] + in[j * 512 - 1 + i] + in[512 + j * 512 + i];
}

// expect:
// j: 0 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j+1][i-1] + in[j][i-1] + in[j+1][i];
// }
// iterator j, i;
// double out[100][512], in[100][512];
// points i = 1 : 511;
// f (out, in);
// return out;
