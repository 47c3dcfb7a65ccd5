// What a program hands to CUDA's runtime at its launches: a library to be loaded in front of the runtime (`LD_PRELOAD`),
// whichever one it is. Each launch becomes a line of the file that `OBSERVED` names:
//
//     launch|graph KERNEL GRID BLOCK DYNAMIC_SMEM PARAMETERS POINTERS
//
// with the parameters' bytes in hexadecimal digits (`?` where their sizes are not known) and, for each of their words that
// points into an allocation, AT:SIZE:OFFSET. Launches that fail are left out; `graph` are those that go into a graph.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

// Lines that are written, at most.
constexpr long MOST = 50000;

struct Observed {
    std::recursive_mutex lock;
    std::map<const void *, std::string> names;
    std::map<const void *, const void *> handles;
    // Offsets and sizes of kernels' parameters.
    std::map<const void *, std::vector<std::pair<size_t, size_t>>> places;
    std::map<uintptr_t, size_t> ranges;
    FILE *file = nullptr;
    long lines = 0;
    Observed() {
        const char *path = getenv("OBSERVED");
        file = path ? fopen(path, "a") : nullptr;
    }
};

Observed &observed() {
    static Observed *one = new Observed();
    return *one;
}

template <class F> F *real(const char *name) { return reinterpret_cast<F *>(dlsym(RTLD_NEXT, name)); }

using Guard = std::lock_guard<std::recursive_mutex>;

cudaError_t take(cudaError_t code, void *const *pointer, size_t size) {
    if (code == cudaSuccess && pointer && *pointer) {
        Guard guard(observed().lock);
        observed().ranges[reinterpret_cast<uintptr_t>(*pointer)] = size;
    }
    return code;
}

void drop(const void *pointer) {
    Guard guard(observed().lock);
    observed().ranges.erase(reinterpret_cast<uintptr_t>(pointer));
}

const char *name_of(const void *function) {
    auto &all = observed();
    auto handle = all.handles.find(function);
    if (handle != all.handles.end()) function = handle->second;
    auto name = all.names.find(function);
    return name == all.names.end() ? "?" : name->second.c_str();
}

const void *function_of(const void *function) {
    auto handle = observed().handles.find(function);
    return handle == observed().handles.end() ? function : handle->second;
}

// Offset and size of a parameter: of the runtime, where it answers (13.1 on), else of the driver.
bool place(const void *function, size_t at, size_t &offset, size_t &size) {
    using OfRuntime = cudaError_t(const void *, size_t, size_t *, size_t *);
    static auto *of_runtime = real<OfRuntime>("cudaFuncGetParamInfo");
    static auto *count = real<cudaError_t(const void *, size_t *)>("cudaFuncGetParamCount");
    size_t most = 0;
    // Nothing that fails is asked: the program would find the error.
    if (of_runtime && count) return count(function, &most) == cudaSuccess && at < most && of_runtime(function, at, &offset, &size) == cudaSuccess;
    using OfDriver = int(void *, size_t, size_t *, size_t *);
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    static auto *of_driver = reinterpret_cast<OfDriver *>(driver ? dlsym(driver, "cuFuncGetParamInfo") : nullptr);
    static auto *of_symbol = real<cudaError_t(void **, const void *)>("cudaGetFuncBySymbol");
    void *handle = nullptr;
    return of_driver && of_symbol && of_symbol(&handle, function) == cudaSuccess && of_driver(handle, at, &offset, &size) == 0;
}

