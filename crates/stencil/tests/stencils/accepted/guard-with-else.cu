__global__ void lap(double *B, double *A, int N) {
    int x = blockIdx.x*blockDim.x+threadIdx.x;
    int y = blockIdx.y*blockDim.y+threadIdx.y;
    int index = y*N + x;
    if (x < 1 || y < 1 || x > N-2)
        return;
    else if (y <= N-2)
        B[index] = 0.25*(A[index-1]+A[index+1]+A[index-N]+A[index+N]);
    else
        return;
}

// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function lap (B, A) {
//   B[y][x] = 0.25 * (A[y][x-1] + A[y][x+1] + A[y-1][x] + A[y+1][x]);
// }
// parameter N;
// iterator y, x;
// double B[N][N], A[N][N];
// lap (B, A);
// return B;
