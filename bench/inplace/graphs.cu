// Graphs: one captured from a stream, one built node by node; the shared runtime. The same kernels are
// launched without a graph as well.
#include "common.h"

__global__ void blend(float *y, const float *x, int n, float t) { for (int i = AT; i < n; i += STEP) y[i] = y[i] * (1 - t) + x[i] * t; }
__global__ void wave(float *next, const float *now, float *before, int side) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= side - 1 || j >= side - 1) return;
    int at = j * side + i;
    next[at] = 2 * now[at] - before[at] + 0.2f * (now[at - 1] + now[at + 1] + now[at - side] + now[at + side] - 4 * now[at]);
}
__global__ void heavy(float *x, int n, int rounds) {
    for (int i = AT; i < n; i += STEP) {
        float v[40];
        for (int k = 0; k < 40; k++) v[k] = x[i] * (k + 1);
        for (int r = 0; r < rounds; r++) {
#pragma unroll
            for (int k = 0; k < 40; k++) v[k] = v[k] * 0.99f + v[(k + 11) % 40] * 1e-3f;
        }
        float s = 0;
        for (int k = 0; k < 40; k++) s += v[k];
        x[i] = s * 0.01f;
    }
}

int main() {
    const int side = 1024, n = side * side;
    float *a, *b, *c;
    OK(cudaMalloc(&a, n * 4)); OK(cudaMalloc(&b, n * 4)); OK(cudaMalloc(&c, n * 4));
    std::vector<float> host(n);
    for (int i = 0; i < n; i++) host[i] = (i % 257) * 0.01f;
    for (float *p : {a, b, c}) OK(cudaMemcpy(p, host.data(), n * 4, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    dim3 grid(side / 32, side / 8), block(32, 8);
    for (int i = 0; i < 10; i++) {
        wave<<<grid, block, 0, stream>>>(c, b, a, side);
        heavy<<<512, 128, 0, stream>>>(a, n, 10);
    }
    cudaGraph_t captured, built;
    cudaGraphExec_t first, second;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 3; i++) {
        wave<<<grid, block, 0, stream>>>(a, c, b, side);
        blend<<<512, 256, 0, stream>>>(b, a, n, 0.3f);
        heavy<<<512, 128, 0, stream>>>(c, n, 10);
    }
    OK(cudaStreamEndCapture(stream, &captured));
    OK(cudaGraphInstantiate(&first, captured, 0));
    OK(cudaGraphCreate(&built, 0));
    cudaGraphNode_t last = nullptr;
    int count = n, rounds = 10;
    float t = 0.1f;
    void *heavy_args[] = {&a, &count, &rounds}, *blend_args[] = {&c, &a, &count, &t};
    for (int i = 0; i < 4; i++) {
        cudaKernelNodeParams p = {};
        p.func = i % 2 ? (void *)blend : (void *)heavy;
        p.gridDim = dim3(512);
        p.blockDim = dim3(i % 2 ? 256 : 128);
        p.kernelParams = i % 2 ? blend_args : heavy_args;
        cudaGraphNode_t node;
        OK(cudaGraphAddKernelNode(&node, built, i ? &last : nullptr, i ? 1 : 0, &p));
        last = node;
    }
    OK(cudaGraphInstantiate(&second, built, 0));
    Window window;
    for (int i = 0; i < 100; i++) {
        OK(cudaGraphLaunch(first, stream));
        OK(cudaGraphLaunch(second, stream));
    }
    window.end();
    digest("a", a, n * 4); digest("b", b, n * 4); digest("c", c, n * 4);
    return 0;
}
