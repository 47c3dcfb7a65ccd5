/* A program that is done with the driver at times.
 *
 * Loads the cubin of the first argument and launches its kernel. Then it closes the driver until it is gone, opens it, does
 * so once more and says whether it lies where it lay (`close`), or has a child launch and end (`fork`).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *H;

static char image[1 << 20];
static float data[1000];
static uint64_t memory;
static H driver, function;

static void launch(void) {
    unsigned (*launch)() = dlsym(driver, "cuLaunchKernel"), (*out)() = dlsym(driver, "cuMemcpyDtoH_v2");
    unsigned n = 1000;
    void *values[] = {&memory, &n};
    unsigned code = launch(function, 4, 1, 1, 256, 1, 1, 0, (H)0, values, (H)0);
    out(data, memory, (size_t)sizeof data);
    printf("%u %g\n", code, data[7]);
    fflush(stdout);
}

static size_t lies(void) {
    struct link_map *map = 0;
    dlinfo(driver, RTLD_DI_LINKMAP, &map);
    return map->l_addr;
}

static void begin(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned (*init)() = dlsym(driver, "cuInit"), (*load)() = dlsym(driver, "cuModuleLoadData");
    unsigned (*get)() = dlsym(driver, "cuModuleGetFunction"), (*make)() = dlsym(driver, "cuMemAlloc_v2");
    unsigned (*in)() = dlsym(driver, "cuMemcpyHtoD_v2");
    H module = 0;
    memset(data, 0, sizeof data);
    init(0);
    make(&memory, (size_t)sizeof data);
    in(memory, data, (size_t)sizeof data);
    load(&module, image);
    get(&function, module, "scale");
    launch();
}

int main(int count, char **words) {
    FILE *file = fopen(words[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    begin();
    if (!strcmp(words[2], "close")) {
        int times = 0;
        size_t place = lies();
        while (times < 9 && !dlclose(driver) && dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) times += 1;
        printf("closed %d\n", times);
        begin();
        printf("%s\n", lies() == place ? "in its place" : "moved");
    } else {
        int status = 0;
        if (!fork()) {
            launch();
            exit(5);
        }
        wait(&status);
        printf("child %x\n", status);
    }
    return 3;
}
