__global__ void upwind(double *qn, const double *q, const double *u, const double *v, int nx, int ny, double dtdx, double dtdy) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= 1 && i <= nx - 2 && j >= 1 && j <= ny - 2) {
        int c = j * nx + i;
        double up = fmax(u[c], 0.0), um = fmin(u[c], 0.0);
        double vp = fmax(v[c], 0.0), vm = fmin(v[c], 0.0);
        qn[c] = q[c] - dtdx * (up * (q[c] - q[c - 1]) + um * (q[c + 1] - q[c]))
                     - dtdy * (vp * (q[c] - q[c - nx]) + vm * (q[c + nx] - q[c]));
    }
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function upwind (qn, q, u, v, dtdx, dtdy) {
//   double up = fmax(u[j][i], 0.0);
//   double um = fmin(u[j][i], 0.0);
//   double vp = fmax(v[j][i], 0.0);
//   double vm = fmin(v[j][i], 0.0);
//   qn[j][i] = q[j][i] - dtdx * (up * (q[j][i] - q[j][i-1]) + um * (q[j][i+1] - q[j][i])) - dtdy * (vp * (q[j][i] - q[j-1][i]) + vm * (q[j+1][i] - q[j][i]));
// }
// parameter nx, ny;
// iterator j, i;
// double qn[ny][nx], q[ny][nx], u[ny][nx], v[ny][nx], dtdx, dtdy;
// upwind (qn, q, u, v, dtdx, dtdy);
// return qn;
