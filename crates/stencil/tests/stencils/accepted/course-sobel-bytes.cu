__global__ void sobel(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int gx = -in[(y - 1) * w + x - 1] + in[(y - 1) * w + x + 1] - 2 * in[y * w + x - 1] + 2 * in[y * w + x + 1]
           - in[(y + 1) * w + x - 1] + in[(y + 1) * w + x + 1];
    int gy = in[(y - 1) * w + x - 1] + 2 * in[(y - 1) * w + x] + in[(y - 1) * w + x + 1]
           - in[(y + 1) * w + x - 1] - 2 * in[(y + 1) * w + x] - in[(y + 1) * w + x + 1];
    int m = abs(gx) + abs(gy);
    out[y * w + x] = m > 255 ? 255 : m;
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function sobel (in, out) {
//   int gx = -to_int(in[y-1][x-1]) + to_int(in[y-1][x+1]) - 2 * to_int(in[y][x-1]) + 2 * to_int(in[y][x+1]) - to_int(in[y+1][x-1]) + to_int(in[y+1][x+1]);
//   int gy = to_int(in[y-1][x-1]) + 2 * to_int(in[y-1][x]) + to_int(in[y-1][x+1]) - to_int(in[y+1][x-1]) - 2 * to_int(in[y+1][x]) - to_int(in[y+1][x+1]);
//   int m = fabs(gx) + fabs(gy);
//   out[y][x] = to_uchar(if_less(255, m, 255, m));
// }
// parameter w, h;
// iterator y, x;
// uchar in[h][w], out[h][w];
// sobel (in, out);
// return out;
