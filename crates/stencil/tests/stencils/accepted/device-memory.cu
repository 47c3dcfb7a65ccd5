__device__ double scale;
static __device__ double w[3];
__global__ void three(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = scale * (w[0] * in[i - 1] + w[1] * in[i] + w[2] * in[i + 1]);
}
// expect:
// i: 1 and 1 cells are not computed
// function three (in, out, scale_of_file, w_of_file) {
//   out[i] = scale_of_file[0] * (w_of_file[0] * in[i-1] + w_of_file[1] * in[i] + w_of_file[2] * in[i+1]);
// }
// // `scale_of_file` is `scale` of the file
// // `w_of_file` is `w` of the file
// parameter n;
// iterator i;
// double in[n], out[n], scale_of_file[1], w_of_file[3];
// three (in, out, scale_of_file, w_of_file);
// return out;
