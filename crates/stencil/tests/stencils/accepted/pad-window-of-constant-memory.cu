#define RADIUS 1
__constant__ float mask[9];
__global__ void conv2d(const float *in, float *out, int width, int height) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col < width && row < height) {
        float sum = 0.0f;
        for (int dy = -RADIUS; dy <= RADIUS; dy++) {
            for (int dx = -RADIUS; dx <= RADIUS; dx++) {
                int r = row + dy;
                int c = col + dx;
                if (r >= 0 && r < height && c >= 0 && c < width)
                    sum += in[r * width + c] * mask[(dy + RADIUS) * 3 + dx + RADIUS];
            }
        }
        out[row * width + col] = sum;
    }
}
// expect:
// row: 1 and 1 cells are not computed
// col: 1 and 1 cells are not computed
// function conv2d (in, out, mask_of_file) {
//   float sum = 0.0f;
//   sum += in[row-1][col-1] * mask_of_file[0];
//   sum += in[row-1][col] * mask_of_file[1];
//   sum += in[row-1][col+1] * mask_of_file[2];
//   sum += in[row][col-1] * mask_of_file[3];
//   sum += in[row][col] * mask_of_file[4];
//   sum += in[row][col+1] * mask_of_file[5];
//   sum += in[row+1][col-1] * mask_of_file[6];
//   sum += in[row+1][col] * mask_of_file[7];
//   sum += in[row+1][col+1] * mask_of_file[8];
//   out[row][col] = sum;
// }
// // `mask_of_file` is `mask` of the file
// // other points of row = 0 : height, col = 0 : width:
// //   float sum = (row >= 1 && row < height+1 && col >= 1 && col < width+1 ? 0.0f + in[row-1][col-1] * mask_of_file[0] : 0.0f);
// //   float sum_2 = (row >= 1 && row < height+1 && col >= 0 && col < width ? sum + in[row-1][col] * mask_of_file[1] : sum);
// //   float sum_3 = (row >= 1 && row < height+1 && col >= -1 && col < width-1 ? sum_2 + in[row-1][col+1] * mask_of_file[2] : sum_2);
// //   float sum_4 = (row >= 0 && row < height && col >= 1 && col < width+1 ? sum_3 + in[row][col-1] * mask_of_file[3] : sum_3);
// //   float sum_5 = (row >= 0 && row < height && col >= 0 && col < width ? sum_4 + in[row][col] * mask_of_file[4] : sum_4);
// //   float sum_6 = (row >= 0 && row < height && col >= -1 && col < width-1 ? sum_5 + in[row][col+1] * mask_of_file[5] : sum_5);
// //   float sum_7 = (row >= -1 && row < height-1 && col >= 1 && col < width+1 ? sum_6 + in[row+1][col-1] * mask_of_file[6] : sum_6);
// //   float sum_8 = (row >= -1 && row < height-1 && col >= 0 && col < width ? sum_7 + in[row+1][col] * mask_of_file[7] : sum_7);
// //   float sum_9 = (row >= -1 && row < height-1 && col >= -1 && col < width-1 ? sum_8 + in[row+1][col+1] * mask_of_file[8] : sum_8);
// //   out[row][col] = sum_9;
// parameter width, height;
// iterator row, col;
// float in[height][width], out[height][width], mask_of_file[9];
// conv2d (in, out, mask_of_file);
// return out;
