__global__ void advect(const double *u, double *un, int n, double c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int left = (i - 1 + n) % n;
        int right = (i + 1) % n;
        un[i] = u[i] - 0.5 * c * (u[right] - u[left]) + 0.5 * c * c * (u[right] - 2.0 * u[i] + u[left]);
    }
}
// expect:
// stencil::remainder
//
//   × a remainder of the place of the point is not understood
//    ╭─[course-periodic-1d-modulo.cu:4:20]
//  3 │     if (i < n) {
//  4 │         int left = (i - 1 + n) % n;
//    ·                    ───────┬───────
//    ·                           ╰── an index that wraps at the border, a colour, a row of one long array?
//  5 │         int right = (i + 1) % n;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
