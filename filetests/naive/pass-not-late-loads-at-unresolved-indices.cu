// What a point stores may be what it loads afterwards.
// test: pass fours(32,1)

__global__ void twice(const float *table, const int *places, float *out, float *again, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    out[x] = 2.0f;
    again[x] = table[places[x]];
}

// expect: pass fours(32,1)
// twice: unchanged: which elements of `table` are touched is not known, and it may overlap an array that is stored to
