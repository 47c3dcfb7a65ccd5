// A loop over the grid whose counter is taken apart.
// test: pass fours(64,2)

__global__ void looked_up(float *out, const float *__restrict__ table, const int *ids, int count, int dim)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count * dim; i += blockDim.x * gridDim.x) {
        int row = i / dim;
        int col = i % dim;
        out[i] = table[(ids[row] & 7) * dim + col];
    }
}

// expect: pass fours(64,2)
// looked_up: a thread takes four neighbouring points, and loads or stores their elements of `out` together
// fours(64, 2): the same in the emulator
