// Threads (four, or as many as the first argument says), each with streams of its own and with the per-thread default
// stream. With one, no kernel runs beside another.
#include <thread>
#include "common.h"

__global__ void mix(float *x, int n, int rounds, float seed) {
    for (int i = AT; i < n; i += STEP) {
        float v[32];
        for (int k = 0; k < 32; k++) v[k] = x[i] + seed * k;
        for (int r = 0; r < rounds; r++) {
#pragma unroll
            for (int k = 0; k < 32; k++) v[k] = v[k] * 0.998f + v[(k + 5) % 32] * 1e-3f;
        }
        float s = 0;
        for (int k = 0; k < 32; k++) s += v[k];
        x[i] = s / 32;
    }
}
__global__ void shift(float *y, const float *x, int n, int by) { for (int i = AT; i < n; i += STEP) y[i] = x[(i + by) % n]; }

static void work(int id, float *x, float *y, int n) {
    cudaStream_t streams[2];
    for (auto &s : streams) OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int step = 0; step < 20; step++) {
        mix<<<256, 128, 0, streams[0]>>>(x, n, 20, 0.01f * id);
        OK(cudaStreamSynchronize(streams[0]));
        shift<<<256, 256, 0, streams[1]>>>(y, x, n, id + step);
        OK(cudaStreamSynchronize(streams[1]));
        shift<<<256, 256>>>(x, y, n, 3);
        OK(cudaStreamSynchronize(0));
    }
}

int main(int argc, char **argv) {
    // Large enough that `shift` takes more than events and launches differ by.
    const int n = 1 << 23, threads = argc > 1 ? atoi(argv[1]) : 4;
    std::vector<float *> x(threads), y(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        OK(cudaMalloc(&x[t], n * 4)); OK(cudaMalloc(&y[t], n * 4));
        OK(cudaMemset(x[t], 0, n * 4));
    }
    // Code is loaded at its first launch, that of winners too.
    mix<<<256, 128>>>(x[0], 0, 0, 0);
    shift<<<256, 256>>>(y[0], x[0], 0, 0);
    Window window;
    for (int t = 0; t < threads; t++) all.emplace_back(work, t, x[t], y[t], n);
    for (auto &t : all) t.join();
    window.end();
    for (int t = 0; t < threads; t++) digest("x", x[t], n * 4);
    return 0;
}
