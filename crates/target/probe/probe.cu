// The microbenchmark behind the figures of the table that name this file: latencies (one warp, a chain of
// dependent instructions) and throughputs (one SM, full of warps with independent chains).
//
//   nvcc -O3 -std=c++17 -arch=sm_90 probe.cu -o probe && ./probe
//
// Instructions are written as volatile PTX so that no chain is shortened; `lop3` and multiply-adds have
// three inputs, so ptxas cannot merge two of them into one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                              \
    do {                                                                                         \
        cudaError_t error = (call);                                                              \
        if (error != cudaSuccess) {                                                              \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                  \
            std::exit(1);                                                                        \
        }                                                                                        \
    } while (0)

constexpr int kSteps = 256;   // instructions of one chain in the loop body
constexpr int kLoops = 64;
constexpr int kChains = 4;    // independent chains of a thread when throughput is measured

// An operation: a register type, how to make one from a number, and one instruction on it.
#define OPERATION(Name, Type, text, constraint)                                                  \
    struct Name {                                                                                \
        using Value = Type;                                                                      \
        static constexpr const char *name = #Name;                                               \
        __device__ static Value seed(int i) { return (Value)(i + 1); }                           \
        __device__ static void step(Value &x, Value y, Value z) {                                \
            asm volatile(text : "+" constraint(x) : constraint(y), constraint(z));               \
        }                                                                                        \
    }
OPERATION(fp32_fma, float, "fma.rn.f32 %0, %0, %1, %2;", "f");
OPERATION(fp64_fma, double, "fma.rn.f64 %0, %0, %1, %2;", "d");
OPERATION(fp16x2_fma, uint32_t, "fma.rn.f16x2 %0, %0, %1, %2;", "r");
OPERATION(int_mad, uint32_t, "mad.lo.u32 %0, %0, %1, %2;", "r");
OPERATION(lop3, uint32_t, "lop3.b32 %0, %0, %1, %2, 0x96;", "r");
OPERATION(shift_funnel, uint32_t, "shf.l.wrap.b32 %0, %0, %1, %2;", "r");
OPERATION(special_ex2, float, "ex2.approx.ftz.f32 %0, %0;", "f");
OPERATION(popc, uint32_t, "popc.b32 %0, %0;", "r");
OPERATION(int_to_fp32_and_lop3, uint32_t,
          "{ .reg .f32 f; cvt.rn.f32.u32 f, %0; mov.b32 %0, f; lop3.b32 %0, %0, %1, %2, 0x96; }", "r");
OPERATION(fp32_to_int_and_lop3, uint32_t,
          "{ .reg .f32 f; mov.b32 f, %0; cvt.rzi.u32.f32 %0, f; lop3.b32 %0, %0, %1, %2, 0x96; }", "r");
OPERATION(fp32_to_fp16_and_lop3, uint32_t,
          "{ .reg .f32 f; .reg .b16 h, z; mov.b32 f, %0; mov.b16 z, 0; cvt.rn.f16.f32 h, f; "
          "mov.b32 %0, {h, z}; lop3.b32 %0, %0, %1, %2, 0x96; }", "r");
OPERATION(fp32_to_fp64_to_fp32, float,
          "{ .reg .f64 d; cvt.f64.f32 d, %0; cvt.rn.f32.f64 %0, d; }", "f");
OPERATION(shuffle, uint32_t, "shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;", "r");

template <class Op, int Chains>
__global__ void run(long long *cycles, typename Op::Value *sink, int a, int b) {
    typename Op::Value x[Chains], y = Op::seed(a), z = Op::seed(b);
    for (int c = 0; c < Chains; c++) x[c] = Op::seed(threadIdx.x + c);
    __syncthreads();
    long long start = clock64();
    for (int loop = 0; loop < kLoops; loop++) {
#pragma unroll
        for (int s = 0; s < kSteps / Chains; s++)
#pragma unroll
            for (int c = 0; c < Chains; c++) Op::step(x[c], y, z);
    }
    __syncthreads();
    long long stop = clock64();
    for (int c = 1; c < Chains; c++) x[0] += x[c];
    sink[threadIdx.x] = x[0];
    if (threadIdx.x == 0) cycles[0] = stop - start;
}

