#pragma once

#include <cuda_runtime.h>

constexpr int kBlock = 128;
constexpr int kThreads = 1 << 18;

// What the driver says of the kernel that it has loaded.
cudaError_t attributes(cudaFuncAttributes* found);

// Runs it on kThreads threads.
cudaError_t launch(unsigned* out, const unsigned* in, int rounds);
