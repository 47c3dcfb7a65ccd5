// test: accesses
//  the counter changes before it is looked at

__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    int i = n;
    while (--i >= 0) sum += a[i];
    c[x] = sum;
}

// expect: accesses
// naive::construct
//
//   × an assignment inside an expression
//     ╭─[refused-conditions-with-effects.cu:9:12]
//   8 │     int i = n;
//   9 │     while (--i >= 0) sum += a[i];
//     ·            ─┬─
//     ·             ╰── this is no naive kernel
//  10 │     c[x] = sum;
//     ╰────
