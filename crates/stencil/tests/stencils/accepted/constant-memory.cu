__constant__ double weights[3][2];
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = weights[0][1] * in[j * n + i] + weights[2][0];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in, weights_of_file) {
//   out[j][i] = weights_of_file[0][1] * in[j][i] + weights_of_file[2][0];
// }
// // `weights_of_file` is `weights` of the file
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n], weights_of_file[3][2];
// f (out, in, weights_of_file);
// return out;
