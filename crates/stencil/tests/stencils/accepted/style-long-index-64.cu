__global__ void l64(double *out, const double *in, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1 || k < 1 || k >= nz - 1) return;
    const long long s = (long long)nx * ny;
    const long long p = (long long)k * s + (long long)j * nx + i;
    out[p] = in[p - s] + in[p + s] + in[p - nx] + in[p + nx] + in[p - 1] + in[p + 1];
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function l64 (out, in) {
//   out[k][j][i] = in[k-1][j][i] + in[k+1][j][i] + in[k][j-1][i] + in[k][j+1][i] + in[k][j][i-1] + in[k][j][i+1];
// }
// parameter nx, ny, nz;
// iterator k, j, i;
// double out[nz][ny][nx], in[nz][ny][nx];
// l64 (out, in);
// return out;
