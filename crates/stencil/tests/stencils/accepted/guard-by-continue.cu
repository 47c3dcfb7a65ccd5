__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < l; k++) {
        if (k < 2 || i >= n) continue;
        out[k * n + i] = in[(k - 2) * n + i];
    }
}

// expect:
// k: 2 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   out[k][i] = in[k-2][i];
// }
// parameter l, n;
// iterator k, i;
// double out[l][n], in[l][n];
// f (out, in);
// return out;
