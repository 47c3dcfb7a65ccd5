// What the programs share: error checks, and a digest of device memory.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define AT (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define STEP (int)(gridDim.x * blockDim.x)
#define OK(call) do { cudaError_t e_ = (call); if (e_) { printf("%s: %s\n", #call, cudaGetErrorString(e_)); exit(1); } } while (0)

static void digest(const char *name, const void *device, size_t bytes) {
    std::vector<unsigned char> host(bytes);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
    uint64_t h = 0xcbf29ce484222325u;
    for (unsigned char b : host) h = (h ^ b) * 0x100000001b3u;
    printf("%s %016llx\n", name, (unsigned long long)h);
}
