__global__ void advect(const double *u, double *un, int n, double c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int left = (i - 1 + n) % n;
        int right = (i + 1) % n;
        un[i] = u[i] - 0.5 * c * (u[right] - u[left]) + 0.5 * c * c * (u[right] - 2.0 * u[i] + u[left]);
    }
}
// expect:
// i: 1 and 1 cells are not computed
// function advect (u, un, c) {
//   un[i] = u[i] - 0.5 * c * (u[i+1] - u[i-1]) + 0.5 * c * c * (u[i+1] - 2.0 * u[i] + u[i-1]);
// }
// // other points of i = 0 : n, wrapped along i:
// //   un[i] = u[i] - 0.5 * c * (u[i+1] - u[i-1]) + 0.5 * c * c * (u[i+1] - 2.0 * u[i] + u[i-1]);
// parameter n;
// iterator i;
// double u[n], un[n], c;
// advect (u, un, c);
// return un;
