// One size is a header's, the other one an option's: both are made small for a trial.
// nvcc: -DCOLUMNS=400
#include <cuda_runtime.h>
#include "include/sizes.h"
__global__ void f(double *out, const double *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= COLUMNS - 1 || j < 1 || j >= ROWS - 1) return;
    AT(out, j, i) = AT(in, j, i - 1) + AT(in, j, i + 1) + AT(in, j - 1, i) + AT(in, j + 1, i);
}
