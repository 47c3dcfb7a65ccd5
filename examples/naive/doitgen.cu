// A product of a matrix with every row of an array of three dimensions, a place along each dimension of the grid.

#pragma warpwright naive sizes(r=256, q=256, p=256) outputs(out)
extern "C" __global__ void doitgen(const float *a, const float *c4, float *out, int r, int q, int p) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int plane = blockIdx.z;
    if (column >= p || row >= q || plane >= r) return;
    float sum = 0.0f;
    for (int s = 0; s < p; s++) sum += a[(plane * q + row) * p + s] * c4[s * p + column];
    out[(plane * q + row) * p + column] = sum;
}

extern "C" void run_doitgen(const float *a, const float *c4, float *out, int r, int q, int p, cudaStream_t stream) {
    dim3 block(32, 8), grid((p + 31) / 32, (q + 7) / 8, r);
    doitgen<<<grid, block, 0, stream>>>(a, c4, out, r, q, p);
}
