#define MASK_WIDTH 7
__constant__ float M[MASK_WIDTH];
__global__ void convolution_1D(float *N, float *P, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float Pvalue = 0;
    int start = i - (MASK_WIDTH / 2);
    for (int j = 0; j < MASK_WIDTH; j++) {
        if (start + j >= 0 && start + j < width) {
            Pvalue += N[start + j] * M[j];
        }
    }
    if (i < width) P[i] = Pvalue;
}
// expect:
// i: 3 and 3 cells are not computed
// function convolution_1D (N, P, M_of_file) {
//   float Pvalue = 0.0f;
//   Pvalue += N[i-3] * M_of_file[0];
//   Pvalue += N[i-2] * M_of_file[1];
//   Pvalue += N[i-1] * M_of_file[2];
//   Pvalue += N[i] * M_of_file[3];
//   Pvalue += N[i+1] * M_of_file[4];
//   Pvalue += N[i+2] * M_of_file[5];
//   Pvalue += N[i+3] * M_of_file[6];
//   P[i] = Pvalue;
// }
// // `M_of_file` is `M` of the file
// // other points of i = 0 : width:
// //   float Pvalue = (i >= 3 && i < width+3 ? 0.0f + N[i-3] * M_of_file[0] : 0.0f);
// //   float Pvalue_2 = (i >= 2 && i < width+2 ? Pvalue + N[i-2] * M_of_file[1] : Pvalue);
// //   float Pvalue_3 = (i >= 1 && i < width+1 ? Pvalue_2 + N[i-1] * M_of_file[2] : Pvalue_2);
// //   float Pvalue_4 = (i >= 0 && i < width ? Pvalue_3 + N[i] * M_of_file[3] : Pvalue_3);
// //   float Pvalue_5 = (i >= -1 && i < width-1 ? Pvalue_4 + N[i+1] * M_of_file[4] : Pvalue_4);
// //   float Pvalue_6 = (i >= -2 && i < width-2 ? Pvalue_5 + N[i+2] * M_of_file[5] : Pvalue_5);
// //   float Pvalue_7 = (i >= -3 && i < width-3 ? Pvalue_6 + N[i+3] * M_of_file[6] : Pvalue_6);
// //   P[i] = Pvalue_7;
// parameter width;
// iterator i;
// float N[width], P[width], M_of_file[7];
// convolution_1D (N, P, M_of_file);
// return P;
