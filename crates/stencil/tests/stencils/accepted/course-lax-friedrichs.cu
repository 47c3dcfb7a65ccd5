#define G 9.81
__global__ void shallow(const double *h, const double *hu, const double *hv, double *hn, double *hun, double *hvn, int nx, int ny, double lam) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i == 0 || j == 0 || i >= nx - 1 || j >= ny - 1) return;
    int c = j * nx + i, l = c - 1, r = c + 1, d = c - nx, u = c + nx;
    double fl = hu[l] * hu[l] / h[l] + 0.5 * G * h[l] * h[l];
    double fr = hu[r] * hu[r] / h[r] + 0.5 * G * h[r] * h[r];
    double gd = hv[d] * hv[d] / h[d] + 0.5 * G * h[d] * h[d];
    double gu = hv[u] * hv[u] / h[u] + 0.5 * G * h[u] * h[u];
    hn[c] = 0.25 * (h[l] + h[r] + h[d] + h[u]) - 0.5 * lam * (hu[r] - hu[l] + hv[u] - hv[d]);
    hun[c] = 0.25 * (hu[l] + hu[r] + hu[d] + hu[u]) - 0.5 * lam * (fr - fl + hu[u] * hv[u] / h[u] - hu[d] * hv[d] / h[d]);
    hvn[c] = 0.25 * (hv[l] + hv[r] + hv[d] + hv[u]) - 0.5 * lam * (gu - gd + hu[r] * hv[r] / h[r] - hu[l] * hv[l] / h[l]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function shallow (h, hu, hv, hn, hun, hvn, lam) {
//   double fl = hu[j][i-1] * hu[j][i-1] / h[j][i-1] + 4.905 * h[j][i-1] * h[j][i-1];
//   double fr = hu[j][i+1] * hu[j][i+1] / h[j][i+1] + 4.905 * h[j][i+1] * h[j][i+1];
//   double gd = hv[j-1][i] * hv[j-1][i] / h[j-1][i] + 4.905 * h[j-1][i] * h[j-1][i];
//   double gu = hv[j+1][i] * hv[j+1][i] / h[j+1][i] + 4.905 * h[j+1][i] * h[j+1][i];
//   hn[j][i] = 0.25 * (h[j][i-1] + h[j][i+1] + h[j-1][i] + h[j+1][i]) - 0.5 * lam * (hu[j][i+1] - hu[j][i-1] + hv[j+1][i] - hv[j-1][i]);
//   hun[j][i] = 0.25 * (hu[j][i-1] + hu[j][i+1] + hu[j-1][i] + hu[j+1][i]) - 0.5 * lam * (fr - fl + hu[j+1][i] * hv[j+1][i] / h[j+1][i] - hu[j-1][i] * hv[j-1][i] / h[j-1][i]);
//   hvn[j][i] = 0.25 * (hv[j][i-1] + hv[j][i+1] + hv[j-1][i] + hv[j+1][i]) - 0.5 * lam * (gu - gd + hu[j][i+1] * hv[j][i+1] / h[j][i+1] - hu[j][i-1] * hv[j][i-1] / h[j][i-1]);
// }
// parameter nx, ny;
// iterator j, i;
// double h[ny][nx], hu[ny][nx], hv[ny][nx], hn[ny][nx], hun[ny][nx], hvn[ny][nx], lam;
// shallow (h, hu, hv, hn, hun, hvn, lam);
// return hn, hun, hvn;
