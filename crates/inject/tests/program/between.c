/* A tool between program and driver (-DTOOL: a library that is preloaded), and a program that does what few do:
 *   between CUBIN handle | global | fifo | context | nowhere PIPE KERNEL
 * The tool finds the driver behind itself, or where it opens it (BETWEEN=open). Launches by what is found first of all that is
 * loaded; a module from a pipe; kernels counted when another context is gone; parameters that lie nowhere, in another context.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned (*F)();

#ifdef TOOL
unsigned cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, void *t, void **p, void **x) {
    static F next;
    const char *way = getenv("BETWEEN");
    if (!next) next = way ? (F)dlsym(dlopen(way, RTLD_NOW), "cuLaunchKernel") : (F)dlsym(RTLD_NEXT, "cuLaunchKernel");
    puts("tool");
    return next(f, a, b, c, d, e, g, s, t, p, x);
}
#else
static char image[1 << 22];
static size_t bytes;

static void *feed(void *name) {
    int file = open(name, O_WRONLY);
    size_t done = 0;
    while (done < bytes) {
        ssize_t one = write(file, image + done, bytes - done);
        if (one <= 0) break;
        done += one;
    }
    close(file);
    return 0;
}

int main(int count, char **words) {
    FILE *file = fopen(words[1], "rb");
    if (!file || !(bytes = fread(image, 1, sizeof image, file))) return 2;
    setvbuf(stdout, 0, _IONBF, 0);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *module = 0, *function = 0, *own = 0, *other = 0;
#define ASK(name) F name = (F)dlsym(driver, #name)
    ASK(cuInit); ASK(cuModuleLoad); ASK(cuModuleLoadData); ASK(cuModuleGetFunction); ASK(cuMemAlloc_v2); ASK(cuMemcpyHtoD_v2);
    ASK(cuMemcpyDtoH_v2); ASK(cuCtxCreate_v2); ASK(cuCtxDestroy_v2); ASK(cuCtxSetCurrent); ASK(cuCtxGetCurrent); ASK(cuModuleGetFunctionCount);
    F launch = (F)dlsym(strcmp(words[2], "global") ? driver : RTLD_DEFAULT, "cuLaunchKernel");
    uint64_t memory = 0;
    unsigned n = 1000, kernels = 0;
    float values[1000] = {1, 2, 3};
    cuInit(0);
    if (!strcmp(words[2], "fifo")) {
        pthread_t feeder;
        mkfifo(words[3], 0600);
        pthread_create(&feeder, 0, feed, words[3]);
        printf("loaded %u\n", cuModuleLoad(&module, words[3]));
        pthread_join(feeder, 0);
    } else
        cuModuleLoadData(&module, image);
    cuModuleGetFunction(&function, module, words[4]);
    cuMemAlloc_v2(&memory, sizeof values);
    cuMemcpyHtoD_v2(memory, values, sizeof values);
    cuCtxGetCurrent(&own);
    void *parameters[] = {&memory, &n}, *nowhere[] = {(void *)16, (void *)32};
    if (!strcmp(words[2], "context")) {
        printf("other %u", cuCtxCreate_v2(&other, 0, 0));
        printf(" gone %u\n", cuCtxDestroy_v2(other));
        cuCtxSetCurrent(own);
        printf("%u", cuModuleGetFunctionCount(&kernels, module));
        printf(" kernels %u\n", kernels);
    }
    if (!strcmp(words[2], "nowhere")) {
        cuCtxCreate_v2(&other, 0, 0);
        printf("%u\n", launch(function, 4, 1, 1, 256, 1, 1, 0, 0, nowhere, 0));
        printf("%u\n", launch(function, 4, 1, 1, 256, 1, 1, 0, 0, (void **)8, 0));
        cuCtxSetCurrent(own);
    }
    for (int i = 0; i < 3; i++) printf("%u\n", launch(function, 4, 1, 1, 256, 1, 1, 0, (void *)0, parameters, (void *)0));
    cuMemcpyDtoH_v2(values, memory, sizeof values);
    printf("%g %g %g\n", values[0], values[1], values[2]);
    return 4;
}
#endif
