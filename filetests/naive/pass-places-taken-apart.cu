// A transpose in one dimension; the guard says where the last place ends, or a number that knows nothing of rows.
// test: pass across(32,8)

__global__ void turned(const float *in, float *out, int rows, int cols, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int r = i / cols, c = i % cols;
    out[c * rows + r] = in[i];
}

// expect: pass across(32,8)
// turned: the lanes of a warp are points along y, so that neighbours store neighbouring elements
// turned: `in` goes through shared memory in squares of 32, so that neighbours load neighbouring elements
// across(32, 8): the same in the emulator