// The bytes of the parameters; false where their sizes are not known.
bool gather(const void *function, void **args, std::vector<unsigned char> &bytes) {
    auto &all = observed().places;
    function = function_of(function);
    auto known = all.find(function);
    if (known == all.end()) {
        std::vector<std::pair<size_t, size_t>> places;
        size_t offset = 0, size = 0;
        while (place(function, places.size(), offset, size)) places.emplace_back(offset, size);
        known = all.emplace(function, std::move(places)).first;
    }
    for (size_t at = 0; at < known->second.size(); ++at) {
        auto [offset, size] = known->second[at];
        if (!args) return false;
        if (bytes.size() < offset + size) bytes.resize(offset + size);
        const auto *from = static_cast<const unsigned char *>(args[at]);
        std::copy(from, from + size, bytes.begin() + offset);
    }
    // A kernel without parameters, or one of which nobody tells.
    return true;
}

void tell(const char *kind, const void *function, dim3 grid, dim3 block, size_t smem, void **args) {
    auto &all = observed();
    Guard guard(all.lock);
    if (!all.file || all.lines++ >= MOST) return;
    fprintf(all.file, "%s %s %u,%u,%u %u,%u,%u %zu ", kind, name_of(function), grid.x, grid.y, grid.z, block.x, block.y, block.z, smem);
    std::vector<unsigned char> bytes;
    bool known = gather(function, args, bytes);
    if (!known || bytes.empty()) fputs(known ? "-" : "?", all.file);
    else
        for (unsigned char byte : bytes) fprintf(all.file, "%02x", byte);
    fputc(' ', all.file);
    const char *comma = "";
    for (size_t at = 0; known && at + 8 <= bytes.size(); at += 8) {
        // Two numbers side by side are no pointer.
        const auto &places = all.places[function_of(function)];
        auto holds = [at](auto place) { return place.first <= at && at + 8 <= place.first + place.second; };
        if (std::none_of(places.begin(), places.end(), holds)) continue;
        uintptr_t word = 0;
        for (int i = 7; i >= 0; --i) word = word << 8 | bytes[at + i];
        auto range = all.ranges.upper_bound(word);
        if (range == all.ranges.begin() || !word) continue;
        --range;
        if (word - range->first >= range->second) continue;
        fprintf(all.file, "%s%zu:%zu:%zu", comma, at, range->second, static_cast<size_t>(word - range->first));
        comma = ",";
    }
    fputs(*comma ? "\n" : "-\n", all.file);
    fflush(all.file);
}

// A launch copies its arguments: they are still there.
cudaError_t launched(cudaError_t code, cudaStream_t stream, const void *function, dim3 grid, dim3 block, size_t smem, void **args) {
    if (code != cudaSuccess) return code;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    auto capturing = real<cudaError_t(cudaStream_t, cudaStreamCaptureStatus *)>("cudaStreamIsCapturing");
    if (capturing && stream) capturing(stream, &status);
    tell(status == cudaStreamCaptureStatusActive ? "graph" : "launch", function, grid, block, smem, args);
    return code;
}

}  // namespace

extern "C" {

void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name, int threads, void *tid, void *bid, void *block, void *grid, int *warp) {
    {
        Guard guard(observed().lock);
        observed().names[host] = name;
    }
    real<void(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *)>("__cudaRegisterFunction")(module, host, device, name, threads, tid, bid, block, grid, warp);
}

cudaError_t __cudaGetKernel(void **kernel, const void *function) {
    cudaError_t code = real<cudaError_t(void **, const void *)>("__cudaGetKernel")(kernel, function);
    if (code == cudaSuccess) {
        Guard guard(observed().lock);
        observed().handles[*kernel] = function;
    }
    return code;
}

