__global__ void wave(float *p, const float *v, const float *coef, int nx, int ny, int nz) {
    int ix = blockIdx.x * blockDim.x + threadIdx.x + 2;
    int iy = blockIdx.y * blockDim.y + threadIdx.y + 2;
    if (ix >= nx - 2 || iy >= ny - 2) return;
    int stride = nx * ny;
    for (int iz = 2; iz < nz - 2; iz++) {
        int idx = iz * stride + iy * nx + ix;
        float sum = coef[0] * v[idx];
        for (int r = 1; r <= 2; r++)
            sum += coef[r] * (v[idx - r] + v[idx + r] + v[idx - r * nx] + v[idx + r * nx] + v[idx - r * stride] + v[idx + r * stride]);
        p[idx] = 2.0f * v[idx] - p[idx] + sum;
    }
}

// expect:
// iz: 2 and 2 cells are not computed
// iy: 2 and 2 cells are not computed
// ix: 2 and 2 cells are not computed
// function wave (p, v, coef) {
//   float sum = coef[0] * v[iz][iy][ix];
//   sum += coef[1] * (v[iz][iy][ix-1] + v[iz][iy][ix+1] + v[iz][iy-1][ix] + v[iz][iy+1][ix] + v[iz-1][iy][ix] + v[iz+1][iy][ix]);
//   sum += coef[2] * (v[iz][iy][ix-2] + v[iz][iy][ix+2] + v[iz][iy-2][ix] + v[iz][iy+2][ix] + v[iz-2][iy][ix] + v[iz+2][iy][ix]);
//   p[iz][iy][ix] = 2.0f * v[iz][iy][ix] - p[iz][iy][ix] + sum;
// }
// parameter nx, ny, nz;
// iterator iz, iy, ix;
// float p[nz][ny][nx], v[nz][ny][nx], coef[3];
// wave (p, v, coef);
// return p;
