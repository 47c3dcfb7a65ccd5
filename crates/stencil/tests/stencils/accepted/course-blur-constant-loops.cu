#define R 2
__constant__ float kernel2d[(2 * R + 1) * (2 * R + 1)];
__global__ void blur(const float *src, float *dst, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= R && x < width - R && y >= R && y < height - R) {
        float acc = 0.0f;
        for (int dy = -R; dy <= R; dy++) {
            for (int dx = -R; dx <= R; dx++) {
                acc += kernel2d[(dy + R) * (2 * R + 1) + (dx + R)] * src[(y + dy) * width + (x + dx)];
            }
        }
        dst[y * width + x] = acc;
    }
}
// expect:
// y: 2 and 2 cells are not computed
// x: 2 and 2 cells are not computed
// function blur (src, dst, kernel2d_of_file) {
//   float acc = 0.0f;
//   acc += kernel2d_of_file[0] * src[y-2][x-2];
//   acc += kernel2d_of_file[1] * src[y-2][x-1];
//   acc += kernel2d_of_file[2] * src[y-2][x];
//   acc += kernel2d_of_file[3] * src[y-2][x+1];
//   acc += kernel2d_of_file[4] * src[y-2][x+2];
//   acc += kernel2d_of_file[5] * src[y-1][x-2];
//   acc += kernel2d_of_file[6] * src[y-1][x-1];
//   acc += kernel2d_of_file[7] * src[y-1][x];
//   acc += kernel2d_of_file[8] * src[y-1][x+1];
//   acc += kernel2d_of_file[9] * src[y-1][x+2];
//   acc += kernel2d_of_file[10] * src[y][x-2];
//   acc += kernel2d_of_file[11] * src[y][x-1];
//   acc += kernel2d_of_file[12] * src[y][x];
//   acc += kernel2d_of_file[13] * src[y][x+1];
//   acc += kernel2d_of_file[14] * src[y][x+2];
//   acc += kernel2d_of_file[15] * src[y+1][x-2];
//   acc += kernel2d_of_file[16] * src[y+1][x-1];
//   acc += kernel2d_of_file[17] * src[y+1][x];
//   acc += kernel2d_of_file[18] * src[y+1][x+1];
//   acc += kernel2d_of_file[19] * src[y+1][x+2];
//   acc += kernel2d_of_file[20] * src[y+2][x-2];
//   acc += kernel2d_of_file[21] * src[y+2][x-1];
//   acc += kernel2d_of_file[22] * src[y+2][x];
//   acc += kernel2d_of_file[23] * src[y+2][x+1];
//   acc += kernel2d_of_file[24] * src[y+2][x+2];
//   dst[y][x] = acc;
// }
// // `kernel2d_of_file` is `kernel2d` of the file
// parameter width, height;
// iterator y, x;
// float src[height][width], dst[height][width], kernel2d_of_file[25];
// blur (src, dst, kernel2d_of_file);
// return dst;
