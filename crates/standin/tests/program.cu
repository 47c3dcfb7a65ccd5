// A program of many parts: what the runtime answers, and what kernels leave. It says what it finds.
#include <cstdio>
#include <cstring>
#include <cstdlib>
#include <cooperative_groups.h>
#include <mma.h>

__constant__ float weights[4];
__device__ int counted;
__managed__ int shared_with_host = 3;
typedef float (*Function)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ Function chosen = twice;

__global__ void weigh(const float *a, float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        b[i] = a[i] * weights[1] + 1;
        atomicAdd(&counted, 1);
    }
    if (i == 0) {
        printf("a kernel prints %d\n", n);
        shared_with_host += 4;
    }
}
__global__ void call(float *a, Function f) { a[threadIdx.x] = f(a[threadIdx.x]) + chosen(1); }
__global__ void add(int *a, int by) { a[threadIdx.x] += by; }
__global__ void dynamic(int *a) {
    extern __shared__ int held[];
    held[threadIdx.x] = threadIdx.x;
    __syncthreads();
    a[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
__global__ void beyond(int *a) { a[1 << 24] = 1; }
__global__ void just_beyond(int *a) { a[100 + threadIdx.x] = 1; }
__global__ void spin(int *a, int n) {
    for (int i = 0; i < n; ++i) atomicAdd(a, i & 1);
}
// Long work on what is there.
__host__ __device__ int mixed(unsigned x, int n) {
    for (int i = 0; i < n; ++i) x = x * 1664525 + 1013904223 + i % 3;
    return x;
}
__global__ void mix(const int *from, int *to, int n) { to[threadIdx.x] = mixed(from[threadIdx.x], n); }
__global__ void textured(cudaTextureObject_t t, float *a) { a[threadIdx.x] = texCubemap<float>(t, threadIdx.x, 0, 1); }
__global__ void sampled(cudaTextureObject_t t, const float2 *at, float *to) { to[threadIdx.x] = tex2D<float>(t, at[threadIdx.x].x, at[threadIdx.x].y); }
__global__ void sampled3(cudaTextureObject_t t, float *to) { to[threadIdx.x] = tex3D<float>(t, 1.0f, threadIdx.x + 0.5f, 1.0f); }
__global__ void layered(cudaTextureObject_t t, float *to) { to[threadIdx.x] = tex2DLayered<float>(t, 1.5f, 0.5f, threadIdx.x); }
__global__ void bytes4(cudaTextureObject_t t, float4 *to) { to[threadIdx.x] = tex2D<float4>(t, threadIdx.x + 0.5f, 0.5f); }
__global__ void fetched(cudaTextureObject_t t, int *to) { to[threadIdx.x] = tex1Dfetch<int>(t, (int)threadIdx.x - 1); }
__global__ void surfaces(cudaSurfaceObject_t s, float *to) {
    int x = threadIdx.x;
    float own = surf2Dread<float>(s, x * 4, 1, cudaBoundaryModeZero), last = surf2Dread<float>(s, x * 4, 9, cudaBoundaryModeClamp);
    surf2Dwrite(own + 100, s, x * 4, 0, cudaBoundaryModeZero);
    to[x] = last;
}
// What a block reads behind the barrier others wrote before it.
__global__ void together(int *parts, int *sum) {
    auto grid = cooperative_groups::this_grid();
    for (int turn = 0; turn < 3; ++turn) {
        if (threadIdx.x == 0) parts[blockIdx.x] = blockIdx.x + turn;
        grid.sync();
        if (grid.thread_rank() == 0)
            for (int i = 0; i < gridDim.x; ++i) *sum += parts[i];
        grid.sync();
    }
}
__global__ void sized(int *a, int width, int height) { a[0] = width + height; }
__global__ void soften(float *a) { a[threadIdx.x] = __expf(a[threadIdx.x]); }
__global__ void multiply(float *to, int n) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, row_major> b;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(a, 1.0f), fill_fragment(b, 1.0f), fill_fragment(c, 0.0f);
    for (int i = 0; i < n; ++i) mma_sync(c, a, b, c);
    store_matrix_sync(to, c, 16, mem_row_major);
}
__global__ void converge(float *residual) { *residual *= 0.5f; }

static void say(const char *what, cudaError_t e) { printf("%s: %s\n", what, cudaGetErrorName(e)); }

static void modules() {
    float host[1000], *a, *b;
    for (int i = 0; i < 1000; ++i) host[i] = i;
    float own[4] = {1, 2, 3, 4};
    say("symbol", cudaMemcpyToSymbol(weights, own, sizeof own));
    say("symbol too long", cudaMemcpyToSymbol(weights, host, 20));
    cudaMalloc(&a, sizeof host);
    cudaMalloc(&b, sizeof host);
    say("to", cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    weigh<<<4, 256>>>(a, b, 1000);
    say("from", cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
    int count = 0;
    cudaMemcpyFromSymbol(&count, counted, sizeof count);
    printf("%g %g, counted %d, shared %d\n", host[0], host[999], count, shared_with_host);
    Function f;
    cudaMemcpyFromSymbol(&f, chosen, sizeof f);
    call<<<1, 4>>>(b, f);
    cudaMemcpy(host, b, 16, cudaMemcpyDeviceToHost);
    printf("called %g %g\n", host[0], host[3]);
    size_t parameters = 0, offset = 0, size = 0;
    cudaFuncGetParamCount((const void *)weigh, &parameters);
    cudaFuncGetParamInfo((const void *)weigh, 2, &offset, &size);
    printf("%zu parameters, the third at %zu has %zu bytes\n", parameters, offset, size);
    say("fourth", cudaFuncGetParamInfo((const void *)weigh, 3, &offset, &size));
    // Together they would be an address.
    sized<<<1, 1>>>((int *)a, 8, (int)((size_t)a >> 32));
    say("too far", cudaMemcpy(host, a, 5000, cudaMemcpyDeviceToHost));
    say("last", cudaGetLastError());
    say("last again", cudaGetLastError());
    say("free", cudaFree(a));
    say("free twice", cudaFree(a));
    size_t pitch, room, all;
    char *rows, picture[3][5] = {"abcd", "efgh", "ijkl"}, back[3][5] = {};
    cudaMallocPitch(&rows, &pitch, 5, 3);
    cudaMemcpy2D(rows, pitch, picture, 5, 5, 3, cudaMemcpyHostToDevice);
    cudaMemset2D(rows + 1, pitch, 'x', 2, 3);
    cudaMemcpy2D(back, 5, rows, pitch, 5, 3, cudaMemcpyDeviceToHost);
    printf("pitch %zu: %s %s %s\n", pitch, back[0], back[1], back[2]);
    cudaMemGetInfo(&room, &all);
    void *large;
    say("more than there is", cudaMalloc(&large, all + 1));
    int *pinned, *seen;
    cudaHostAlloc(&pinned, 128, cudaHostAllocMapped);
    cudaHostGetDevicePointer(&seen, pinned, 0);
    pinned[31] = 5;
    add<<<1, 32>>>(seen, 2);
    cudaDeviceSynchronize();
    printf("pinned %d\n", pinned[31]);
    static int registered[64];
    cudaHostRegister(registered, sizeof registered, 0);
    add<<<1, 32>>>(registered, 9);
    cudaDeviceSynchronize();
    printf("registered %d\n", registered[31]);
    cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, b);
    printf("memory of type %d\n", attributes.type);
    cudaDeviceProp properties = {};
    cudaGetDeviceProperties(&properties, 0);
    int pools = 0, pooled[4] = {}, *p = nullptr;
    cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0);
    cudaMemPool_t pool;
    cudaMemPoolProps wanted = {};
    say("pool", cudaMemPoolCreate(&pool, &wanted));
    unsigned long long most = ~0ull;
    say("its threshold", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most));
    say("of the pool", cudaMallocFromPoolAsync((void **)&p, 16, pool, 0));
    cudaMemsetAsync(p, 0, 16, 0);
    add<<<1, 4>>>(p, 5);
    cudaMemcpyAsync(pooled, p, 16, cudaMemcpyDeviceToHost, 0);
    cudaFreeAsync(p, 0);
    say("no pool", cudaMemPoolDestroy(pool));
    printf("pools %d %d: %d\n", properties.memoryPoolsSupported, pools, pooled[3]);
}

