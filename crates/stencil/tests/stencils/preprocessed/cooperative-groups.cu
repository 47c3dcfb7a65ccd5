#include <cooperative_groups.h>
#define B 8
namespace cg = cooperative_groups;
__global__ void f(double *out, const double *in, int n) {
    cg::thread_block block = cg::this_thread_block();
    __shared__ double tile[B + 2];
    const int t = threadIdx.x + 1, i = blockIdx.x * B + threadIdx.x;
    tile[t] = i < n ? in[i] : 0.0;
    if (t == 1) tile[0] = i > 0 ? in[i - 1] : 0.0;
    if (t == B) tile[B + 1] = i + 1 < n ? in[i + 1] : 0.0;
    cg::sync(block);
    if (i > 0 && i < n - 1) out[i] = tile[t - 1] * +0.5 + tile[t + 1];
}
