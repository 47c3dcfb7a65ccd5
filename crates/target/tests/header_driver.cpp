// Asks NVIDIA's header-only calculator (cuda_occupancy.h) for the occupancy of many kernels.
//
// Standard input: one case per line, integers: major minor threads_per_block threads_per_sm regs_per_block
// regs_per_sm smem_per_block smem_per_sm smem_opt_in smem_reserved | carveout opt_in barriers static dynamic
// threads. Standard output: for each case and for 1 to 255 registers a record of eight 16-bit numbers in the
// byte order of the machine: status, blocks, limiting factors, and the limits by registers, shared memory,
// warps, blocks, barriers; 65535 stands for "no limit".
#include <cstdint>
#include <cstdio>

#include "cuda_occupancy.h"

static uint16_t narrow(int limit) { return limit > 65534 ? 65535 : (uint16_t)limit; }

// Before 7.0 the split is chosen by a cache preference, not by a percentage.
static cudaOccCacheConfig cache_preference(int carveout) {
    switch (carveout) {
    case 0: return CACHE_PREFER_L1;
    case 50: return CACHE_PREFER_EQUAL;
    case 100: return CACHE_PREFER_SHARED;
    default: return CACHE_PREFER_NONE;
    }
}

int main() {
    cudaOccDeviceProp device;
    cudaOccFuncAttributes kernel;
    cudaOccDeviceState state;
    device.warpSize = 32;
    device.numSms = 1;
    kernel.maxThreadsPerBlock = INT_MAX;
    int carveout, opt_in, threads;
    size_t dynamic;
    while (std::scanf("%d %d %d %d %d %d %zu %zu %zu %zu %d %d %d %zu %zu %d", &device.computeMajor,
                      &device.computeMinor, &device.maxThreadsPerBlock, &device.maxThreadsPerMultiprocessor,
                      &device.regsPerBlock, &device.regsPerMultiprocessor, &device.sharedMemPerBlock,
                      &device.sharedMemPerMultiprocessor, &device.sharedMemPerBlockOptin,
                      &device.reservedSharedMemPerBlock, &carveout, &opt_in, &kernel.numBlockBarriers,
                      &kernel.sharedSizeBytes, &dynamic, &threads) == 16) {
        kernel.shmemLimitConfig = opt_in ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        kernel.maxDynamicSharedSizeBytes = dynamic;
        if (device.computeMajor >= 7) state.carveoutConfig = carveout;
        else state.cacheConfig = cache_preference(carveout);
        uint16_t records[255][8];
        for (int regs = 1; regs <= 255; regs++) {
            cudaOccResult r = {};
            kernel.numRegs = regs;
            cudaOccError status =
                cudaOccMaxActiveBlocksPerMultiprocessor(&r, &device, &kernel, &state, threads, dynamic);
            uint16_t *record = records[regs - 1];
            record[0] = (uint16_t)status;
            record[1] = narrow(r.activeBlocksPerMultiprocessor);
            record[2] = (uint16_t)r.limitingFactors;
            record[3] = narrow(r.blockLimitRegs);
            record[4] = narrow(r.blockLimitSharedMem);
            record[5] = narrow(r.blockLimitWarps);
            record[6] = narrow(r.blockLimitBlocks);
            record[7] = narrow(r.blockLimitBarriers);
        }
        std::fwrite(records, sizeof records, 1, stdout);
    }
    return 0;
}
