__global__ void gradient_magnitude(float const * const __restrict__ img, float * const __restrict__ mag, unsigned const width, unsigned const height)
{
    unsigned const col = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned const row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col == 0 || row == 0 || col + 1 >= width || row + 1 >= height)
        return;
    float const gx = 0.5f * (img[row * width + col + 1] - img[row * width + col - 1]);
    float const gy = 0.5f * (img[(row + 1) * width + col] - img[(row - 1) * width + col]);
    mag[row * width + col] = sqrtf(gx * gx + gy * gy);
}
// expect:
// row: 1 and 1 cells are not computed
// col: 1 and 1 cells are not computed
// function gradient_magnitude (img, mag) {
//   float gx = 0.5f * (img[row][col+1] - img[row][col-1]);
//   float gy = 0.5f * (img[row+1][col] - img[row-1][col]);
//   mag[row][col] = sqrt(gx * gx + gy * gy);
// }
// parameter width, height;
// iterator row, col;
// float img[height][width], mag[height][width];
// gradient_magnitude (img, mag);
// return mag;