static void host_function(void *data) { *(int *)data += 1; }

static void launches() {
    int *a = nullptr, host[32] = {}, called = 0;
    cudaMalloc(&a, 1 << 20);
    cudaMemset(a, 0, 128);
    add<<<1, 2048>>>(a, 1);
    say("too many threads", cudaGetLastError());
    add<<<0, 32>>>(a, 1);
    say("no blocks", cudaGetLastError());
    dynamic<<<1, 256, 100000>>>(a);
    say("too much shared memory", cudaGetLastError());
    say("attribute", cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    dynamic<<<1, 256, 100000>>>(a);
    say("with the attribute", cudaGetLastError());
    cudaMemcpy(host, a, 128, cudaMemcpyDeviceToHost);
    printf("reversed %d\n", host[0]);
    int blocks = 0, size = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 256, 100000);
    printf("%d blocks\n", blocks);
    cudaOccupancyMaxPotentialBlockSize(&blocks, &size, add);
    printf("%d blocks of %d\n", blocks, size);
    cudaDeviceProp p = {};
    cudaGetDeviceProperties(&p, 0);
    printf("%d SMs, %d.%d, %zu, %zu\n", p.multiProcessorCount, p.major, p.minor, p.sharedMemPerBlockOptin, p.sharedMemPerMultiprocessor);

    cudaStream_t s = nullptr, other = nullptr;
    cudaEvent_t fork = nullptr, join = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamCreate(&s);
    cudaStreamCreate(&other);
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    cudaMemset(a, 0, 128);
    say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 32, 0, s>>>(a, 1);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(other, fork, 0);
    add<<<1, 32, 0, other>>>(a, 10);
    cudaLaunchHostFunc(other, host_function, &called);
    cudaEventRecord(join, other);
    cudaStreamWaitEvent(s, join, 0);
    say("end", cudaStreamEndCapture(s, &graph));
    cudaMemcpy(host, a, 128, cudaMemcpyDeviceToHost);
    printf("captured %d\n", host[5]);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, s);
    cudaGraphLaunch(exec, s);
    cudaMemcpyAsync(host, a, 128, cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    printf("replayed %d, called %d\n", host[5], called);

    cudaGraphCreate(&graph, 0);
    cudaGraphNode_t node = nullptr, copy = nullptr;
    int by = 100;
    void *args[] = {&a, &by};
    cudaKernelNodeParams params = {(void *)add, dim3(1), dim3(32), 0, args, nullptr};
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
    cudaGraphAddMemcpyNode1D(&copy, graph, &node, 1, host, a, 128, cudaMemcpyDeviceToHost);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, s);
    by = 1000;
    say("changed", cudaGraphExecKernelNodeSetParams(exec, node, &params));
    cudaGraphLaunch(exec, s);
    printf("built %d\n", host[5]);
    float ms = 0;
    cudaEventRecord(fork);
    cudaEventRecord(join);
    cudaEventElapsedTime(&ms, fork, join);
    printf("time goes on: %d\n", ms > 0);
    void *value = nullptr;
    say("refused", cudaGetDriverEntryPointByVersion("cuInit", &value, 13000, 0, nullptr));
}