long long *g_cycles;
double *g_sink;

template <class Op, int Chains> double cycles_per_step(int threads) {
    long long cycles = 0, best = 1LL << 60;
    for (int repeat = 0; repeat < 5; repeat++) {
        run<Op, Chains><<<1, threads>>>(g_cycles, (typename Op::Value *)g_sink, 1, 2);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(&cycles, g_cycles, sizeof cycles, cudaMemcpyDeviceToHost));
        best = cycles < best ? cycles : best;
    }
    return (double)best / (kSteps * kLoops);
}

template <class Op> void report() {
    double latency = cycles_per_step<Op, 1>(32);
    double rate = 1024.0 / cycles_per_step<Op, kChains>(1024);
    std::printf("%-24s latency %7.2f cycles   throughput %7.2f threads/clk/SM\n", Op::name, latency, rate);
}

// Pointer chases. `Cached`: level 1 allowed; otherwise `ld.global.cg` (level 2).
template <bool Cached> __global__ void chase(long long *cycles, uint64_t *sink, uint64_t **p, int warm_up, int steps) {
    for (int s = 0; s < warm_up; s++)
        asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p));
    if (Cached)
        for (int s = 0; s < warm_up; s++) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p));
    long long start = clock64();
    for (int s = 0; s < steps; s++) {
        if (Cached) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p));
        else asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p));
    }
    long long stop = clock64();
    cycles[0] = stop - start;
    sink[0] = (uint64_t)p;
}

__global__ void chase_shared(long long *cycles, uint32_t *sink, int steps) {
    __shared__ uint32_t next[256];
    uint32_t base = (uint32_t)__cvta_generic_to_shared(next);
    for (int i = 0; i < 256; i++) next[i] = base + 4 * ((i + 33) % 256);
    uint32_t p = base;
    long long start = clock64();
#pragma unroll 16
    for (int s = 0; s < steps; s++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p));
    long long stop = clock64();
    cycles[0] = stop - start;
    sink[0] = p;
}

void report_chase(const char *name, bool cached, size_t bytes, size_t stride) {
    size_t count = bytes / stride;
    std::vector<uint64_t> host(bytes / 8);
    uint64_t *device;
    CHECK(cudaMalloc(&device, bytes));
    // A permutation that jumps about, so that no line is next to its successor.
    for (size_t i = 0; i < count; i++) {
        size_t from = i * 7919 % count, to = (i + 1) * 7919 % count;
        host[from * stride / 8] = (uint64_t)(device + to * stride / 8);
    }
    CHECK(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
    // The warm-up goes once round: it fills the caches that can hold the chain, and the translations.
    int warm_up = (int)count, steps = warm_up < 20000 ? warm_up : 20000;
    auto kernel = cached ? chase<true> : chase<false>;
    kernel<<<1, 1>>>(g_cycles, (uint64_t *)g_sink, (uint64_t **)device, warm_up, steps);
    CHECK(cudaDeviceSynchronize());
    long long cycles;
    CHECK(cudaMemcpy(&cycles, g_cycles, sizeof cycles, cudaMemcpyDeviceToHost));
    std::printf("%-24s latency %7.2f cycles   (%zu KiB, stride %zu)\n", name, (double)cycles / steps,
                bytes >> 10, stride);
    CHECK(cudaFree(device));
}

// Shared-memory loads, 4 or 16 bytes a thread, no bank conflicts.
template <class Vector> __global__ void load_shared(long long *cycles, float *sink) {
    extern __shared__ float memory[];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) memory[i] = i;
    uint32_t base = (uint32_t)__cvta_generic_to_shared(memory) + sizeof(Vector) * (threadIdx.x % 256);
    float sum = 0;
    __syncthreads();
    long long start = clock64();
    for (int loop = 0; loop < 256; loop++) {
#pragma unroll
        for (int s = 0; s < 16; s++) {
            if constexpr (sizeof(Vector) == 4) {
                float v;
                asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(v) : "r"(base));
                sum += v;
            } else {
                float4 v;
                asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(base));
                sum += v.x;
            }
        }
    }
    __syncthreads();
    long long stop = clock64();
    sink[threadIdx.x] = sum;
    if (threadIdx.x == 0) cycles[0] = stop - start;
}

