__global__ void f(double out[][1024], const double (*in)[1024], int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < n - 1 && j < m) out[j][i] = in[j][i - 1] + in[j][i + 1];
}

// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in) {
//   out[j][i] = in[j][i-1] + in[j][i+1];
// }
// parameter m, n;
// iterator j, i;
// double out[m][1024], in[m][1024];
// points i = 1 : n-1;
// f (out, in);
// return out;
