typedef double real;
constexpr int NX{40};
static const int halo{1};
__global__ void smooth(real *out_, const real *in_, int ny) {
    const int i{(int)(blockIdx.x * blockDim.x + threadIdx.x)};
    const int j{(int)(blockIdx.y * blockDim.y + threadIdx.y)};
    real (*out)[NX] = (real (*)[NX])out_;
    const real (*in)[NX] = (const real (*)[NX])in_;
    if (i < halo || j < halo || i >= NX - halo || j >= ny - halo) return;
    const real w{0.25};
    out[j][i] = w * (in[j][i - 1] + in[j][i + 1] + in[j - 1][i] + in[j + 1][i]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function smooth (out_, in_) {
//   out_[j][i] = 0.25 * (in_[j][i-1] + in_[j][i+1] + in_[j-1][i] + in_[j+1][i]);
// }
// parameter ny;
// iterator j, i;
// double out_[ny][40], in_[ny][40];
// smooth (out_, in_);
// return out_;
