using real = double;
constexpr int NX = 200, NY = 180, HALO = 2;
static constexpr real W0 = 0.5, W1 = 0.125;
__global__ void __launch_bounds__(256) cu(real *__restrict__ out, const real *__restrict__ in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x + HALO;
    const int j = blockIdx.y * blockDim.y + threadIdx.y + HALO;
    if (i >= NX - HALO || j >= NY - HALO) return;
    const int p = i + j * NX;
    out[p] = W0 * in[p] + W1 * (in[p - HALO] + in[p + HALO] + in[p - HALO * NX] + in[p + HALO * NX]);
}
// expect:
// j: 2 and 2 cells are not computed
// i: 2 and 2 cells are not computed
// function cu (out, in) {
//   out[j][i] = 0.5 * in[j][i] + 0.125 * (in[j][i-2] + in[j][i+2] + in[j-2][i] + in[j+2][i]);
// }
// iterator j, i;
// double out[180][200], in[180][200];
// cu (out, in);
// return out;
