__global__ void clamp1(float *out, const float *in, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int im = i ? i - 1 : 0;
    int ip = i == n - 1 ? i : i + 1;
    int jm = !j ? 0 : j - 1;
    int jp = (j + 1 < m) ? j + 1 : j;
    out[j * n + i] = in[j * n + im] + in[j * n + ip] + in[jm * n + i] + in[jp * n + i];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function clamp1 (out, in) {
//   out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i];
// }
// // other points of j = 0 : m, i = 0 : n, clamped along j, clamped along i:
// //   out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i];
// parameter n, m;
// iterator j, i;
// float out[m][n], in[m][n];
// clamp1 (out, in);
// return out;
