// A constant is what its type makes of the number.
const short LIMIT = 40000;
__global__ void narrow(int *out, const short *in, int nx) {
    const short low = 32768;
    const short w[2] = {65535, 3};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= nx - 1) return;
    out[i] = (in[i] > LIMIT ? in[i - 1] : in[i + 1]) * w[0] + (in[i] == low) * w[1];
}
// expect:
// i: 1 and 1 cells are not computed
// function narrow (out, in) {
//   out[i] = if_less(-25536, to_int(in[i]), to_int(in[i-1]), to_int(in[i+1])) * -1 + if_equal(to_int(in[i]), -32768, 1, 0) * 3;
// }
// parameter nx;
// iterator i;
// short in[nx];
// int out[nx];
// narrow (out, in);
// return out;
