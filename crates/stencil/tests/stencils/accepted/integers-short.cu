__global__ void lap(short *out, const short *in, int nx, int ny) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= 1 && i < nx - 1 && j >= 1 && j < ny - 1)
    out[j * nx + i] = (short)(in[j * nx + i - 1] + in[j * nx + i + 1] + in[(j - 1) * nx + i] + in[(j + 1) * nx + i] - 4 * in[j * nx + i]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function lap (out, in) {
//   out[j][i] = to_short(to_int(in[j][i-1]) + to_int(in[j][i+1]) + to_int(in[j-1][i]) + to_int(in[j+1][i]) - 4 * to_int(in[j][i]));
// }
// parameter nx, ny;
// iterator j, i;
// short out[ny][nx], in[ny][nx];
// lap (out, in);
// return out;
