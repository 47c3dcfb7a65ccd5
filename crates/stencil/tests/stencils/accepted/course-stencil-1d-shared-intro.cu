#define RADIUS 3
#define BLOCK_SIZE 256
__global__ void stencil_1d(const float *in, float *out, int n) {
    __shared__ float temp[BLOCK_SIZE + 2 * RADIUS];
    int gindex = threadIdx.x + blockIdx.x * blockDim.x + RADIUS;
    int lindex = threadIdx.x + RADIUS;
    if (gindex < n + 2 * RADIUS) temp[lindex] = in[gindex];
    if (threadIdx.x < RADIUS) {
        temp[lindex - RADIUS] = in[gindex - RADIUS];
        if (gindex + BLOCK_SIZE < n + 2 * RADIUS) temp[lindex + BLOCK_SIZE] = in[gindex + BLOCK_SIZE];
    }
    __syncthreads();
    if (gindex < n + RADIUS) {
        float result = 0.0f;
        for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[lindex + offset];
        out[gindex] = result;
    }
}
// expect:
// gindex: 3 and 3 cells are not computed
// function stencil_1d (in, out) {
//   float result = 0.0f;
//   result += in[gindex-3];
//   result += in[gindex-2];
//   result += in[gindex-1];
//   result += in[gindex];
//   result += in[gindex+1];
//   result += in[gindex+2];
//   result += in[gindex+3];
//   out[gindex] = result;
// }
// parameter n;
// iterator gindex;
// float in[n+6], out[n+6];
// stencil_1d (in, out);
// return out;
