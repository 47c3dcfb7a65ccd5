// A kernel that needs far more than 32 registers. Linked as machine code, its spill slots are in local
// memory; once `spill-to-shared` has replaced the cubin in the linked file, they are in shared memory,
// and the runtime says so.
#include "spills.h"

constexpr int kValues = 52;
// So many that 40 registers are left for a thread.
constexpr int kBlocksPerMultiprocessor = 12;

extern "C" __global__ void __launch_bounds__(kBlock, kBlocksPerMultiprocessor) spills(unsigned* out, const unsigned* in, int rounds) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        value[i] = in[(thread + i * 97) & (kThreads - 1)];
    }
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            value[i] = value[i] * 2654435761u + (value[(i + 13) % kValues] ^ (value[(i + 29) % kValues] >> 5));
        }
    }
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        sum = sum * 31 + value[i];
    }
    out[thread] = sum;
}

cudaError_t attributes(cudaFuncAttributes* found) {
    return cudaFuncGetAttributes(found, spills);
}

cudaError_t launch(unsigned* out, const unsigned* in, int rounds) {
    spills<<<kThreads / kBlock, kBlock>>>(out, in, rounds);
    return cudaGetLastError();
}
