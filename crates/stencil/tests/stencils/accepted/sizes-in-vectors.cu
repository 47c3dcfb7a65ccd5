__global__ void jac(float *out, const float *in, int3 dims, dim3 unused) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= dims.x - 1 || y >= dims.y - 1 || z >= dims.z - 1) return;
    int id = x + dims.x * (y + dims.y * z);
    out[id] = in[id - 1] + in[id + 1] + in[id - dims.x] + in[id + dims.x] + in[id + dims.x * dims.y] + in[id - dims.x * dims.y];
}
// expect:
// z: 1 and 1 cells are not computed
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function jac (out, in) {
//   out[z][y][x] = in[z][y][x-1] + in[z][y][x+1] + in[z][y-1][x] + in[z][y+1][x] + in[z+1][y][x] + in[z-1][y][x];
// }
// parameter dims_x, dims_y, dims_z;
// iterator z, y, x;
// float out[dims_z][dims_y][dims_x], in[dims_z][dims_y][dims_x];
// jac (out, in);
// return out;
