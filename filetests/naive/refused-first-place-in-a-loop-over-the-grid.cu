// test: accesses
//  the place of the thread is that of its first turn alone

__global__ void k(const float *a, float *c, int n, int m) {
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += blockDim.x * gridDim.x) c[i] = a[first];
}

// expect: accesses
// naive::name
//
//   × `first` is a place in the launch, inside a loop over the grid
//    ╭─[refused-first-place-in-a-loop-over-the-grid.cu:6:70]
//  5 │     int first = blockIdx.x * blockDim.x + threadIdx.x;
//  6 │     for (int i = first; i < n; i += blockDim.x * gridDim.x) c[i] = a[first];
//    ·                                                                      ──┬──
//    ·                                                                        ╰── used here
//  7 │ }
//    ╰────
