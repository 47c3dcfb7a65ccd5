// test: accesses
//  the point before stores there too

__global__ void k(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    for (int y = x - 1; y < n; y++) {
        c[x * n + y] = a[y];
        c[y * n + x] = a[y];
    }
}

// expect: accesses
// naive::independent
//
//   × points may share elements of `c`, which is stored to
//     ╭─[refused-triangles-before-the-diagonal.cu:8:9]
//   7 │     for (int y = x - 1; y < n; y++) {
//   8 │         c[x * n + y] = a[y];
//     ·         ─────────┬─────────
//     ·                  ╰── stored here
//   9 │         c[y * n + x] = a[y];
//     ·         ─────────┬─────────
//     ·                  ╰── accessed here
//  10 │     }
//     ╰────
