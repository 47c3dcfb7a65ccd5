__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double below = in[i];
    for (int k = 1; k < l; k++) {
        double here = in[k * n + i];
        out[k * n + i] = here - below;
        below = here;
    }
}

// expect:
// k: 1 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   double below = in[k-1][i];
//   double here = in[k][i];
//   out[k][i] = here - below;
// }
// parameter l, n;
// iterator k, i;
// double out[l][n], in[l][n];
// f (out, in);
// return out;
