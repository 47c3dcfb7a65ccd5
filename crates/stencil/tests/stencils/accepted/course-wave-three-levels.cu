__global__ void wave(float* __restrict__ next, const float* __restrict__ cur, const float* __restrict__ prev,
                     const float* __restrict__ vel, int nx, int ny, float dtdx) {
    int ix = blockIdx.x * blockDim.x + threadIdx.x;
    int iy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix < 2 || iy < 2 || ix >= nx - 2 || iy >= ny - 2) return;
    int id = iy * nx + ix;
    float d2x = (-cur[id - 2] + 16.f * cur[id - 1] - 30.f * cur[id] + 16.f * cur[id + 1] - cur[id + 2]) / 12.f;
    float d2y = (-cur[id - 2 * nx] + 16.f * cur[id - nx] - 30.f * cur[id] + 16.f * cur[id + nx] - cur[id + 2 * nx]) / 12.f;
    float c = vel[id] * dtdx;
    next[id] = 2.f * cur[id] - prev[id] + c * c * (d2x + d2y);
}
// expect:
// iy: 2 and 2 cells are not computed
// ix: 2 and 2 cells are not computed
// function wave (next, cur, prev, vel, dtdx) {
//   float d2x = (-cur[iy][ix-2] + 16.0f * cur[iy][ix-1] - 30.0f * cur[iy][ix] + 16.0f * cur[iy][ix+1] - cur[iy][ix+2]) / 12.0f;
//   float d2y = (-cur[iy-2][ix] + 16.0f * cur[iy-1][ix] - 30.0f * cur[iy][ix] + 16.0f * cur[iy+1][ix] - cur[iy+2][ix]) / 12.0f;
//   float c = vel[iy][ix] * dtdx;
//   next[iy][ix] = 2.0f * cur[iy][ix] - prev[iy][ix] + c * c * (d2x + d2y);
// }
// parameter nx, ny;
// iterator iy, ix;
// float next[ny][nx], cur[ny][nx], prev[ny][nx], vel[ny][nx], dtdx;
// wave (next, cur, prev, vel, dtdx);
// return next;
