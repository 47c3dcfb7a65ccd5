__global__ void other(int *p) { atomicAdd(p, 1); }
#pragma warpwright stencil unroll(j=4, i=2) reassociate
__global__ void f(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) out[j * n + i] = in[j * n + i];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j][i];
// }
// parameter m, n;
// iterator j, i;
// double out[m][n], in[m][n];
// unroll j=4, i=2;
// reassociate;
// f (out, in);
// return out;
