#define TILE 8
#define R 3
__global__ void stencil_1d(const int *in, int *out, int n) {
  __shared__ int temp[TILE + 2 * R];
  int g = blockIdx.x * TILE + threadIdx.x;
  int l = threadIdx.x + R;
  temp[l] = g < n ? in[g] : 0;
  if (threadIdx.x < R) {
    temp[l - R] = g - R >= 0 ? in[g - R] : 0;
    temp[l + TILE] = g + TILE < n ? in[g + TILE] : 0;
  }
  __syncthreads();
  int r = 0;
  for (int o = -R; o <= R; o++) r += temp[l + o];
  if (g < n) out[g] = r;
}
// expect:
// g: 3 and 3 cells are not computed
// function stencil_1d (in, out) {
//   int r = 0 + in[g-3];
//   r += in[g-2];
//   r += in[g-1];
//   r += in[g];
//   r += in[g+1];
//   r += in[g+2];
//   r += in[g+3];
//   out[g] = r;
// }
// // other points of g = 0 : n:
// //   int r = 0 + (g < n+3 && g >= 3 && g < n+3 ? in[g-3] : 0);
// //   r += (g < n+2 && g >= 2 && g < n+2 ? in[g-2] : 0);
// //   r += (g < n+1 && g >= 1 && g < n+1 ? in[g-1] : 0);
// //   r += (g < n && g >= 0 && g < n ? in[g] : 0);
// //   r += (g < n-1 && g >= -1 && g < n-1 ? in[g+1] : 0);
// //   r += (g < n-2 && g >= -2 && g < n-2 ? in[g+2] : 0);
// //   r += (g < n-3 && g >= -3 && g < n-3 ? in[g+3] : 0);
// //   out[g] = r;
// parameter n;
// iterator g;
// int in[n], out[n];
// stencil_1d (in, out);
// return out;
