#define NX 128
#define NY 96
__global__ void ca(double out[NY][NX], double in[NY][NX]) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= 1 && i <= NX - 2 && j >= 1 && j <= NY - 2)
        out[j][i] = (in[j][i - 1] + in[j][i + 1] + in[j - 1][i] + in[j + 1][i]) / 4.0;
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function ca (out, in) {
//   out[j][i] = (in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]) / 4.0;
// }
// iterator j, i;
// double out[96][128], in[96][128];
// ca (out, in);
// return out;
