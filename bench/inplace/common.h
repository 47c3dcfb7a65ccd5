// What the programs share: error checks, and a digest of device memory.
#pragma once
#include <chrono>
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

// What the program's own work takes, in milliseconds of the host's clock, to standard error: from the moment that it
// is made to `end`. The device is at rest at both.
struct Window {
    std::chrono::steady_clock::time_point begin;
    Window() { OK(cudaDeviceSynchronize()); begin = std::chrono::steady_clock::now(); }
    void end() const {
        OK(cudaDeviceSynchronize());
        fprintf(stderr, "window_ms %.3f\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
};
