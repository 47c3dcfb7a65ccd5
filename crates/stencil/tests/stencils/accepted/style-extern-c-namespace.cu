namespace sim {
extern "C" __global__ void upd(float *dst, const float *src, int nx, int ny) {
    int ix = blockIdx.x * blockDim.x + threadIdx.x;
    int iy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix <= 0 || iy <= 0 || ix >= nx - 1 || iy >= ny - 1) { return; }
    dst[iy * nx + ix] = fmaf(0.5f, src[iy * nx + ix], 0.125f * (src[iy * nx + ix - 1] + src[iy * nx + ix + 1] + src[(iy - 1) * nx + ix] + src[(iy + 1) * nx + ix]));
}
}
// expect:
// iy: 1 and 1 cells are not computed
// ix: 1 and 1 cells are not computed
// function upd (dst, src) {
//   dst[iy][ix] = fma(0.5f, src[iy][ix], 0.125f * (src[iy][ix-1] + src[iy][ix+1] + src[iy-1][ix] + src[iy+1][ix]));
// }
// parameter nx, ny;
// iterator iy, ix;
// float dst[ny][nx], src[ny][nx];
// upd (dst, src);
// return dst;
