// A neighbour four cells away, in rows of nine: no other split makes sense from the point itself.
__global__ void f(double *out, const double *in) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 4;
    int y = blockIdx.y * blockDim.y + threadIdx.y + 4;
    if (x < 5 && y < 5) out[y * 9 + x] = in[(y - 4) * 9 + x + 4] + in[(y + 4) * 9 + x - 4];
}

// expect:
// y: 4 and 4 cells are not computed
// x: 4 and 4 cells are not computed
// function f (out, in) {
//   out[y][x] = in[y-4][x+4] + in[y+4][x-4];
// }
// iterator y, x;
// double out[9][9], in[9][9];
// f (out, in);
// return out;
