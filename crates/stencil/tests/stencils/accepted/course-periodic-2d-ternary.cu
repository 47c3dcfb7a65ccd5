__global__ void diffuse(const float *a, float *b, int nx, int ny, float k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    int im = (i == 0) ? nx - 1 : i - 1;
    int ip = (i == nx - 1) ? 0 : i + 1;
    int jm = (j == 0) ? ny - 1 : j - 1;
    int jp = (j == ny - 1) ? 0 : j + 1;
    b[j * nx + i] = a[j * nx + i] + k * (a[j * nx + im] + a[j * nx + ip] + a[jm * nx + i] + a[jp * nx + i] - 4.f * a[j * nx + i]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function diffuse (a, b, k) {
//   b[j][i] = a[j][i] + k * (a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i] - 4.0f * a[j][i]);
// }
// // other points of j = 0 : ny, i = 0 : nx, wrapped along j, wrapped along i:
// //   b[j][i] = a[j][i] + k * (a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i] - 4.0f * a[j][i]);
// parameter nx, ny;
// iterator j, i;
// float a[ny][nx], b[ny][nx], k;
// diffuse (a, b, k);
// return b;
