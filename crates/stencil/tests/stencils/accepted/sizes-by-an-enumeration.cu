enum { NX = 512, NY = 256, NZ = 64 };
__global__ void jac(double *out, const double *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || j < 1 || k < 1 || i >= NX - 1 || j >= NY - 1 || k >= NZ - 1) return;
    int c = i + NX * (j + NY * k);
    out[c] = in[c - 1] + in[c + 1] + in[c - NX] + in[c + NX] + in[c - NX * NY] + in[c + NX * NY] - 6.0 * in[c];
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function jac (out, in) {
//   out[k][j][i] = in[k][j][i-1] + in[k][j][i+1] + in[k][j-1][i] + in[k][j+1][i] + in[k-1][j][i] + in[k+1][j][i] - 6.0 * in[k][j][i];
// }
// iterator k, j, i;
// double out[64][256][512], in[64][256][512];
// jac (out, in);
// return out;
