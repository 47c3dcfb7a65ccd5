#define R 2
__constant__ float mask[(2*R+1)*(2*R+1)];
__global__ void conv5(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float sum = 0.0f;
        for (int dy = -R; dy <= R; dy++) {
            for (int dx = -R; dx <= R; dx++) {
                int xx = min(max(x + dx, 0), width - 1);
                int yy = min(max(y + dy, 0), height - 1);
                sum += in[yy * width + xx] * mask[(dy + R) * (2*R+1) + dx + R];
            }
        }
        out[y * width + x] = sum;
    }
}
// expect:
// y: 2 and 2 cells are not computed
// x: 2 and 2 cells are not computed
// function conv5 (in, out, mask_of_file) {
//   float sum = 0.0f;
//   sum += in[y-2][x-2] * mask_of_file[0];
//   sum += in[y-2][x-1] * mask_of_file[1];
//   sum += in[y-2][x] * mask_of_file[2];
//   sum += in[y-2][x+1] * mask_of_file[3];
//   sum += in[y-2][x+2] * mask_of_file[4];
//   sum += in[y-1][x-2] * mask_of_file[5];
//   sum += in[y-1][x-1] * mask_of_file[6];
//   sum += in[y-1][x] * mask_of_file[7];
//   sum += in[y-1][x+1] * mask_of_file[8];
//   sum += in[y-1][x+2] * mask_of_file[9];
//   sum += in[y][x-2] * mask_of_file[10];
//   sum += in[y][x-1] * mask_of_file[11];
//   sum += in[y][x] * mask_of_file[12];
//   sum += in[y][x+1] * mask_of_file[13];
//   sum += in[y][x+2] * mask_of_file[14];
//   sum += in[y+1][x-2] * mask_of_file[15];
//   sum += in[y+1][x-1] * mask_of_file[16];
//   sum += in[y+1][x] * mask_of_file[17];
//   sum += in[y+1][x+1] * mask_of_file[18];
//   sum += in[y+1][x+2] * mask_of_file[19];
//   sum += in[y+2][x-2] * mask_of_file[20];
//   sum += in[y+2][x-1] * mask_of_file[21];
//   sum += in[y+2][x] * mask_of_file[22];
//   sum += in[y+2][x+1] * mask_of_file[23];
//   sum += in[y+2][x+2] * mask_of_file[24];
//   out[y][x] = sum;
// }
// // `mask_of_file` is `mask` of the file
// // other points of y = 0 : height, x = 0 : width, clamped along y, clamped along x:
// //   float sum = 0.0f;
// //   sum += in[y-2][x-2] * mask_of_file[0];
// //   sum += in[y-2][x-1] * mask_of_file[1];
// //   sum += in[y-2][x] * mask_of_file[2];
// //   sum += in[y-2][x+1] * mask_of_file[3];
// //   sum += in[y-2][x+2] * mask_of_file[4];
// //   sum += in[y-1][x-2] * mask_of_file[5];
// //   sum += in[y-1][x-1] * mask_of_file[6];
// //   sum += in[y-1][x] * mask_of_file[7];
// //   sum += in[y-1][x+1] * mask_of_file[8];
// //   sum += in[y-1][x+2] * mask_of_file[9];
// //   sum += in[y][x-2] * mask_of_file[10];
// //   sum += in[y][x-1] * mask_of_file[11];
// //   sum += in[y][x] * mask_of_file[12];
// //   sum += in[y][x+1] * mask_of_file[13];
// //   sum += in[y][x+2] * mask_of_file[14];
// //   sum += in[y+1][x-2] * mask_of_file[15];
// //   sum += in[y+1][x-1] * mask_of_file[16];
// //   sum += in[y+1][x] * mask_of_file[17];
// //   sum += in[y+1][x+1] * mask_of_file[18];
// //   sum += in[y+1][x+2] * mask_of_file[19];
// //   sum += in[y+2][x-2] * mask_of_file[20];
// //   sum += in[y+2][x-1] * mask_of_file[21];
// //   sum += in[y+2][x] * mask_of_file[22];
// //   sum += in[y+2][x+1] * mask_of_file[23];
// //   sum += in[y+2][x+2] * mask_of_file[24];
// //   out[y][x] = sum;
// parameter width, height;
// iterator y, x;
// float in[height][width], out[height][width], mask_of_file[25];
// conv5 (in, out, mask_of_file);
// return out;
