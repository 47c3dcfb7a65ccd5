#define N 100
typedef double real;
__global__ void f(real (*flux)[N][N], const real u[3][N][N], const real *w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < N && y < N) {
        flux[0][y][x] = u[2][y][x] * w[x] - u[1][y][x - 1] * w[x - 1];
        flux[1][y][x] = u[0][y][x] / w[0];
    }
}

// expect:
// y: 0 and 0 cells are not computed
// x: 1 and 0 cells are not computed
// function f (flux, u, w) {
//   flux[0][y][x] = u[2][y][x] * w[x] - u[1][y][x-1] * w[x-1];
//   flux[1][y][x] = u[0][y][x] / w[0];
// }
// iterator y, x;
// double flux[2][100][100], u[3][100][100], w[100];
// f (flux, u, w);
// return flux;
