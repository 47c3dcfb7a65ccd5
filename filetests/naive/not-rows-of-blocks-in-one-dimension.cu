// test: naive across(32, 8)
//  nothing of a vector is read across rows

__global__ void add(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] += a[x];
}

// expect: naive across(32, 8)
// the kernel has one dimension