template <class Vector> void report_shared(const char *name) {
    load_shared<Vector><<<1, 1024, 16384>>>(g_cycles, (float *)g_sink);
    CHECK(cudaDeviceSynchronize());
    long long cycles;
    CHECK(cudaMemcpy(&cycles, g_cycles, sizeof cycles, cudaMemcpyDeviceToHost));
    double loads = 1024.0 * 256 * 16 / cycles;
    std::printf("%-24s %7.2f threads/clk/SM   %7.2f bytes/clk/SM\n", name, loads, loads * sizeof(Vector));
}

// A copy within device memory, reads and writes added.
void report_copy() {
    const size_t bytes = (size_t)4 << 30;
    char *from, *to;
    cudaEvent_t start, stop;
    CHECK(cudaMalloc(&from, bytes));
    CHECK(cudaMalloc(&to, bytes));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    float best = 1e30f;
    for (int repeat = 0; repeat < 10; repeat++) {
        float ms;
        CHECK(cudaEventRecord(start));
        CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice));
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        best = ms < best ? ms : best;
    }
    std::printf("%-24s %7.0f GB/s (4 GiB, best of 10)\n", "copy", 2.0 * bytes / best / 1e6);
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
}

int attribute(cudaDeviceAttr which) {
    int value = 0;
    CHECK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

int main() {
    cudaDeviceProp device;
    int driver = 0, runtime = 0;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    std::printf("%s, compute capability %d.%d, driver API %d, runtime %d\n", device.name, device.major,
                device.minor, driver, runtime);
    std::printf("SMs %d, clock %d kHz, memory clock %d kHz, bus %d bits, L2 %d bytes\n",
                device.multiProcessorCount, attribute(cudaDevAttrClockRate),
                attribute(cudaDevAttrMemoryClockRate), device.memoryBusWidth, device.l2CacheSize);
    std::printf("persisting L2 %d bytes, access policy window %d bytes\n", device.persistingL2CacheMaxSize,
                device.accessPolicyMaxWindowSize);
    std::printf("registers per SM %d, per block %d; threads per SM %d; blocks per SM %d\n",
                device.regsPerMultiprocessor, device.regsPerBlock, device.maxThreadsPerMultiProcessor,
                device.maxBlocksPerMultiProcessor);
    std::printf("shared memory per SM %zu, per block %zu, opt-in %zu, reserved %zu\n\n",
                device.sharedMemPerMultiprocessor, device.sharedMemPerBlock, device.sharedMemPerBlockOptin,
                device.reservedSharedMemPerBlock);
    CHECK(cudaMalloc(&g_cycles, sizeof *g_cycles));
    CHECK(cudaMalloc(&g_sink, 1024 * sizeof *g_sink));
    report<fp32_fma>();
    report<fp64_fma>();
    report<fp16x2_fma>();
    report<int_mad>();
    report<lop3>();
    report<shift_funnel>();
    report<special_ex2>();
    report<popc>();
    report<int_to_fp32_and_lop3>();
    report<fp32_to_int_and_lop3>();
    report<fp32_to_fp16_and_lop3>();
    report<fp32_to_fp64_to_fp32>();
    report<shuffle>();
    int steps = 4096;
    chase_shared<<<1, 1>>>(g_cycles, (uint32_t *)g_sink, steps);
    CHECK(cudaDeviceSynchronize());
    long long cycles;
    CHECK(cudaMemcpy(&cycles, g_cycles, sizeof cycles, cudaMemcpyDeviceToHost));
    std::printf("%-24s latency %7.2f cycles\n", "shared_load", (double)cycles / steps);
    report_chase("l1_hit", true, 16 << 10, 128);
    report_chase("l2_hit", false, 4 << 20, 128);
    report_chase("dram", false, (size_t)256 << 20, 128);
    report_shared<float>("shared_load_32");
    report_shared<float4>("shared_load_128");
    report_copy();
    return 0;
}
