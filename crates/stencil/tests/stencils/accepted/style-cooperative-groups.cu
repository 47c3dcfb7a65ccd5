#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void coop(double *out, const double *in, int n) {
    __shared__ double s[256 + 2];
    cg::thread_block block = cg::this_thread_block();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) s[threadIdx.x + 1] = in[i];
    if (threadIdx.x == 0 && i > 0) s[0] = in[i - 1];
    if (threadIdx.x == 255 && i + 1 < n) s[257] = in[i + 1];
    block.sync();
    if (i > 0 && i < n - 1) out[i] = s[threadIdx.x] + s[threadIdx.x + 2];
}
// expect:
// i: 1 and 1 cells are not computed
// function coop (out, in) {
//   out[i] = in[i-1] + in[i+1];
// }
// parameter n;
// iterator i;
// double out[n], in[n];
// coop (out, in);
// return out;
