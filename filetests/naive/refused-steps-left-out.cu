// test: accesses
//  a `continue` leaves the step out

__global__ void k(const float *a, float *c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    float sum = 0.0f;
    int j = 0;
    while (j < m) {
        if (a[j * n + x] < 0.0f) continue;
        sum += a[j * n + x];
        j++;
    }
    c[x] = sum;
}

// expect: accesses
// naive::construct
//
//   × a `while` loop
//     ╭─[refused-steps-left-out.cu:9:5]
//   8 │         int j = 0;
//   9 │ ╭─▶     while (j < m) {
//  10 │ │           if (a[j * n + x] < 0.0f) continue;
//  11 │ │           sum += a[j * n + x];
//  12 │ ├─▶         j++;
//     · ╰──── this is no naive kernel
//  13 │         }
//     ╰────
