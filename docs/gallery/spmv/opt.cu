// A sparse matrix in compressed rows times a vector, a row for a thread.

#pragma warpwright naive sizes(rows=1048576, columns=1048576) outputs(y)
extern "C" __global__ void spmv(const int *first, const int *column, const float *value, const float *x, float *y,
                                int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = first[row]; i < first[row + 1]; i++) sum += value[i] * x[column[i]];
    y[row] = sum;
}

extern "C" void run_spmv(const int *first, const int *column, const float *value, const float *x, float *y, int rows,
                         int columns, cudaStream_t stream) {
    spmv<<<(rows + 255) / 256, 256, 0, stream>>>(first, column, value, x, y, rows, columns);
}
