// Times builds of one kernel in turns, many kernels in one process. Reads one job a line from standard input, fields apart
// by tabs: name, element type, n, m, blocks, threads, turns, then a path and dynamic bytes for each build. Writes one line of
// JSON a job: times, and whether a build leaves the same bytes as the first one where both find zeros. A job of 0 turns
// launches each build once, for a profiler.
//
//     nvcc -O2 -std=c++17 runner.cpp -o runner -lcuda
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr size_t ARRAY = 256u << 20, ROOM = 32u << 20, PATTERN = 16u << 20;
constexpr float BATCH_MS = 0.5f, LONGEST_MS = 20.0f;

struct Failed {
    const char *what;
};

void must(CUresult code) {
    const char *text = "unknown";
    if (code == CUDA_SUCCESS) return;
    cuGetErrorName(code, &text);
    throw Failed{text};
}

CUdeviceptr array(const void *pattern) {
    CUdeviceptr at;
    must(cuMemAlloc(&at, ARRAY + 2 * ROOM));
    for (size_t done = 0; done < ARRAY + 2 * ROOM; done += PATTERN) must(cuMemcpyHtoD(at + done, pattern, PATTERN));
    return at + ROOM;
}

struct Inputs {
    CUdeviceptr a, b;
};

template <typename T, typename F> Inputs inputs(F value) {
    std::mt19937 random(7);
    std::vector<T> pattern(PATTERN / sizeof(T));
    for (auto &x : pattern) x = value(random);
    CUdeviceptr a = array(pattern.data());
    std::reverse(pattern.begin(), pattern.end());
    return {a, array(pattern.data())};
}

uint16_t half_of(float x) {  // for 0.5 <= x < 2
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return uint16_t((((bits >> 23) & 255) - 112) << 10 | ((bits >> 13) & 1023));
}

struct Build {
    std::string path;
    unsigned dynamic;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    int registers = 0, local = 0, shared = 0, blocks = 0, repeats = 1;
    std::vector<float> microseconds;
    const char *error = nullptr;
    bool same = false;
};

}  // namespace

int main() {
    try {
        CUdevice device;
        CUcontext context;
        must(cuInit(0));
        must(cuDeviceGet(&device, 0));
        must(cuDevicePrimaryCtxRetain(&context, device));
        must(cuCtxSetCurrent(context));
        std::map<std::string, Inputs> all;
        std::uniform_real_distribution<float> real(0.5f, 1.5f);
        all["float"] = inputs<float>([&](auto &r) { return real(r); });
        all["double"] = inputs<double>([&](auto &r) { return double(real(r)); });
        all["half"] = inputs<uint16_t>([&](auto &r) { return half_of(real(r)); });
        all["int"] = inputs<int>([&](auto &r) { return int(r() & ((1u << 25) - 1)); });
        CUdeviceptr out, index = all["int"].a;
        must(cuMemAlloc(&out, ARRAY + 2 * ROOM));
        must(cuMemsetD8(out, 0, ARRAY + 2 * ROOM));
        out += ROOM;
        char *first, *found;  // what the first build left, and another one
        must(cuMemAllocHost((void **)&first, ARRAY));
        must(cuMemAllocHost((void **)&found, ARRAY));
        CUevent begin, end;
        must(cuEventCreate(&begin, 0));
        must(cuEventCreate(&end, 0));
        std::string line;
        while (std::getline(std::cin, line)) {
            std::istringstream fields(line);
            std::string name, type;
            int n, m, blocks, threads, turns;
            fields >> name >> type >> n >> m >> blocks >> threads >> turns;
            std::vector<Build> builds;
            for (Build b; fields >> b.path >> b.dynamic;) builds.push_back(b);
            float single = 0.01f;
            double twofold = 0.01;
            uint16_t halved = half_of(0.5f);
            int whole = 3;
            void *s = type == "double" ? (void *)&twofold : type == "half" ? (void *)&halved : type == "int" ? (void *)&whole : &single;
            CUdeviceptr a = all[type].a, b = all[type].b;
            void *parameters[] = {&out, &a, &b, &index, &n, &m, s};
            auto launch = [&](const Build &x) {
                must(cuLaunchKernel(x.function, blocks, 1, 1, threads, 1, 1, x.dynamic, nullptr, parameters, nullptr));
            };
            auto timed = [&](const Build &x, int repeats) {
                float ms;
                must(cuEventRecord(begin, nullptr));
                for (int i = 0; i < repeats; ++i) launch(x);
                must(cuEventRecord(end, nullptr));
                must(cuEventSynchronize(end));
                must(cuEventElapsedTime(&ms, begin, end));
                return ms / repeats;
            };
            size_t written = 0;
            auto leaves_the_same = [&](const Build &x) {
                bool is_first = &x == &builds[0];
                must(cuMemsetD8(out, 0, ARRAY));
                launch(x);
                must(cuMemcpyDtoH(is_first ? first : found, out, is_first ? ARRAY : written));
                if (is_first) {
                    for (written = ARRAY; written > 0 && first[written - 1] == 0;) --written;
                    written = std::min(ARRAY, written + (ROOM >> 3));
                }
                return is_first || memcmp(first, found, written) == 0;
            };
            for (auto &x : builds) try {
                must(cuModuleLoad(&x.module, x.path.c_str()));
                must(cuModuleGetFunction(&x.function, x.module, name.c_str()));
                must(cuFuncGetAttribute(&x.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, x.function));
                must(cuFuncGetAttribute(&x.local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, x.function));
                must(cuFuncGetAttribute(&x.shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, x.function));
                if (x.shared + x.dynamic > 48 << 10) must(cuFuncSetAttribute(x.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, x.dynamic));
                must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&x.blocks, x.function, threads, x.dynamic));
                launch(x);
                must(cuCtxSynchronize());
                if (turns == 0) continue;
                x.same = leaves_the_same(x);
                float once = timed(x, 2);
                if (once > LONGEST_MS) throw Failed{"takes too long"};
                x.repeats = std::max(1, std::min(200, int(BATCH_MS / once)));
            } catch (const Failed &failed) {
                x.error = failed.what;
                if (cuCtxSynchronize() != CUDA_SUCCESS) throw;
            }
            for (int turn = 0; turn < turns; ++turn)
                for (size_t i = 0; i < builds.size(); ++i) {
                    Build &x = builds[(i + turn * 7) % builds.size()];
                    if (!x.error) x.microseconds.push_back(1000 * timed(x, x.repeats));
                }
            printf("{\"kernel\":\"%s\",\"builds\":[", name.c_str());
            for (auto &x : builds) {
                std::sort(x.microseconds.begin(), x.microseconds.end());
                size_t count = x.microseconds.size();
                printf("%s{\"error\":%s%s%s,\"registers\":%d,\"local\":%d,\"shared\":%d,\"blocks\":%d,\"same\":%s,\"us\":[%.4f,%.4f,%.4f]}", &x == &builds[0] ? "" : ",",
                       x.error ? "\"" : "", x.error ? x.error : "null", x.error ? "\"" : "", x.registers, x.local, x.shared, x.blocks, x.same ? "true" : "false",
                       count ? x.microseconds[0] : 0, count ? x.microseconds[count / 2] : 0, count ? x.microseconds[count * 3 / 4] : 0);
                if (x.module) cuModuleUnload(x.module);
            }
            printf("]}\n");
            fflush(stdout);
        }
    } catch (const Failed &failed) {
        fprintf(stderr, "%s\n", failed.what);
        return 1;
    }
}
