// What is loaded at an unresolved index may overlap what is stored: every point has loaded it before it stores.
// test: pass fours(32,2)
// test: pass tiles(32x8,points=1x2)

__global__ void embedding(const float *table, const long long *tokens, float *out, int n, int dim)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int t = blockIdx.y * blockDim.y + threadIdx.y;
    if (d < dim && t < n)
        out[(size_t)t * dim + d] = table[tokens[t] * dim + d];
}

// expect: pass fours(32,2)
// embedding: a thread takes four neighbouring points, and loads or stores their elements of `out` together
// fours(32, 2): the same in the emulator

// expect: pass tiles(32x8,points=1x2)
// embedding: block merge: a block of 256 threads computes 32 x 16 points
// embedding: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