static void faults() {
    int *a;
    cudaMalloc(&a, 400);
    just_beyond<<<1, 4>>>(a);
    say("in the same page", cudaDeviceSynchronize());
    beyond<<<1, 1>>>(a);
    say("after what was not computed", cudaDeviceSynchronize());
}

static void fault() {
    int *a;
    cudaMalloc(&a, 400);
    beyond<<<1, 1>>>(a);
    say("launch", cudaGetLastError());
    say("far beyond", cudaDeviceSynchronize());
    say("it stays", cudaMalloc(&a, 4));
    add<<<1, 1>>>(a, 1);
    say("launch", cudaGetLastError());
}

static void budget(int n) {
    int *a, host = 0;
    cudaMalloc(&a, 4);
    cudaMemset(a, 0, 4);
    add<<<1, 1>>>(a, 7);
    spin<<<1, 32>>>(a, n);
    add<<<2, 1>>>(a, 7);
    cudaMemcpy(&host, a, 4, cudaMemcpyDeviceToHost);
    add<<<3, 1>>>(a, 7);
}

// Only launches on other memory cost something: of each loop two or three.
static void repeats() {
    const int n = 10000;
    int *a, *b, *seen, host = 5;
    cudaMalloc(&a, 128);
    cudaMalloc(&b, 128);
    cudaMallocManaged(&seen, 128);
    auto read = [&](const char *what, int *from, int expected) {
        cudaMemcpy(&host, from, 4, cudaMemcpyDeviceToHost);
        printf("%s: %s\n", what, host == expected ? "right" : "wrong");
    };
    for (int i = 0; i < 100; ++i) mix<<<1, 32>>>(a, b, n);
    read("the same", b, mixed(0, n));
    for (int i = 0; i < 100; ++i) {
        cudaMemset(b, i % 2, 128);
        mix<<<1, 32>>>(b, a, n);
        mix<<<1, 32>>>(a, b, n);
    }
    read("by turns", b, mixed(mixed(0x01010101, n), n));
    int expected = host;
    for (int i = 0; i < 5; ++i) {
        mix<<<1, 32>>>(b, b, n);
        expected = mixed(expected, n);
    }
    read("in place", b, expected);
    for (int i = 0; i < 5; ++i) {
        seen[0] = i;
        mix<<<1, 32>>>(seen, b, n);
        cudaDeviceSynchronize();
    }
    read("written by the host", b, mixed(4, n));
}

