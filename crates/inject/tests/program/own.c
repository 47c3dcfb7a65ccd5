/* A program with a function of its own, OWN, under a name that the C library has, too: what links it exports it there.
 *
 * Loads the cubin of the first argument, launches its kernel, and prints a result and how often the function was called.
 */
#include <stdint.h>
#include <stddef.h>

typedef void *H;
extern void *dlopen(const char *, int), *dlsym(void *, const char *);
/* Headers would say what OWN is to be. */
extern void *fopen(const char *, const char *);
extern size_t fread(void *, size_t, size_t, void *);
extern int printf(const char *, ...);

static int calls;
#ifdef OWN
int OWN(void) { return ++calls; }
#endif

static char image[1 << 20];
static float data[1000];

int main(int count, char **words) {
    void *driver = dlopen("libcuda.so.1", 2);
    unsigned (*init)() = dlsym(driver, "cuInit"), (*load)() = dlsym(driver, "cuModuleLoadData");
    unsigned (*get)() = dlsym(driver, "cuModuleGetFunction"), (*launch)() = dlsym(driver, "cuLaunchKernel");
    unsigned (*make)() = dlsym(driver, "cuMemAlloc_v2"), (*out)() = dlsym(driver, "cuMemcpyDtoH_v2");
    unsigned (*in)() = dlsym(driver, "cuMemcpyHtoD_v2");
    void *file = fopen(words[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    uint64_t memory = 0;
    unsigned n = 1000;
    H module = 0, function = 0;
    void *values[] = {&memory, &n};
    init(0);
    make(&memory, (size_t)sizeof data);
    in(memory, data, (size_t)sizeof data);
    load(&module, image);
    get(&function, module, "scale");
    unsigned code = launch(function, 4, 1, 1, 256, 1, 1, 0, (H)0, values, (H)0);
    out(data, memory, (size_t)sizeof data);
    printf("%u %g %d\n", code, data[7], calls);
    return 3;
}
