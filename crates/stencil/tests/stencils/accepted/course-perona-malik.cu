__global__ void diffusion(const float *I, float *J, int w, int h, float lambda, float kappa) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x <= 0 || y <= 0 || x >= w - 1 || y >= h - 1) return;
    float c = I[y * w + x];
    float dn = I[(y - 1) * w + x] - c, ds = I[(y + 1) * w + x] - c, de = I[y * w + x + 1] - c, dw = I[y * w + x - 1] - c;
    float cn = expf(-(dn / kappa) * (dn / kappa)), cs = expf(-(ds / kappa) * (ds / kappa));
    float ce = expf(-(de / kappa) * (de / kappa)), cw = expf(-(dw / kappa) * (dw / kappa));
    J[y * w + x] = c + lambda * (cn * dn + cs * ds + ce * de + cw * dw);
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function diffusion (I, J, lambda, kappa) {
//   float c = I[y][x];
//   float dn = I[y-1][x] - c;
//   float ds = I[y+1][x] - c;
//   float de = I[y][x+1] - c;
//   float dw = I[y][x-1] - c;
//   float cn = exp(-(dn / kappa) * (dn / kappa));
//   float cs = exp(-(ds / kappa) * (ds / kappa));
//   float ce = exp(-(de / kappa) * (de / kappa));
//   float cw = exp(-(dw / kappa) * (dw / kappa));
//   J[y][x] = c + lambda * (cn * dn + cs * ds + ce * de + cw * dw);
// }
// parameter w, h;
// iterator y, x;
// float I[h][w], J[h][w], lambda, kappa;
// diffusion (I, J, lambda, kappa);
// return J;
