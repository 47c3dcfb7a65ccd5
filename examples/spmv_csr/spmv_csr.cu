// Sparse matrix times vector, y = A x, the matrix in compressed rows, one thread per row.
//
// Every thread walks the values and column numbers of its own row (CSR: Saad 2003, 3.4). The rows
// of a warp lie far apart, so each of its loads touches 32 cache lines and uses one element of
// each; the rest of the line is used only if it is still in the cache at the thread's next turn.
// Two lines per resident thread, and those of x that pass through between, are more than a cache
// of 256 KB holds when all 2,048 threads of a multiprocessor are there.

// first: [rows + 1], where each row starts in column and value
// column, value: [entries]; x: [columns]; y: [rows]
extern "C" __global__ void spmv_csr(int rows, const int* __restrict__ first,
                                    const int* __restrict__ column,
                                    const double* __restrict__ value,
                                    const double* __restrict__ x, double* __restrict__ y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const int end = first[row + 1];
    double sum = 0.0;
    // Rolled: rows have different lengths, so the lanes of a warp leave the loop one by one.
#pragma unroll 1
    for (int at = first[row]; at < end; ++at) sum += value[at] * x[column[at]];
    y[row] = sum;
}
