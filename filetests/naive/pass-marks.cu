// Points may all store the same number where nobody reads it: whoever comes last, it is the same.
// test: pass tiles(256x1)

__global__ void visit(const int *updating, int *visited, int *over, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n && updating[x] > 0) {
        visited[x] = 1;
        *over = 1;
    }
}

// expect: pass tiles(256x1)
// visit: block merge: a block of 256 threads computes 256 points
// tiles(256x1): the same in the emulator