#define LAUNCH(NAME)                                                                                                          \
    cudaError_t NAME(const void *function, dim3 grid, dim3 block, void **args, size_t smem, cudaStream_t stream) {            \
        using Call = cudaError_t(const void *, dim3, dim3, void **, size_t, cudaStream_t);                                    \
        return launched(real<Call>(#NAME)(function, grid, block, args, smem, stream), stream, function, grid, block, smem, args); \
    }
LAUNCH(cudaLaunchCooperativeKernel)
LAUNCH(cudaLaunchKernel)
LAUNCH(cudaLaunchKernel_ptsz)
LAUNCH(__cudaLaunchKernel)
LAUNCH(__cudaLaunchKernel_ptsz)

#define LAUNCH_EX(NAME)                                                                                                     \
    cudaError_t NAME(const cudaLaunchConfig_t *config, const void *function, void **args) {                                 \
        cudaError_t code = real<cudaError_t(const cudaLaunchConfig_t *, const void *, void **)>(#NAME)(config, function, args); \
        return launched(code, config->stream, function, config->gridDim, config->blockDim, config->dynamicSmemBytes, args);  \
    }
LAUNCH_EX(cudaLaunchKernelExC)
LAUNCH_EX(cudaLaunchKernelExC_ptsz)

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count, const cudaKernelNodeParams *params) {
    using Call = cudaError_t(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t, const cudaKernelNodeParams *);
    cudaError_t code = real<Call>("cudaGraphAddKernelNode")(node, graph, before, count, params);
    if (code == cudaSuccess) tell("graph", params->func, params->gridDim, params->blockDim, params->sharedMemBytes, params->kernelParams);
    return code;
}

cudaError_t cudaMalloc(void **pointer, size_t size) { return take(real<cudaError_t(void **, size_t)>("cudaMalloc")(pointer, size), pointer, size); }

cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags) {
    return take(real<cudaError_t(void **, size_t, unsigned)>("cudaMallocManaged")(pointer, size, flags), pointer, size);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    cudaError_t code = real<cudaError_t(void **, size_t *, size_t, size_t)>("cudaMallocPitch")(pointer, pitch, width, height);
    return take(code, pointer, code == cudaSuccess ? *pitch * height : 0);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
    cudaError_t code = real<cudaError_t(cudaPitchedPtr *, cudaExtent)>("cudaMalloc3D")(pointer, extent);
    return take(code, &pointer->ptr, code == cudaSuccess ? pointer->pitch * extent.height * extent.depth : 0);
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
    return take(real<cudaError_t(void **, size_t, cudaStream_t)>("cudaMallocAsync")(pointer, size, stream), pointer, size);
}

cudaError_t cudaMallocHost(void **pointer, size_t size) { return take(real<cudaError_t(void **, size_t)>("cudaMallocHost")(pointer, size), pointer, size); }

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
    return take(real<cudaError_t(void **, size_t, unsigned)>("cudaHostAlloc")(pointer, size, flags), pointer, size);
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags) {
    return take(real<cudaError_t(void *, size_t, unsigned)>("cudaHostRegister")(pointer, size, flags), &pointer, size);
}

// Where the device sees host memory.
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    cudaError_t code = real<cudaError_t(void **, void *, unsigned)>("cudaHostGetDevicePointer")(device, host, flags);
    Guard guard(observed().lock);
    auto range = observed().ranges.find(reinterpret_cast<uintptr_t>(host));
    return range == observed().ranges.end() ? code : take(code, device, range->second);
}

cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    cudaError_t code = real<cudaError_t(void **, const void *)>("cudaGetSymbolAddress")(pointer, symbol);
    size_t size = 0;
    auto sized = real<cudaError_t(size_t *, const void *)>("cudaGetSymbolSize");
    return sized && sized(&size, symbol) == cudaSuccess ? take(code, pointer, size) : code;
}

cudaError_t cudaFree(void *pointer) {
    drop(pointer);
    return real<cudaError_t(void *)>("cudaFree")(pointer);
}

cudaError_t cudaFreeHost(void *pointer) {
    drop(pointer);
    return real<cudaError_t(void *)>("cudaFreeHost")(pointer);
}

cudaError_t cudaHostUnregister(void *pointer) {
    drop(pointer);
    return real<cudaError_t(void *)>("cudaHostUnregister")(pointer);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    drop(pointer);
    return real<cudaError_t(void *, cudaStream_t)>("cudaFreeAsync")(pointer, stream);
}
}
