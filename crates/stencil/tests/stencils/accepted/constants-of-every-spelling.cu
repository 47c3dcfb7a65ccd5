constexpr int NX = 12, HALO = 1;
static const double c0 = 1.0 / 3, c1 = -c0;
const int PITCH = NX + 2 * HALO;
enum { LEFT = 1, RIGHT, WIDE = RIGHT * 2 };
__device__ constexpr double w[] = {0.25, 0.5};
#define SCALE (2 * WIDE)
__global__ void f(double *out, const double *in, int m) {
    constexpr int low = LEFT;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= low && i < PITCH - RIGHT && j < m)
        out[j * PITCH + i] = c0 * in[j * PITCH + i - LEFT] + c1 * w[1] * in[j * PITCH + i + RIGHT] + SCALE;
}
// expect:
// j: 0 and 0 cells are not computed
// i: 1 and 2 cells are not computed
// function f (out, in) {
//   out[j][i] = 0.3333333333333333 * in[j][i-1] + -0.16666666666666666 * in[j][i+2] + 8.0;
// }
// parameter m;
// iterator j, i;
// double out[m][14], in[m][14];
// f (out, in);
// return out;
