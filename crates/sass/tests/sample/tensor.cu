// Products of matrices whose fragments are transposed in registers.
#include <mma.h>
using namespace nvcuda;

template <class Layout>
__device__ void product(const half* a, const half* b, half* c, int k, int ld) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> sums[2][2];
    for (int i = 0; i < 4; ++i) wmma::fill_fragment(sums[i / 2][i % 2], __float2half(0.0f));
    for (int step = 0; step < k; step += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, Layout> left[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, Layout> right[2];
        for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(left[i], a + i * 16 * ld + step, ld);
        for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(right[i], b + step * ld + i * 16, ld);
        for (int i = 0; i < 4; ++i) wmma::mma_sync(sums[i / 2][i % 2], left[i / 2], right[i % 2], sums[i / 2][i % 2]);
    }
    for (int i = 0; i < 4; ++i) {
        wmma::store_matrix_sync(c + i / 2 * 16 * ld + i % 2 * 16, sums[i / 2][i % 2], ld, wmma::mem_col_major);
    }
}

extern "C" __global__ void rows(const half* a, const half* b, half* c, int k, int ld) {
    product<wmma::row_major>(a, b, c, k, ld);
}

extern "C" __global__ void columns(const half* a, const half* b, half* c, int k, int ld) {
    product<wmma::col_major>(a, b, c, k, ld);
}
