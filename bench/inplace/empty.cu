// What a launch costs the host: launches of an empty kernel, the median of batches.
#include <algorithm>
#include <chrono>
#include "common.h"

__global__ void empty() {}

int main(int argc, char **argv) {
    const int batches = 101, launches = 1000;
    std::vector<double> ns;
    for (int b = 0; b < batches; b++) {
        OK(cudaDeviceSynchronize());
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < launches; i++) empty<<<1, 32>>>();
        auto end = std::chrono::steady_clock::now();
        ns.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / launches);
    }
    OK(cudaDeviceSynchronize());
    std::sort(ns.begin(), ns.end());
    fprintf(stderr, "ns %.1f least %.1f\n", ns[batches / 2], ns[0]);
    return 0;
}
