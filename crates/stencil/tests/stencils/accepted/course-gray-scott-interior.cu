struct Unused { int a; };
__device__ __forceinline__ float lap(const float *a, int p, int w) {
    return a[p - 1] + a[p + 1] + a[p - w] + a[p + w] - 4.0f * a[p];
}
__global__ void gray_scott(const float *u, const float *v, float *un, float *vn, int w, int h, float F, float K) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x < w - 1 && y < h - 1) {
        const int p = y * w + x;
        const float a = u[p], b = v[p];
        const float abb = a * b * b;
        un[p] = a + (0.2097f * lap(u, p, w) - abb + F * (1.0f - a));
        vn[p] = b + (0.105f * lap(v, p, w) + abb - (F + K) * b);
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function gray_scott (u, v, un, vn, F, K) {
//   float a = u[y][x];
//   float b = v[y][x];
//   float abb = a * b * b;
//   un[y][x] = a + (0.2097f * (u[y][x-1] + u[y][x+1] + u[y-1][x] + u[y+1][x] - 4.0f * u[y][x]) - abb + F * (1.0f - a));
//   vn[y][x] = b + (0.105f * (v[y][x-1] + v[y][x+1] + v[y-1][x] + v[y+1][x] - 4.0f * v[y][x]) + abb - (F + K) * b);
// }
// parameter w, h;
// iterator y, x;
// float u[h][w], v[h][w], un[h][w], vn[h][w], F, K;
// gray_scott (u, v, un, vn, F, K);
// return un, vn;
