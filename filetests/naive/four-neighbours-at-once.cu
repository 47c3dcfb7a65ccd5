// test: naive fours(64, 1)
//  accesses of 16 bytes

__global__ void add(const float *a, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) c[x] = a[x] + 1.0f;
}

// expect: naive fours(64, 1)
// a thread takes four neighbouring points, and loads or stores their elements of `a`, `c` together
//
// add_fours: 64 threads for 256 x 1 x 1 points where a lies at a multiple of 16, c lies at a multiple of 16, x_end is a multiple of 4
//     const int first = (blockIdx.x * 64 + threadIdx.x) * 4;
//     if (first >= x_end) return;
//     alignas(16) float a_four[4];
//     *reinterpret_cast<float4 *>(&a_four[0]) = *reinterpret_cast<const float4 *>(&a[first]);
//     alignas(16) float c_four[4];
//     #pragma unroll
//     for (int turn = 0; turn < 4; turn++) {
//         c_four[turn] = a_four[turn] + 1.0f;
//     }
//     *reinterpret_cast<float4 *>(&c[first]) = *reinterpret_cast<float4 *>(&c_four[0]);
