// Times other builds of a program's kernels inside the program, on its own data: a library that the CUDA driver loads
// (CUDA_INJECTION64_PATH). REPLAY_PLAN names a file with one line for each kernel and build, fields apart by tabs:
//
//     kernel  grid x y z  block x y z  dynamic bytes  which launch  build  path of the cubin  globals, apart by commas
//
// At that launch of the kernel with that geometry all device memory is saved, every build is launched in turns, each on
// what was saved, and then the program goes on. REPLAY_OUT gets a line of JSON for each kernel. Times are between events
// around a launch that waits behind a copy, less what an empty kernel takes.
#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

using Key = std::tuple<std::string, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned>;
struct Build {
    std::string name, path, globals;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    int registers = 0, local = 0, shared = 0, blocks = 0;
    std::vector<float> ms;
    std::string error;
};
struct Target {
    size_t at = 0, seen = 0;
    bool done = false;
    std::vector<Build> builds;
};

constexpr double SECONDS = 1.5, LONGEST = 6.0;
constexpr size_t MOST_SAVED = size_t(24) << 30;
const char *EMPTY = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n ret;\n}\n";

std::map<Key, Target> targets;
std::map<CUfunction, std::string> names;
std::map<CUdeviceptr, size_t> allocated;
std::recursive_mutex lock;
thread_local bool inside = false;
FILE *out = nullptr;

struct Failed {
    std::string what;
};
void must(CUresult code) {
    const char *text = "unknown";
    if (code == CUDA_SUCCESS) return;
    cuGetErrorName(code, &text);
    throw Failed{text};
}

void read_plan() {
    std::ifstream plan(getenv("REPLAY_PLAN") ? getenv("REPLAY_PLAN") : "");
    for (std::string line; std::getline(plan, line);) {
        std::istringstream fields(line);
        std::string kernel;
        unsigned g[3], b[3], dynamic;
        size_t at;
        Build build;
        fields >> kernel >> g[0] >> g[1] >> g[2] >> b[0] >> b[1] >> b[2] >> dynamic >> at >> build.name >> build.path >> build.globals;
        if (!fields && build.path.empty()) continue;
        Target &target = targets[Key{kernel, g[0], g[1], g[2], b[0], b[1], b[2], dynamic}];
        target.at = at;
        target.builds.push_back(build);
    }
}

const std::string &name_of(CUfunction &function) {
    auto found = names.find(function);
    if (found != names.end()) return found->second;
    const char *name = nullptr;
    if (cuFuncGetName(&name, function) != CUDA_SUCCESS || !name) cuKernelGetName(&name, reinterpret_cast<CUkernel>(function));
    return names[function] = name ? name : "";
}

struct Launch {
    CUfunction function;
    unsigned grid[3], block[3], dynamic;
    CUstream stream;
    void **parameters, **extra;
};

void copy_globals(CUfunction original, Build &build) {
    CUmodule from = nullptr;
    if (build.globals.empty() || build.globals == "-") return;
    if (cuFuncGetModule(&from, original) != CUDA_SUCCESS) {
        CUfunction inner;
        must(cuKernelGetFunction(&inner, reinterpret_cast<CUkernel>(original)));
        must(cuFuncGetModule(&from, inner));
    }
    std::istringstream list(build.globals);
    for (std::string name; std::getline(list, name, ',');) {
        CUdeviceptr a, b;
        size_t m, n;
        if (cuModuleGetGlobal(&b, &n, build.module, name.c_str()) != CUDA_SUCCESS) continue;
        must(cuModuleGetGlobal(&a, &m, from, name.c_str()));
        must(cuMemcpyDtoD(b, a, std::min(m, n)));
    }
}

