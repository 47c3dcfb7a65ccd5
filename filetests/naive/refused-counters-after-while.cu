// test: accesses
//  what the counter is after its loop is not followed

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    int j = 0;
    while (j < m) {
        sum += a[j * n + x];
        j++;
    }
    c[x] = sum + j;
}

// expect: accesses
// naive::name
//
//   × `j` is a counter after its loop
//     ╭─[refused-counters-after-while.cu:13:18]
//  12 │     }
//  13 │     c[x] = sum + j;
//     ·                  ┬
//     ·                  ╰── used here
//  14 │ }
//     ╰────
