__global__ void box3(const float *src, float *dst, int width, int height)
{
    int x = blockIdx.x*blockDim.x + threadIdx.x;
    int y = blockIdx.y*blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float acc = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int sx = x + dx; int sy = y + dy;
            if (sx < 0) sx = 0;
            if (sx >= width) sx = width - 1;
            if (sy < 0) sy = 0;
            if (sy > height - 1) sy = height - 1;
            acc += src[sy * width + sx];
        }
    dst[y * width + x] = acc / 9.0f;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function box3 (src, dst) {
//   float acc = 0.0f;
//   acc += src[y-1][x-1];
//   acc += src[y-1][x];
//   acc += src[y-1][x+1];
//   acc += src[y][x-1];
//   acc += src[y][x];
//   acc += src[y][x+1];
//   acc += src[y+1][x-1];
//   acc += src[y+1][x];
//   acc += src[y+1][x+1];
//   dst[y][x] = acc / 9.0f;
// }
// // other points of y = 0 : height, x = 0 : width, clamped along y, clamped along x:
// //   float acc = 0.0f;
// //   acc += src[y-1][x-1];
// //   acc += src[y-1][x];
// //   acc += src[y-1][x+1];
// //   acc += src[y][x-1];
// //   acc += src[y][x];
// //   acc += src[y][x+1];
// //   acc += src[y+1][x-1];
// //   acc += src[y+1][x];
// //   acc += src[y+1][x+1];
// //   dst[y][x] = acc / 9.0f;
// parameter width, height;
// iterator y, x;
// float src[height][width], dst[height][width];
// box3 (src, dst);
// return dst;
