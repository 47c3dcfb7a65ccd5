// The mean of every column.

#pragma warpwright naive sizes(m=16384, n=2048) outputs(y) reassociate
extern "C" __global__ void column_mean(const float *x, float *y, int m, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) return;
    float sum = 0;
    for (int i = 0; i < m; i++) sum += x[i * n + column];
    y[column] = sum / m;
}

extern "C++" {

// 32 warps of a block share the turns; their lanes are neighbouring points; `sum` is combined at the end; few points: their turns are divided among blocks, whose results a second kernel brings together
__global__ void __launch_bounds__(1024)
column_mean_team_parts_first(const float *x, float *y, int m, int n, int column_end, float *sum_memory, int parts)
{
    const int column_2 = threadIdx.x % 32;
    const int rank = threadIdx.x / 32;
    const int place = blockIdx.x * 32 + column_2;
    const bool inside = place < column_end;
    // Threads outside compute what the last one computes, and store nothing.
    const int column = min(place, column_end - 1);
    float sum = 0;
    const int part = blockIdx.y;
    const int each = ((m - (0) + parts - 1) / parts + 3) / 4 * 4;
    const int from = 0 + part * each;
    const int to = min(m, from + each);
    float sum_own = 0;
    #pragma unroll 8
    for (int i = from + rank; i < to; i += 32) {
        sum_own += x[n * i + column];
    }
    __shared__ float sum_parts[32][32];
    sum_parts[rank][column_2] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0][column_2];
    #pragma unroll
    for (int part_2 = 1; part_2 < 32; part_2++) sum_own = sum_own + sum_parts[part_2][column_2];
    if (rank == 0 && inside) sum_memory[part * column_end + column] = sum_own;
}

__global__ void __launch_bounds__(256)
column_mean_team_parts(const float *x, float *y, int m, int n, int column_end, float *sum_memory, int parts)
{
    const int column_2 = threadIdx.x % 32;
    const int rank = threadIdx.x / 32;
    const int place = blockIdx.x * 32 + column_2;
    const bool inside = place < column_end;
    // Threads outside compute what the last one computes, and store nothing.
    const int column = min(place, column_end - 1);
    float sum = 0;
    float sum_own = 0;
    for (int part = rank; part < parts; part += 8) sum_own = sum_own + sum_memory[part * column_end + column];
    __shared__ float sum_parts[8][32];
    sum_parts[rank][column_2] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0][column_2];
    #pragma unroll
    for (int part_2 = 1; part_2 < 8; part_2++) sum_own = sum_own + sum_parts[part_2][column_2];
    sum = sum + sum_own;
    if (rank == 0 && inside) {
        y[column] = sum / m;
    }
}

__global__ void __launch_bounds__(1024)
column_mean_team(const float *x, float *y, int m, int n, int column_end)
{
    const int column_2 = threadIdx.x % 32;
    const int rank = threadIdx.x / 32;
    const int place = blockIdx.x * 32 + column_2;
    const bool inside = place < column_end;
    // Threads outside compute what the last one computes, and store nothing.
    const int column = min(place, column_end - 1);
    float sum = 0;
    float sum_own = 0;
    #pragma unroll 8
    for (int i = rank; i < m; i += 32) {
        sum_own += x[n * i + column];
    }
    __shared__ float sum_parts[32][32];
    sum_parts[rank][column_2] = sum_own;
    __syncthreads();
    sum_own = sum_parts[0][column_2];
    #pragma unroll
    for (int part = 1; part < 32; part++) sum_own = sum_own + sum_parts[part][column_2];
    sum = sum + sum_own;
    if (rank == 0 && inside) {
        y[column] = sum / m;
    }
}

static inline cudaError_t column_mean_try(dim3 grid, dim3 block, const float *x, float *y, int m, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (m < 0 ||
        n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long column_end = (long long)grid.x * block.x;
    if (column_end > (long long)n) column_end = (long long)n;
    if (column_end <= 0 ||
        column_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)column_end - 1 > 2147483647.0 ||
        (double)n > 2147483647.0 ||
        (double)m * (double)n - (double)n > 2147483647.0 ||
        (double)m * (double)n + (double)column_end - (double)n - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long x_first = 0;
    long long x_last = (long long)m * (long long)n + (long long)column_end - (long long)n - 1;
    long long y_first = 0;
    long long y_last = (long long)column_end - 1;
    if (((const char*)(x + x_first) < (const char*)(y + y_last) + 4 && (const char*)(y + y_first) < (const char*)(x + x_last) + 4)) return cudaErrorNotSupported;
    {
        // Parts of the turns, so that there are 1056 blocks.
        long long parts = 1056 / ((column_end + 31) / 32);
        if (parts > ((long long)m) / 128) parts = ((long long)m) / 128;
        if (parts > 65535) parts = 65535;
        void *values = 0;
        if (parts > 1) {
            if (cudaMallocAsync(&values, parts * column_end * 8, stream_) == cudaSuccess) {
                column_mean_team_parts_first<<<dim3((unsigned)((column_end + 31) / 32), (unsigned)parts), 1024, 0, stream_>>>(
                    x, y, m, n, (int)column_end, (float *)values, (int)parts);
                column_mean_team_parts<<<(unsigned)((column_end + 31) / 32), 256, 0, stream_>>>(
                    x, y, m, n, (int)column_end, (float *)values, (int)parts);
                const cudaError_t status = cudaPeekAtLastError();
                cudaFreeAsync(values, stream_);
                return status;
            }
            cudaGetLastError();
        }
    }
    {
        column_mean_team<<<dim3((unsigned)((column_end + 31) / 32), (unsigned)(1), (unsigned)(1)), 1024, 0, stream_>>>(
            x, y, m, n, (int)column_end);
        return cudaPeekAtLastError();
    }
}

// In place of column_mean<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void column_mean_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *x, float *y, int m, int n)
{
    if (column_mean_try(grid, block, x, y, m, n, stream_) == cudaErrorNotSupported)
        column_mean<<<grid, block, shared, stream_>>>(x, y, m, n);
}

}  // extern "C++"


extern "C" void run_column_mean(const float *x, float *y, int m, int n, cudaStream_t stream) {
    column_mean_launch((n + 255) / 256, 256, 0, stream, x, y, m, n);
}
