#define TX 16
#define TY 16
__global__ void blurTile(const float *in, float *out, int w, int h)
{
    __shared__ float tile[TY + 2][TX + 2];
    int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY;
    for (int ty = threadIdx.y; ty < TY + 2; ty += TY)
        for (int tx = threadIdx.x; tx < TX + 2; tx += TX) {
            int gx = min(max(x0 + tx - 1, 0), w - 1);
            int gy = min(max(y0 + ty - 1, 0), h - 1);
            tile[ty][tx] = in[gy * w + gx];
        }
    __syncthreads();
    int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.f;
    for (int dy = 0; dy < 3; ++dy) for (int dx = 0; dx < 3; ++dx) s += tile[threadIdx.y + dy][threadIdx.x + dx];
    out[y * w + x] = s * (1.0f / 9.0f);
}
void launch(const float *a, float *b, int w, int h) { blurTile<<<dim3((w+15)/16,(h+15)/16), dim3(TX,TY)>>>(a, b, w, h); }
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function blurTile (in, out) {
//   float s = 0.0f;
//   s += in[y-1][x-1];
//   s += in[y-1][x];
//   s += in[y-1][x+1];
//   s += in[y][x-1];
//   s += in[y][x];
//   s += in[y][x+1];
//   s += in[y+1][x-1];
//   s += in[y+1][x];
//   s += in[y+1][x+1];
//   out[y][x] = s * 0.11111111f;
// }
// // other points of y = 0 : h, x = 0 : w, clamped along y, clamped along x:
// //   float s = 0.0f;
// //   s += in[y-1][x-1];
// //   s += in[y-1][x];
// //   s += in[y-1][x+1];
// //   s += in[y][x-1];
// //   s += in[y][x];
// //   s += in[y][x+1];
// //   s += in[y+1][x-1];
// //   s += in[y+1][x];
// //   s += in[y+1][x+1];
// //   out[y][x] = s * 0.11111111f;
// parameter w, h;
// iterator y, x;
// float in[h][w], out[h][w];
// blurTile (in, out);
// return out;
