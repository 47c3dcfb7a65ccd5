__device__ __forceinline__ double flux(double l, double r, double c) { return c * (r - l); }
__device__ __forceinline__ int at(int x, int y, int w) { return y * w + x; }
__global__ void fluxes(double *out, const double *in, int w, int h, double c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || x >= w - 1 || y == 0 || y >= h - 1) return;
    double e = flux(in[at(x, y, w)], in[at(x + 1, y, w)], c);
    double q = flux(in[at(x - 1, y, w)], in[at(x, y, w)], c);
    double n = flux(in[at(x, y, w)], in[at(x, y + 1, w)], c);
    double s = flux(in[at(x, y - 1, w)], in[at(x, y, w)], c);
    out[at(x, y, w)] = in[at(x, y, w)] + (e - q) + (n - s);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function fluxes (out, in, c) {
//   double e = c * (in[y][x+1] - in[y][x]);
//   double q = c * (in[y][x] - in[y][x-1]);
//   double n = c * (in[y+1][x] - in[y][x]);
//   double s = c * (in[y][x] - in[y-1][x]);
//   out[y][x] = in[y][x] + (e - q) + (n - s);
// }
// parameter w, h;
// iterator y, x;
// double out[h][w], in[h][w], c;
// fluxes (out, in, c);
// return out;