void trial(const std::string &kernel, const Launch &l, Target &target) {
    std::vector<std::tuple<CUdeviceptr, CUdeviceptr, size_t>> saved;
    CUevent begin = nullptr, end = nullptr;
    std::string failed;
    float nothing = 0;
    auto restore = [&] {
        for (auto &[at, copy, bytes] : saved) must(cuMemcpyDtoDAsync(at, copy, bytes, l.stream));
    };
    try {
        must(cuCtxSynchronize());
        size_t total = 0;
        for (auto &[at, bytes] : allocated) total += bytes;
        if (total > MOST_SAVED) throw Failed{"too much memory"};
        // All in one piece, so that what is freed is little work.
        CUdeviceptr room = 0;
        if (total) must(cuMemAlloc(&room, total + 512 * allocated.size()));
        for (auto &[at, bytes] : allocated) {
            saved.emplace_back(at, room, bytes);
            must(cuMemcpyDtoD(room, at, bytes));
            room += (bytes + 511) / 512 * 512;
        }
        must(cuEventCreate(&begin, 0));
        must(cuEventCreate(&end, 0));
        CUmodule empty;
        CUfunction none;
        must(cuModuleLoadData(&empty, EMPTY));
        must(cuModuleGetFunction(&none, empty, "nothing"));
        CUdeviceptr waste;
        must(cuMemAlloc(&waste, 64 << 20));
        auto timed = [&](CUfunction function) {
            float ms;
            restore();
            // The device is busy until both events and the launch are in its queue.
            must(cuMemsetD8Async(waste, 0, 64 << 20, l.stream));
            must(cuEventRecord(begin, l.stream));
            if (function == none) must(cuLaunchKernel(none, 1, 1, 1, 32, 1, 1, 0, l.stream, nullptr, nullptr));
            else must(cuLaunchKernel(function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.dynamic, l.stream, l.parameters, l.extra));
            must(cuEventRecord(end, l.stream));
            must(cuEventSynchronize(end));
            must(cuEventElapsedTime(&ms, begin, end));
            return ms;
        };
        std::vector<float> of_nothing;
        for (int i = 0; i < 15; ++i) of_nothing.push_back(timed(none));
        std::sort(of_nothing.begin(), of_nothing.end());
        nothing = of_nothing[of_nothing.size() / 2];
        double longest = 0;
        for (auto &x : target.builds) try {
            must(cuModuleLoad(&x.module, x.path.c_str()));
            must(cuModuleGetFunction(&x.function, x.module, kernel.c_str()));
            must(cuFuncGetAttribute(&x.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, x.function));
            must(cuFuncGetAttribute(&x.local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, x.function));
            must(cuFuncGetAttribute(&x.shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, x.function));
            if (l.dynamic > 48 << 10) must(cuFuncSetAttribute(x.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.dynamic));
            must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&x.blocks, x.function, l.block[0] * l.block[1] * l.block[2], l.dynamic));
            copy_globals(l.function, x);
            longest = std::max(longest, double(timed(x.function)) / 1000);
        } catch (const Failed &why) {
            x.error = why.what;
            if (cuCtxSynchronize() != CUDA_SUCCESS) throw;
        }
        double all = longest * target.builds.size();
        int turns = std::max(2, std::min(9, int(SECONDS / std::max(all, 1e-6))));
        if (2 * all > LONGEST) throw Failed{"takes too long"};
        for (int turn = 0; turn < turns; ++turn)
            for (size_t i = 0; i < target.builds.size(); ++i) {
                Build &x = target.builds[(i + turn * 7) % target.builds.size()];
                if (x.error.empty()) x.ms.push_back(timed(x.function));
            }
        restore();
        must(cuCtxSynchronize());
        cuModuleUnload(empty);
        cuMemFree(waste);
        if (!saved.empty()) cuMemFree(std::get<1>(saved.front()));
    } catch (const Failed &why) {
        failed = why.what;
    }
    fprintf(out, "{\"kernel\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"dynamic_smem\":%u,\"failed\":\"%s\",\"nothing_us\":%.3f,\"builds\":[",
            kernel.c_str(), l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.dynamic, failed.c_str(), 1000 * nothing);
    for (auto &x : target.builds) {
        std::sort(x.ms.begin(), x.ms.end());
        size_t count = x.ms.size();
        fprintf(out, "%s{\"build\":\"%s\",\"error\":\"%s\",\"registers\":%d,\"local\":%d,\"shared\":%d,\"blocks\":%d,\"us\":[%.3f,%.3f,%.3f]}",
                &x == &target.builds[0] ? "" : ",", x.name.c_str(), x.error.c_str(), x.registers, x.local, x.shared, x.blocks,
                count ? 1000 * x.ms[0] : 0, count ? 1000 * x.ms[count / 2] : 0, count ? 1000 * x.ms[count * 3 / 4] : 0);
        if (x.module) cuModuleUnload(x.module);
    }
    fprintf(out, "]}\n");
    fflush(out);
}

void before(Launch l) {
    const std::string &name = name_of(l.function);
    auto found = targets.find(Key{name, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.dynamic});
    if (found == targets.end() || found->second.done || found->second.seen++ < found->second.at) return;
    found->second.done = true;
    trial(name, l, found->second);
}

template <typename P> Launch plain(const P *p) {
    return {p->f, {p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes, p->hStream, p->kernelParams, p->extra};
}
template <typename P> Launch extended(const P *p) {
    const CUlaunchConfig *c = p->config;
    return {p->f, {c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, c->hStream, p->kernelParams, p->extra};
}

void CUPTIAPI called(void *, CUpti_CallbackDomain, CUpti_CallbackId id, const void *data) {
    auto *call = static_cast<const CUpti_CallbackData *>(data);
    if (inside) return;
    std::lock_guard<std::recursive_mutex> guard(lock);
    inside = true;
    bool enters = call->callbackSite == CUPTI_API_ENTER;
    bool worked = !enters && call->functionReturnValue && *static_cast<CUresult *>(call->functionReturnValue) == CUDA_SUCCESS;
    const void *p = call->functionParams;
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
            if (enters) before(plain(static_cast<const cuLaunchKernel_params *>(p)));
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
            if (enters) before(plain(static_cast<const cuLaunchKernel_ptsz_params *>(p)));
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
            if (enters && static_cast<const cuLaunchKernelEx_params *>(p)->config->numAttrs == 0)
                before(extended(static_cast<const cuLaunchKernelEx_params *>(p)));
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
            if (worked) {
                auto *q = static_cast<const cuMemAlloc_v2_params *>(p);
                allocated[*q->dptr] = q->bytesize;
            }
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged:
            if (worked) {
                auto *q = static_cast<const cuMemAllocManaged_params *>(p);
                allocated[*q->dptr] = q->bytesize;
            }
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2:
            if (worked) {
                auto *q = static_cast<const cuMemAllocPitch_v2_params *>(p);
                allocated[*q->dptr] = *q->pPitch * q->Height;
            }
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
            if (enters) allocated.erase(static_cast<const cuMemFree_v2_params *>(p)->dptr);
            break;
    }
    inside = false;
}

}  // namespace

extern "C" int InitializeInjection() {
    const char *path = getenv("REPLAY_OUT");
    out = path ? fopen(path, "w") : nullptr;
    if (!out) return 1;
    read_plan();
    CUpti_SubscriberHandle subscriber;
    cuptiSubscribe(&subscriber, called, nullptr);
    for (auto id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
                    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2})
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    return 1;
}
