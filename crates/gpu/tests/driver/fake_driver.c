/* A CUDA driver that computes on the host, for testing how the real one is called.
 *
 * It provides the entry points that crates/gpu uses, with the signatures of cuda.h. Device memory
 * is host memory. Kernels are not executed: each of ours does what the first line of its PTX says.
 * Time is a counter that launches advance. After a sticky fault every call fails, and after a hang
 * freeing memory never returns, as with the real driver.
 *
 * FAKE_DRIVER_INIT=N makes cuInit fail with N; FAKE_DRIVER_VERSION=N is what cuDriverGetVersion
 * says; FAKE_DRIVER_DEVICES=N is how many devices there are.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t Pointer;

enum {
    INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_PTX = 218,
    NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, MISALIGNED = 716, LAUNCH_FAILED = 719
};

struct function { struct module *module; const char *name; size_t count; size_t sizes[4]; };
struct module { char *text; float c[2]; unsigned launches, count; struct function functions[2]; };
struct config { unsigned grid[3], block[3], smem; void *stream, *attributes; unsigned count; };

static unsigned sticky;
static int hung;
static double nanoseconds;
static uint64_t dice = 88172645463325252u;

static void broken(const char *why) { fprintf(stderr, "fake driver: %s\n", why); abort(); }

static unsigned from_environment(const char *name, unsigned otherwise) {
    const char *text = getenv(name);
    return text ? (unsigned)atoi(text) : otherwise;
}

unsigned cuInit(unsigned flags) { return from_environment("FAKE_DRIVER_INIT", 0); }
unsigned cuDriverGetVersion(int *version) {
    *version = from_environment("FAKE_DRIVER_VERSION", 13000);
    return 0;
}
unsigned cuGetErrorName(unsigned code, const char **text) { *text = "NAME"; return 0; }
unsigned cuGetErrorString(unsigned code, const char **text) { *text = "words"; return 0; }

unsigned cuDeviceGetCount(int *count) {
    *count = from_environment("FAKE_DRIVER_DEVICES", 1);
    return 0;
}
unsigned cuDeviceGet(int *device, int ordinal) {
    *device = 0;
    return ordinal < (int)from_environment("FAKE_DRIVER_DEVICES", 1) ? 0 : INVALID_DEVICE;
}
unsigned cuDeviceGetName(char *text, int size, int device) {
    snprintf(text, size, "Fake GPU");
    return 0;
}
unsigned cuDeviceGetPCIBusId(char *text, int size, int device) {
    snprintf(text, size, "ffff:ff:1f.7");
    return 0;
}
unsigned cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1u << 30; return 0; }
unsigned cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 16: *value = 4; break;        /* multiprocessors */
    case 38: *value = 1 << 20; break;  /* L2 bytes */
    case 75: *value = 9; break;        /* major */
    case 76: *value = 0; break;        /* minor */
    case 97: *value = 232448; break;   /* shared memory of a block, opted in */
    default: *value = 65536;
    }
    return 0;
}

unsigned cuDevicePrimaryCtxRetain(void **context, int device) { *context = &sticky; return 0; }
unsigned cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
unsigned cuCtxSetCurrent(void *context) { return context == &sticky ? 0 : INVALID_VALUE; }
unsigned cuStreamCreate(void **stream, unsigned flags) { *stream = &hung; return 0; }
unsigned cuStreamDestroy_v2(void *stream) { return 0; }
unsigned cuStreamQuery(void *stream) { return hung ? NOT_READY : sticky; }

unsigned cuEventCreate(void **event, unsigned flags) {
    *event = calloc(1, sizeof(double));
    return sticky;
}
unsigned cuEventDestroy_v2(void *event) { free(event); return sticky; }
unsigned cuEventRecord(void *event, void *stream) { *(double *)event = nanoseconds; return sticky; }
unsigned cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
    *milliseconds = (*(double *)end - *(double *)begin) * 1e-6;
    return sticky;
}

unsigned cuMemAlloc_v2(Pointer *address, size_t bytes) {
    if (bytes == 0) return INVALID_VALUE;
    *address = (Pointer)aligned_alloc(512, (bytes + 511) / 512 * 512);
    return *address ? sticky : OUT_OF_MEMORY;
}
unsigned cuMemFree_v2(Pointer address) {
    while (hung) pause();
    free((void *)address);
    return sticky;
}
unsigned cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) {
    memcpy((void *)to, from, bytes);
    return sticky;
}
unsigned cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) {
    memcpy(to, (void *)from, bytes);
    return sticky;
}
unsigned cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void *stream) {
    memcpy((void *)to, (void *)from, bytes);
    return sticky;
}
unsigned cuMemsetD8Async(Pointer to, unsigned char byte, size_t bytes, void *stream) {
    memset((void *)to, byte, bytes);
    return sticky;
}

