// What kernels does a program launch, how, and how long does each take? A library that the CUDA driver loads
// (CUDA_INJECTION64_PATH); it writes one line of JSON for each kernel and geometry to the file KERNELS_OUT.
// Times are the profiler's own (CUPTI activity records): nanoseconds on the device.
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#ifndef RECORD
#define RECORD CUpti_ActivityKernel10
#endif

namespace {

using Key = std::tuple<std::string, int, int, int, int, int, int, int, int, unsigned, unsigned>;
struct Runs {
    std::vector<uint64_t> nanoseconds;
};
std::map<Key, Runs> *found;
std::mutex lock;

void request(uint8_t **buffer, size_t *size, size_t *records) {
    *size = 4 << 20;
    *buffer = static_cast<uint8_t *>(aligned_alloc(8, *size));
    *records = 0;
}

void completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    std::lock_guard<std::mutex> guard(lock);
    CUpti_Activity *record = nullptr;
    while (found && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL) continue;
        auto *k = reinterpret_cast<RECORD *>(record);
        Key key{k->name ? k->name : "", +k->gridX, +k->gridY, +k->gridZ, +k->blockX, +k->blockY, +k->blockZ,
                +k->dynamicSharedMemory, +k->staticSharedMemory, +k->registersPerThread, +k->localMemoryPerThread};
        (*found)[key].nanoseconds.push_back(k->end - k->start);
    }
    free(buffer);
}

void finish() {
    cuptiActivityFlushAll(1);
    std::lock_guard<std::mutex> guard(lock);
    const char *path = getenv("KERNELS_OUT");
    FILE *out = path ? fopen(path, "w") : nullptr;
    if (!out) return;
    for (auto &[key, runs] : *found) {
        auto &ns = runs.nanoseconds;
        std::sort(ns.begin(), ns.end());
        uint64_t total = 0;
        for (uint64_t n : ns) total += n;
        auto &[name, gx, gy, gz, bx, by, bz, dynamic, fixed, registers, local] = key;
        fprintf(out,
                "{\"kernel\":\"%s\",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"dynamic_smem\":%d,\"static_smem\":%d,"
                "\"registers\":%u,\"local\":%u,\"launches\":%zu,\"median_ns\":%llu,\"least_ns\":%llu,\"total_ns\":%llu}\n",
                name.c_str(), gx, gy, gz, bx, by, bz, dynamic, fixed, registers, local, ns.size(),
                (unsigned long long)ns[ns.size() / 2], (unsigned long long)ns[0], (unsigned long long)total);
    }
    fclose(out);
}

}  // namespace

extern "C" int InitializeInjection() {
    found = new std::map<Key, Runs>;
    cuptiActivityRegisterCallbacks(request, completed);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    atexit(finish);
    return 1;
}
