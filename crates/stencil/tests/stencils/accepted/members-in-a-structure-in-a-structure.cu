// A size, a number that nobody uses, a pointer that nobody uses.
struct Domain { int2 size; float *work; };
struct Setting { Domain domain; double weight; int steps; };
__global__ void f(double *out, const double *in, const Setting s) {
    const int nx = s.domain.size.x;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= nx - 1 || y >= s.domain.size.y) return;
    out[y * nx + x] = s.weight * (in[y * nx + x - 1] + in[y * nx + x + 1]);
}
// expect:
// y: 0 and 0 cells are not computed
// x: 1 and 1 cells are not computed
// function f (out, in, s_weight) {
//   out[y][x] = s_weight * (in[y][x-1] + in[y][x+1]);
// }
// parameter s_domain_size_x, s_domain_size_y;
// iterator y, x;
// double out[s_domain_size_y][s_domain_size_x], in[s_domain_size_y][s_domain_size_x], s_weight;
// f (out, in, s_weight);
// return out;
