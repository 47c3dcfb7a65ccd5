// 81-point stencil in the plane, order 4 (Rawat et al., PPoPP 2018, Table 1): the product of two
// central second derivatives of eighth order. Their weights are -205/72, 8/5, -1/5, 8/315 and
// -1/560 at distances 0 to 4, rounded to -2.84722, 1.6, -0.2, 0.0254 and -0.001785.
//
// Macros hide the layout: IN(dy, dx) is the neighbour of the point.

#define WIDTH 8200
#define HEIGHT 8200
#define RADIUS 4
#define idx (blockIdx.x * blockDim.x + threadIdx.x)
#define idy (blockIdx.y * blockDim.y + threadIdx.y)
#define IN(dy, dx) in[(y + (dy)) * WIDTH + (x + (dx))]
#define OUT(dy, dx) out[(y + (dy)) * WIDTH + (x + (dx))]

#pragma warpwright stencil unroll(y=4)
__global__ void j2d81pt(double *out, const double *in) {
    int x = idx + RADIUS;
    int y = idy + RADIUS;
    if (x < WIDTH - RADIUS && y < HEIGHT - RADIUS) {
        OUT(0, 0) =
          8.10666 * IN(0, 0) +
          -4.55555 * (IN(-1, 0) + IN(0, -1) + IN(0, 1) + IN(1, 0)) +
          0.569444 * (IN(-2, 0) + IN(0, -2) + IN(0, 2) + IN(2, 0)) +
          -0.0723194 * (IN(-3, 0) + IN(0, -3) + IN(0, 3) + IN(3, 0)) +
          0.00508229 * (IN(-4, 0) + IN(0, -4) + IN(0, 4) + IN(4, 0)) +
          2.56 * (IN(-1, -1) + IN(-1, 1) + IN(1, -1) + IN(1, 1)) +
          -0.32 * (IN(-2, -1) + IN(-2, 1) + IN(-1, -2) + IN(-1, 2) + IN(1, -2) + IN(1, 2) +
            IN(2, -1) + IN(2, 1)) +
          0.04064 * (IN(-3, -1) + IN(-3, 1) + IN(-1, -3) + IN(-1, 3) + IN(1, -3) + IN(1, 3) +
            IN(3, -1) + IN(3, 1)) +
          -0.002856 * (IN(-4, -1) + IN(-4, 1) + IN(-1, -4) + IN(-1, 4) + IN(1, -4) + IN(1, 4) +
            IN(4, -1) + IN(4, 1)) +
          0.04 * (IN(-2, -2) + IN(-2, 2) + IN(2, -2) + IN(2, 2)) +
          -0.00508 * (IN(-3, -2) + IN(-3, 2) + IN(-2, -3) + IN(-2, 3) + IN(2, -3) + IN(2, 3) +
            IN(3, -2) + IN(3, 2)) +
          0.000357 * (IN(-4, -2) + IN(-4, 2) + IN(-2, -4) + IN(-2, 4) + IN(2, -4) + IN(2, 4) +
            IN(4, -2) + IN(4, 2)) +
          0.00064516 * (IN(-3, -3) + IN(-3, 3) + IN(3, -3) + IN(3, 3)) +
          -4.5339e-05 * (IN(-4, -3) + IN(-4, 3) + IN(-3, -4) + IN(-3, 4) + IN(3, -4) + IN(3, 4) +
            IN(4, -3) + IN(4, 3)) +
          3.18622e-06 * (IN(-4, -4) + IN(-4, 4) + IN(4, -4) + IN(4, 4));
    }
}
