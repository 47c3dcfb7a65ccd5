__global__ void laplace(float *phi_new, float *phi, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < nx && j < ny) {
        int c = i + j * nx;
        if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1) {
            int n = c - nx, s = c + nx, e = c + 1, w = c - 1;
            phi_new[c] = 0.25f * (phi[n] + phi[s] + phi[e] + phi[w]);
        } else {
            phi_new[c] = phi[c];
        }
    }
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function laplace (phi_new, phi) {
//   phi_new[j][i] = 0.25f * (phi[j-1][i] + phi[j+1][i] + phi[j][i+1] + phi[j][i-1]);
// }
// // other points of j = 0 : ny, i = 0 : nx:
// //   phi_new[j][i] = phi[j][i];
// parameter nx, ny;
// iterator j, i;
// float phi_new[ny][nx], phi[ny][nx];
// laplace (phi_new, phi);
// return phi_new;
