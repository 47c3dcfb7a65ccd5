#define RADIUS 4
#define BX 32
#define BY 8
__constant__ float stencil[RADIUS + 1];
__global__ void fdtd(float *output, const float *input, const int dimx, const int dimy, const int dimz) {
    const int gx = blockIdx.x * blockDim.x + threadIdx.x;
    const int gy = blockIdx.y * blockDim.y + threadIdx.y;
    const int stride_y = dimx + 2 * RADIUS;
    const int stride_z = stride_y * (dimy + 2 * RADIUS);
    int in = (gy + RADIUS) * stride_y + gx + RADIUS;
    int out = 0;
    if (gx >= dimx || gy >= dimy) return;
    float infront[RADIUS], behind[RADIUS], current;
    for (int i = RADIUS - 2; i >= 0; i--) { behind[i] = input[in]; in += stride_z; }
    current = input[in];
    out = in;
    in += stride_z;
    for (int i = 0; i < RADIUS; i++) { infront[i] = input[in]; in += stride_z; }
    for (int iz = 0; iz < dimz; iz++) {
        for (int i = RADIUS - 1; i > 0; i--) behind[i] = behind[i - 1];
        behind[0] = current;
        current = infront[0];
        for (int i = 0; i < RADIUS - 1; i++) infront[i] = infront[i + 1];
        infront[RADIUS - 1] = input[in];
        in += stride_z;
        out += stride_z;
        float value = stencil[0] * current;
        for (int i = 1; i <= RADIUS; i++)
            value += stencil[i] * (infront[i - 1] + behind[i - 1] + input[out - i * stride_y] + input[out + i * stride_y] + input[out - i] + input[out + i]);
        output[out] = value;
    }
}
// expect:
// iz: 4 and 4 cells are not computed
// gy: 4 and 4 cells are not computed
// gx: 4 and 4 cells are not computed
// function fdtd (output, input, stencil_of_file) {
//   float behind = input[iz-2][gy][gx];
//   float behind_2 = input[iz-3][gy][gx];
//   float behind_3 = input[iz-4][gy][gx];
//   float current = input[iz-1][gy][gx];
//   float infront = input[iz][gy][gx];
//   float infront_2 = input[iz+1][gy][gx];
//   float infront_3 = input[iz+2][gy][gx];
//   float infront_4 = input[iz+3][gy][gx];
//   float behind_4 = behind_3;
//   float behind_5 = behind_2;
//   float behind_6 = behind;
//   float behind_7 = current;
//   float current_2 = infront;
//   float infront_5 = infront_2;
//   float infront_6 = infront_3;
//   float infront_7 = infront_4;
//   float infront_8 = input[iz+4][gy][gx];
//   float value = stencil_of_file[0] * current_2;
//   value += stencil_of_file[1] * (infront_5 + behind_7 + input[iz][gy-1][gx] + input[iz][gy+1][gx] + input[iz][gy][gx-1] + input[iz][gy][gx+1]);
//   value += stencil_of_file[2] * (infront_6 + behind_6 + input[iz][gy-2][gx] + input[iz][gy+2][gx] + input[iz][gy][gx-2] + input[iz][gy][gx+2]);
//   value += stencil_of_file[3] * (infront_7 + behind_5 + input[iz][gy-3][gx] + input[iz][gy+3][gx] + input[iz][gy][gx-3] + input[iz][gy][gx+3]);
//   value += stencil_of_file[4] * (infront_8 + behind_4 + input[iz][gy-4][gx] + input[iz][gy+4][gx] + input[iz][gy][gx-4] + input[iz][gy][gx+4]);
//   output[iz][gy][gx] = value;
// }
// // `stencil_of_file` is `stencil` of the file
// parameter dimx, dimy, dimz;
// iterator iz, gy, gx;
// float output[dimz+8][dimy+8][dimx+8], input[dimz+8][dimy+8][dimx+8], stencil_of_file[5];
// fdtd (output, input, stencil_of_file);
// return output;
