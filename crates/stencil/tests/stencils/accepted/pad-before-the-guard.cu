#define M 5
__constant__ float w[M];
__global__ void conv1d(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float acc = 0;
    int start = i - (M / 2);
    for (int j = 0; j < M; j++) {
        if (start + j >= 0 && start + j < n) {
            acc += in[start + j] * w[j];
        }
    }
    if (i < n) out[i] = acc;
}
// expect:
// i: 2 and 2 cells are not computed
// function conv1d (in, out, w_of_file) {
//   float acc = 0.0f;
//   acc += in[i-2] * w_of_file[0];
//   acc += in[i-1] * w_of_file[1];
//   acc += in[i] * w_of_file[2];
//   acc += in[i+1] * w_of_file[3];
//   acc += in[i+2] * w_of_file[4];
//   out[i] = acc;
// }
// // `w_of_file` is `w` of the file
// // other points of i = 0 : n:
// //   float acc = (i >= 2 && i < n+2 ? 0.0f + in[i-2] * w_of_file[0] : 0.0f);
// //   float acc_2 = (i >= 1 && i < n+1 ? acc + in[i-1] * w_of_file[1] : acc);
// //   float acc_3 = (i >= 0 && i < n ? acc_2 + in[i] * w_of_file[2] : acc_2);
// //   float acc_4 = (i >= -1 && i < n-1 ? acc_3 + in[i+1] * w_of_file[3] : acc_3);
// //   float acc_5 = (i >= -2 && i < n-2 ? acc_4 + in[i+2] * w_of_file[4] : acc_4);
// //   out[i] = acc_5;
// parameter n;
// iterator i;
// float in[n], out[n], w_of_file[5];
// conv1d (in, out, w_of_file);
// return out;
