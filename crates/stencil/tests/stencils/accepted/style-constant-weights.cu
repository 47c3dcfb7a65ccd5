__constant__ float coeff[5];
__global__ void blur_row(const float *src, float *dst, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 2 || x >= width - 2 || y >= height) return;
    float sum = 0.0f;
    for (int k = -2; k <= 2; ++k)
        sum += coeff[k + 2] * src[y * width + x + k];
    dst[y * width + x] = sum;
}
// expect:
// y: 0 and 0 cells are not computed
// x: 2 and 2 cells are not computed
// function blur_row (src, dst, coeff_of_file) {
//   float sum = 0.0f;
//   sum += coeff_of_file[0] * src[y][x-2];
//   sum += coeff_of_file[1] * src[y][x-1];
//   sum += coeff_of_file[2] * src[y][x];
//   sum += coeff_of_file[3] * src[y][x+1];
//   sum += coeff_of_file[4] * src[y][x+2];
//   dst[y][x] = sum;
// }
// // `coeff_of_file` is `coeff` of the file
// parameter width, height;
// iterator y, x;
// float src[height][width], dst[height][width], coeff_of_file[5];
// blur_row (src, dst, coeff_of_file);
// return dst;