unsigned cuModuleLoadDataEx(struct module **out, const char *image, unsigned count, int *options,
                            void **values) {
    struct module *module = calloc(1, sizeof *module);
    if (sticky) return sticky;
    if (strstr(image, "unknown instruction")) {
        if (count != 2 || options[0] != 5 || options[1] != 6) broken("unexpected JIT options");
        snprintf(values[0], (size_t)values[1], "line 36: no such instruction");
        return INVALID_PTX;
    }
    module->text = strdup(image);
    if (strstr(image, "ww_flush")) {
        struct function flush = {module, "ww_flush", 3, {8, 8, 8}};
        struct function diff = {module, "ww_diff", 4, {8, 8, 8, 8}};
        module->functions[0] = flush;
        module->functions[1] = diff;
        module->count = 2;
    } else {
        struct function affine = {module, "affine", 3, {8, 8, 4, 8}};
        if (strstr(image, "one parameter more")) affine.count = 4;
        module->functions[0] = affine;
        module->count = 1;
    }
    *out = module;
    return 0;
}
unsigned cuModuleUnload(struct module *module) {
    free(module->text);
    free(module);
    return sticky;
}
unsigned cuModuleGetFunction(struct function **out, struct module *module, const char *name) {
    for (unsigned i = 0; i < module->count; i++)
        if (!strcmp(name, module->functions[i].name)) {
            *out = &module->functions[i];
            return sticky;
        }
    return NOT_FOUND;
}
unsigned cuModuleGetFunctionCount(unsigned *count, struct module *module) {
    *count = module->count;
    return 0;
}
unsigned cuModuleEnumerateFunctions(struct function **out, unsigned count, struct module *module) {
    for (unsigned i = 0; i < count; i++) out[i] = &module->functions[i];
    return 0;
}
unsigned cuModuleGetGlobal_v2(Pointer *address, size_t *bytes, struct module *module,
                              const char *name) {
    if (strcmp(name, "c")) return NOT_FOUND;
    *address = (Pointer)module->c;
    *bytes = sizeof module->c;
    return 0;
}

unsigned cuFuncGetName(const char **name, struct function *function) {
    *name = function->name;
    return 0;
}
unsigned cuFuncGetAttribute(int *value, int attribute, struct function *function) {
    *value = attribute == 0 ? 1024 : attribute == 4 ? 18 : 0;
    return 0;
}
unsigned cuFuncSetAttribute(struct function *function, int attribute, int value) {
    return attribute == 8 && value > 232448 ? INVALID_VALUE : 0;
}
unsigned cuFuncGetParamInfo(struct function *function, size_t index, size_t *offset, size_t *size) {
    if (index >= function->count) return INVALID_VALUE;
    *offset = 8 * index;
    *size = function->sizes[index];
    return 0;
}
unsigned cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct function *function,
                                                     int threads, size_t smem) {
    *blocks = 2048 / threads;
    return 0;
}

static void flush(void **params) {
    const uint64_t *words = *(void **)params[0];
    for (uint64_t i = 0; i < *(uint64_t *)params[1]; i += 997)
        if (words[2 * i] | words[2 * i + 1]) broken("the flushed chunks are not zero");
    nanoseconds += 50e3;
}

static void diff(void **params) {
    const unsigned char *a = *(void **)params[0], *b = *(void **)params[1];
    uint64_t *result = *(void **)params[3];
    if (result[0] != 0 || result[1] != UINT64_MAX) broken("the result is not initialised");
    for (uint64_t i = *(uint64_t *)params[2]; i-- > 0;)
        if (a[i] != b[i]) {
            result[0]++;
            result[1] = i;
        }
}

static unsigned affine(struct module *module, void **params) {
    float *x = *(float **)params[0], *y = *(float **)params[1];
    unsigned n = *(unsigned *)params[2];
    const char *says = module->text;
    module->launches++;
    for (unsigned i = 0; i < n; i++) {
        if (strstr(says, "last element unwritten") && i == n - 1) continue;
        y[i] = module->c[0] * x[i] + module->c[1];
        if (strstr(says, "Slightly off")) y[i] += 0x1p-22f;
    }
    if (strstr(says, "index 777")) y[777] += 0.5f;
    if (strstr(says, "past the end of y")) y[n] = 1;
    if (strstr(says, "just before y")) ((char *)y)[-1] = 90;
    if (strstr(says, "changes an element of its input")) x[5] = y[5];
    if (strstr(says, "nobody has allocated")) sticky = ILLEGAL_ADDRESS;
    if (strstr(says, "no multiple of four")) sticky = MISALIGNED;
    if (strstr(says, "// Traps")) sticky = LAUNCH_FAILED;
    if (strstr(says, "Never ends")) hung = 1;
    if (strstr(says, "from the fourth on") && module->launches > 3) sticky = ILLEGAL_ADDRESS;
    dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
    nanoseconds += (strstr(says, "four times") ? 100e3 : strstr(says, "sixteen") ? 200e3 : 60e3)
                   * (1 + 0.01 * (dice >> 40) / (1 << 24));
    return 0;
}

unsigned cuLaunchKernelEx(struct config *config, struct function *function, void **params,
                          void **extra) {
    if (sticky) return sticky;
    if (extra) broken("unexpected launch parameters");
    if (config->block[0] * config->grid[0] == 0) return INVALID_VALUE;
    if (!strcmp(function->name, "ww_flush")) return flush(params), 0;
    if (!strcmp(function->name, "ww_diff")) return diff(params), 0;
    return affine(function->module, params);
}
