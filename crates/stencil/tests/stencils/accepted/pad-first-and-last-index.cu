__global__ void heat3d(float *out, const float *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i >= nx || j >= ny || k >= nz) return;
    int idx = (k * ny + j) * nx + i;
    float c = in[idx];
    float w = (i == 0) ? 0.0f : in[idx - 1];
    float e = (i == nx - 1) ? 0.0f : in[idx + 1];
    float n = (j == 0) ? 0.0f : in[idx - nx];
    float s = (j == ny - 1) ? 0.0f : in[idx + nx];
    float b = (k == 0) ? 0.0f : in[idx - nx * ny];
    float t = (k == nz - 1) ? 0.0f : in[idx + nx * ny];
    out[idx] = c + 0.1f * (w + e + n + s + b + t - 6.0f * c);
}
// expect:
// k: 1 and 2 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function heat3d (out, in) {
//   float c = in[k][j][i];
//   float w = in[k][j][i-1];
//   float e = in[k][j][i+1];
//   float n = in[k][j-1][i];
//   float s = in[k][j+1][i];
//   float b = in[k-1][j][i];
//   float t = in[k+1][j][i];
//   out[k][j][i] = c + 0.1f * (w + e + n + s + b + t - 6.0f * c);
// }
// // other points of k = 0 : nz, j = 0 : ny, i = 0 : nx:
// //   float c = in[k][j][i];
// //   float w = (i < 1 ? 0.0f : in[k][j][i-1]);
// //   float e = (i >= nx-1 ? 0.0f : in[k][j][i+1]);
// //   float n = (j < 1 ? 0.0f : in[k][j-1][i]);
// //   float s = (j >= ny-1 ? 0.0f : in[k][j+1][i]);
// //   float b = (k < 1 ? 0.0f : in[k-1][j][i]);
// //   float t = (k >= nz-1 ? 0.0f : in[k+1][j][i]);
// //   out[k][j][i] = c + 0.1f * (w + e + n + s + b + t - 6.0f * c);
// parameter nx, ny, nz;
// iterator k, j, i;
// float out[nz+1][ny][nx], in[nz+1][ny][nx];
// points k = 1 : nz-1;
// heat3d (out, in);
// return out;