// Arrays of 4 by 3 texels, each 10 y + x.
static cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalised) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = mode, how.filterMode = filter;
    how.readMode = cudaReadModeElementType, how.normalizedCoords = normalised, how.borderColor[0] = -1;
    cudaTextureObject_t made = 0;
    say("texture", cudaCreateTextureObject(&made, &resource, &how, nullptr));
    return made;
}

template <class T> static void show(const char *what, const T *from, int n) {
    T host[64];
    cudaMemcpy(host, from, n * sizeof(T), cudaMemcpyDeviceToHost);
    printf("%s:", what);
    for (int i = 0; i < n; ++i) printf(" %g", (double)host[i]);
    printf("\n");
}

static void textures() {
    float host[12], *to;
    for (int i = 0; i < 12; ++i) host[i] = 10 * (i / 4) + i % 4;
    cudaMalloc(&to, 1024);
    auto floats = cudaCreateChannelDesc<float>();
    cudaArray_t plane, block, layers;
    cudaMallocArray(&plane, &floats, 4, 3, cudaArraySurfaceLoadStore);
    cudaMemcpy2DToArray(plane, 0, 0, host, 16, 16, 3, cudaMemcpyHostToDevice);
    auto look = [&](const char *what, cudaTextureObject_t texture, const float2 *at, int n) {
        float2 *places;
        cudaMalloc(&places, 256);
        cudaMemcpy(places, at, n * sizeof(float2), cudaMemcpyHostToDevice);
        sampled<<<1, n>>>(texture, places, to);
        show(what, to, n);
    };
    // In place, on the line between two, and beyond the borders.
    const float2 places[] = {{2.5f, 1.5f}, {2.0f, 1.0f}, {-3, 1.5f}, {9, 9}};
    look("nearest", texture_of(plane, cudaAddressModeClamp, cudaFilterModePoint, false), places, 4);
    look("border", texture_of(plane, cudaAddressModeBorder, cudaFilterModePoint, false), places, 4);
    // A quarter between two columns; corners, of which a part lies outside.
    const float2 between[] = {{2.0f, 1.0f}, {1.75f, 1.5f}, {0, 0}, {2.001f, 1.5f}};
    look("linear", texture_of(plane, cudaAddressModeClamp, cudaFilterModeLinear, false), between, 4);
    look("linear border", texture_of(plane, cudaAddressModeBorder, cudaFilterModeLinear, false), between, 3);
    const float2 turns[] = {{0.375f, 0.5f}, {1.375f, -0.5f}, {-0.125f, 1.5f}, {1, 1}};
    look("wrap", texture_of(plane, cudaAddressModeWrap, cudaFilterModePoint, true), turns, 4);
    look("mirror", texture_of(plane, cudaAddressModeMirror, cudaFilterModePoint, true), turns, 4);
    look("linear wrap", texture_of(plane, cudaAddressModeWrap, cudaFilterModeLinear, true), turns, 4);

    cudaMalloc3DArray(&block, &floats, make_cudaExtent(2, 3, 2), 0);
    cudaMalloc3DArray(&layers, &floats, make_cudaExtent(2, 3, 2), cudaArrayLayered);
    for (cudaArray_t array : {block, layers}) {
        cudaMemcpy3DParms copy = {};
        copy.srcPtr = make_cudaPitchedPtr(host, 8, 2, 3), copy.dstArray = array;
        copy.extent = make_cudaExtent(2, 3, 2), copy.kind = cudaMemcpyHostToDevice;
        cudaMemcpy3D(&copy);
    }
    sampled3<<<1, 3>>>(texture_of(block, cudaAddressModeClamp, cudaFilterModeLinear, false), to);
    show("block", to, 3);
    layered<<<1, 3>>>(texture_of(layers, cudaAddressModeClamp, cudaFilterModePoint, false), to);
    show("layers", to, 3);

    // Memory with a pitch, read as numbers up to 1; and linear memory, zero outside.
    unsigned char bytes[] = {255, 0, 51, 102, 1, 2, 3, 4};
    int integers[] = {5, -6, 7}, *linear;
    void *pitched;
    size_t pitch;
    cudaMallocPitch(&pitched, &pitch, 8, 1);
    cudaMemcpy(pitched, bytes, 8, cudaMemcpyHostToDevice);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D, resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.pitch2D.width = 2, resource.res.pitch2D.height = 1, resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeNormalizedFloat;
    cudaTextureObject_t texture;
    say("texture", cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    bytes4<<<1, 2>>>(texture, (float4 *)to);
    show("bytes", to, 8);
    cudaMalloc(&linear, 12);
    cudaMemcpy(linear, integers, 12, cudaMemcpyHostToDevice);
    resource = {}, how = {};
    resource.resType = cudaResourceTypeLinear, resource.res.linear.devPtr = linear;
    resource.res.linear.desc = cudaCreateChannelDesc<int>(), resource.res.linear.sizeInBytes = 12;
    say("texture", cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    fetched<<<1, 6>>>(texture, (int *)to);
    show("linear memory", (int *)to, 6);

    resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = plane;
    cudaSurfaceObject_t surface;
    say("surface", cudaCreateSurfaceObject(&surface, &resource));
    surfaces<<<1, 6>>>(surface, to);
    show("clamped", to, 6);
    cudaMemcpy2DFromArray(host, 16, plane, 0, 0, 16, 3, cudaMemcpyDeviceToHost);
    printf("written: %g %g %g %g, %g\n", host[0], host[1], host[2], host[3], host[4]);
    say("destroy", cudaDestroyTextureObject(texture));
}

// The first must run, the second must not: a product costs more than one instruction.
static void matrices() {
    float *to;
    cudaMalloc(&to, 1024);
    multiply<<<1, 32>>>(to, 1);
    multiply<<<1, 32>>>(to, 1000);
}

static void cooperate() {
    int *parts, *sum, host = 0;
    cudaMalloc(&parts, 4 * 132);
    cudaMalloc(&sum, 4);
    cudaMemset(sum, 0, 4);
    void *args[] = {&parts, &sum};
    for (int blocks : {132, 7}) {
        say("together", cudaLaunchCooperativeKernel((void *)together, dim3(blocks), dim3(64), args, 0, 0));
        cudaMemcpy(&host, sum, 4, cudaMemcpyDeviceToHost);
        printf("sum %d\n", host);
    }
    together<<<1, 64>>>(parts, sum);
}

static void memory() {
    size_t room = 0, all = 0;
    void *a, *b;
    cudaMemGetInfo(&room, &all);
    printf("%zu\n", all);
    say("most", cudaMalloc(&a, room - 1024));
    say("one more than the rest", cudaMalloc(&b, 1025));
    say("managed", cudaMallocManaged(&b, 1025));
    say("pinned", cudaMallocHost(&b, 1025));
    say("the rest", cudaMalloc(&b, 1024));
    cudaFree(a);
    say("again", cudaMalloc(&a, room - 1024));
}

static void rounds() {
    float *a, host = 1;
    cudaMalloc(&a, 128);
    soften<<<1, 32>>>(a);
    soften<<<2, 32>>>(a);
    cudaMemcpy(&host, a, 4, cudaMemcpyDeviceToHost);
    soften<<<3, 32>>>(a);
    cudaMemcpy(&host, a, 4, cudaMemcpyDeviceToHost);
}

static void waits() {
    float *residual, host = 1;
    cudaTextureObject_t texture = 0;
    cudaMalloc(&residual, 128);
    cudaMemcpy(residual, &host, 4, cudaMemcpyHostToDevice);
    textured<<<1, 32>>>(texture, residual);
    do {
        converge<<<1, 1>>>(residual);
        cudaMemcpy(&host, residual, 4, cudaMemcpyDeviceToHost);
    } while (host > 1e-3f);
    printf("it cannot come here\n");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "modules";
    if (!strcmp(what, "modules")) modules();
    if (!strcmp(what, "launches")) launches();
    if (!strcmp(what, "faults")) faults();
    if (!strcmp(what, "fault")) fault();
    if (!strcmp(what, "budget")) budget(atoi(argv[2]));
    if (!strcmp(what, "repeats")) repeats();
    if (!strcmp(what, "textures")) textures();
    if (!strcmp(what, "matrices")) matrices();
    if (!strcmp(what, "cooperate")) cooperate();
    if (!strcmp(what, "memory")) memory();
    if (!strcmp(what, "rounds")) rounds();
    if (!strcmp(what, "waits")) waits();
    return 0;
}
