// What the library adds to a launch: batches through its function and through the driver's own, in turns within
// one process. The driver's own is found by the C library's `dlsym`, which is found by version; the other one by
// name, which with the library preloaded is the library's. Without it both are the same.
#include <algorithm>
#include <chrono>
#include <cuda.h>
#include <dlfcn.h>
#include "common.h"

__global__ void empty() {}

typedef CUresult Launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
typedef void *Find(void *, const char *);

int main() {
    const int batches = 401, launches = 1000;
    OK(cudaFree(nullptr));
    cudaFunction_t function;
    OK(cudaGetFuncBySymbol(&function, (const void *)empty));
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);
    Find *find = (Find *)dlvsym(libc, "dlsym", "GLIBC_2.34");
    if (!driver || !find) {
        fprintf(stderr, "no driver, or a C library before 2.34\n");
        return 1;
    }
    Launch *by_name = (Launch *)dlsym(driver, "cuLaunchKernel"), *own = (Launch *)find(driver, "cuLaunchKernel");
    std::vector<double> ns[2], more;
    for (int b = 0; b < batches; b++) {
        double took[2];
        for (int turn = 0; turn < 2; turn++) {
            int which = (b + turn) % 2;
            Launch *launch = which ? by_name : own;
            OK(cudaDeviceSynchronize());
            auto begin = std::chrono::steady_clock::now();
            for (int i = 0; i < launches; i++)
                if (launch((CUfunction)function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr)) return 2;
            auto end = std::chrono::steady_clock::now();
            took[which] = std::chrono::duration<double, std::nano>(end - begin).count() / launches;
        }
        for (int which = 0; which < 2; which++) ns[which].push_back(took[which]);
        more.push_back(took[1] - took[0]);
    }
    OK(cudaDeviceSynchronize());
    for (auto *v : {&ns[0], &ns[1], &more}) std::sort(v->begin(), v->end());
    // The order statistics that enclose a median of 401 with 95% certainty (binomial distribution).
    const int middle = batches / 2, around = 20;
    fprintf(stderr, "wrapped %d own_ns %.1f by_name_ns %.1f more_ns %.1f from %.1f to %.1f\n", by_name != own, ns[0][middle],
            ns[1][middle], more[middle], more[middle - around], more[middle + around]);
    return 0;
}
