__global__ void f(double *out, const double *in, int n, int m) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int z = blockIdx.z + 1;
    if (i < n) out[z * n + i] = in[(z - 1) * n + i];
}
// expect:
// z: 1 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function f (out, in) {
//   out[z][i] = in[z-1][i];
// }
// // `blocks_z` is `gridDim.z`
// parameter n, blocks_z;
// iterator z, i;
// double out[blocks_z+1][n], in[blocks_z+1][n];
// f (out, in);
// return out;
