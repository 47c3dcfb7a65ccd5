__constant__ double coef[9];
template <typename T, int RADIUS>
__global__ void fd(const T* __restrict__ in, T* __restrict__ out, int nx, int ny, int nz) {
    const int ix = blockIdx.x * blockDim.x + threadIdx.x + RADIUS;
    const int iy = blockIdx.y * blockDim.y + threadIdx.y + RADIUS;
    if (ix >= nx - RADIUS || iy >= ny - RADIUS) return;
    const int plane = nx * ny;
    for (int iz = RADIUS; iz < nz - RADIUS; ++iz) {
        const int c = iz * plane + iy * nx + ix;
        T v = 3 * coef[0] * in[c];
#pragma unroll
        for (int r = 1; r <= RADIUS; ++r)
            v += coef[r] * (in[c - r] + in[c + r] + in[c - r * nx] + in[c + r * nx] + in[c - r * plane] + in[c + r * plane]);
        out[c] = v;
    }
}
template __global__ void fd<double, 4>(const double*, double*, int, int, int);
// expect:
// iz: 4 and 4 cells are not computed
// iy: 4 and 4 cells are not computed
// ix: 4 and 4 cells are not computed
// function fd (in, out, coef_of_file) {
//   double v = 3.0 * coef_of_file[0] * in[iz][iy][ix];
//   v += coef_of_file[1] * (in[iz][iy][ix-1] + in[iz][iy][ix+1] + in[iz][iy-1][ix] + in[iz][iy+1][ix] + in[iz-1][iy][ix] + in[iz+1][iy][ix]);
//   v += coef_of_file[2] * (in[iz][iy][ix-2] + in[iz][iy][ix+2] + in[iz][iy-2][ix] + in[iz][iy+2][ix] + in[iz-2][iy][ix] + in[iz+2][iy][ix]);
//   v += coef_of_file[3] * (in[iz][iy][ix-3] + in[iz][iy][ix+3] + in[iz][iy-3][ix] + in[iz][iy+3][ix] + in[iz-3][iy][ix] + in[iz+3][iy][ix]);
//   v += coef_of_file[4] * (in[iz][iy][ix-4] + in[iz][iy][ix+4] + in[iz][iy-4][ix] + in[iz][iy+4][ix] + in[iz-4][iy][ix] + in[iz+4][iy][ix]);
//   out[iz][iy][ix] = v;
// }
// // `coef_of_file` is `coef` of the file
// parameter nx, ny, nz;
// iterator iz, iy, ix;
// double in[nz][ny][nx], out[nz][ny][nx], coef_of_file[9];
// fd (in, out, coef_of_file);
// return out;
