/* A CUDA driver that computes on the host, for testing the library that programs load.
 *
 * Modules are real cubins: the names of their kernels are taken from the symbol table. A kernel is not executed:
 * it does what its name says ("scale": p[i] = 2 p[i] + 1 for n floats). How an image behaves beyond that is
 * decided by what occurs in it: fake_fast or the number 0x4ffa7fa5 (half the time), the number 0x4ffa7fa6 (half the
 * time after memory was copied, else twice: fast in a trial, slow in the program), fake_slow, fake_wrong (other results), fake_rounds (one that differs in its last bits), fake_faults (every later call fails),
 * fake_refused (launches are refused), fake_unmade (graphs with it are not made executable), fake_unstarted (they are, and not launched), fake_hangs. The numbers count in a kernel's own code, the names in the whole image. Modules have variables; one called fake_counts counts the launches
 * of all modules, as if kernels found its address in memory.
 *
 * "weigh" works on variables of its own module: p[i] = p[i] * weights[i % 8] + bias, and total counts launches. With
 * 0x4ffa7fa7 in its code its results are others, with 0x4ffa7fa8 its count. A module has memory of its own for its
 * variables, a library one in each context; functions of a module are launched in its context alone.
 *
 * A launch's cluster is what it states, else what its function requires. A fat binary that is loaded with
 * CU_JIT_FALLBACK_STRATEGY and PTX preferred is compiled: its launches are of an image of one byte. Kernels of other
 * names do nothing.
 *
 * FAKE_LOG=FILE: a line for each launch, with the size of the image that it came from.
 * FAKE_SM=N (the compute capability, 90), FAKE_DEVICES=N, FAKE_SECOND=NAME (name of all devices but the first), FAKE_REGISTERS=N (what functions
 * report), FAKE_VERSION_2=1 (cuLaunchKernel has a later, unknown version), FAKE_MEMORY=BYTES, FAKE_UNSTEADY=1 (results differ in their last bits), FAKE_PICKY=1 (modules with
 * a kernel whose name has a dot are refused), FAKE_GRAPH_ONLY=1 (kernels fault outside of graphs), FAKE_CACHES=1 (after a copy a launch takes less, unless the cache was flushed), FAKE_SLOWLY=N (launches take N times as long, and are waited for).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned Code;
typedef uint64_t Pointer;
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, INVALID_IMAGE = 200, INVALID_CONTEXT = 201 };

enum { CONTEXTS = 4, KERNELS = 64, VARIABLES = 16 };
struct function { struct module *module; char name[64]; int attributes[16]; int is_kernel, place; size_t text, bytes; };
struct variable { char name[64]; size_t bytes; void *memory[CONTEXTS]; };
/* Places are contexts; a module has one, and a library all of them, with a module in each. */
struct module { struct module *library, *modules[CONTEXTS]; char *image; size_t size; int is_compiled; unsigned count, variables; int is_library, place; struct function functions[CONTEXTS][KERNELS], kernels[KERNELS]; struct variable all[VARIABLES]; };
struct context { int device, place; };
enum { ATTRIBUTES = 16 };
struct node { struct function *function; unsigned place, grid[3], block[3], shared; void *params[2]; uint64_t values[2], attributes[ATTRIBUTES][8]; };
struct attribute { unsigned id, padding; uint64_t value[8]; };
struct graph { unsigned count; struct node nodes[16]; };
struct stream { struct graph *captures; };
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
struct node_params { void *function; unsigned grid[3], block[3], shared; void **params, **extra; void *kernel, *context; };

static Code sticky;
static int hung;
static double nanoseconds;
static int copied; /* since the last launch */
static unsigned *counted;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

/* FAKE_FREE=1: nothing is locked, so that a thread may leave anywhere. */
static void enter(void) { if (!setting("FAKE_FREE", 0)) pthread_mutex_lock(&lock); }
static void leave(void) { if (!setting("FAKE_FREE", 0)) pthread_mutex_unlock(&lock); }
static unsigned cluster_of(struct function *f, unsigned stated) { return stated ? stated : f->attributes[11]; }
static void note(const char *what, struct function *f, unsigned gx, unsigned bx, unsigned shared, const char *flavour, unsigned cluster) {
    const char *path = getenv("FAKE_LOG");
    if (!path || !*path) return;
    char line[256];
    int n = snprintf(line, sizeof line, "%s %s image %zu grid %u block %u shared %u %s most %d cluster %u policy %d\n", what, f->name,
                     f->module->is_compiled ? (size_t)1 : f->module->size, gx, bx, shared, flavour, f->attributes[8], cluster_of(f, cluster), f->attributes[15]);
    FILE *file = fopen(path, "a");
    if (!file) return; /* no memory */
    fwrite(line, 1, n, file);
    fclose(file);
}

static void taken_down(void) { if (!sticky) sticky = 4; /* CUDA_ERROR_DEINITIALIZED */ }
Code cuInit(unsigned flags) { atexit(taken_down); return 0; }
Code cuDriverGetVersion(int *version) { *version = 13000; return 0; }
Code cuDeviceGetCount(int *count) { *count = setting("FAKE_DEVICES", 1); return 0; }
Code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
Code cuDeviceGetName(char *text, int size, int device) {
    const char *second = getenv("FAKE_SECOND");
    snprintf(text, size, "%s", device && second ? second : "Fake GPU");
    return 0;
}
Code cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? setting("FAKE_SM", 90) / 10 : attribute == 76 ? setting("FAKE_SM", 90) % 10 : 1024;
    return 0;
}
static struct context primary;
static __thread struct context *current = &primary;
Code cuCtxGetCurrent(void **context) { *context = current; return sticky; }
Code cuCtxGetDevice(int *device) { *device = current->device; return sticky; }
Code cuCtxCreate_v2(struct context **context, unsigned flags, int device) {
    static int places;
    *context = calloc(1, sizeof **context);
    (*context)->device = device;
    (*context)->place = __sync_add_and_fetch(&places, 1) % CONTEXTS;
    current = *context;
    return sticky;
}
Code cuCtxSetCurrent(struct context *context) { current = context; return sticky; }
Code cuCtxEnablePeerAccess(void *context, unsigned flags) { return sticky; }
Code cuCtxDestroy_v2(void *context) { return sticky; }
Code cuDevicePrimaryCtxRetain(void **context, int device) { *context = &primary; return 0; }
Code cuDevicePrimaryCtxRelease_v2(int device) { return sticky; }
Code cuDevicePrimaryCtxReset_v2(int device) { return sticky; }
Code cuCtxSynchronize(void) { return sticky; }
Code cuThreadExchangeStreamCaptureMode(unsigned *mode) { static unsigned was; unsigned m = *mode; *mode = was; was = m; return 0; }

/* Modules. */
static struct module *kept;
static struct module *parse(const char *image, int is_library) {
    const Elf64_Ehdr *header = (const void *)image;
    if (memcmp(image, ELFMAG, 4)) return NULL;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    enter();
    struct module *module = kept;
    kept = NULL;
    leave();
    if (module) {
        free(module->image);
        for (int place = 0; place < CONTEXTS; place++) free(module->modules[place]);
        memset(module, 0, sizeof *module);
    }
    else module = calloc(1, sizeof *module);
    module->is_library = is_library;
    module->place = current->place;
    size_t end = header->e_shoff + header->e_shnum * sizeof *sections;
    if (header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > end) end = header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
        const char *names = image + sections[sections[i].sh_link].sh_offset;
        const char *sectionnames = image + sections[header->e_shstrndx].sh_offset;
        for (unsigned s = 0; s < sections[i].sh_size / sizeof *symbols; s++) {
            unsigned at = symbols[s].st_shndx;
            const char *section = at && at < header->e_shnum ? sectionnames + sections[at].sh_name : "";
            if (ELF64_ST_TYPE(symbols[s].st_info) == STT_OBJECT && module->variables < VARIABLES &&
                (!strncmp(section, ".nv.global", 10) || !strcmp(section, ".nv.constant3"))) {
                struct variable *v = &module->all[module->variables++];
                snprintf(v->name, 64, "%s", names + symbols[s].st_name);
                v->bytes = symbols[s].st_size;
                for (int place = 0; place < CONTEXTS; place++) {
                    v->memory[place] = calloc(1, v->bytes + 8);
                    if (sections[at].sh_type == SHT_PROGBITS) memcpy(v->memory[place], image + sections[at].sh_offset + symbols[s].st_value, v->bytes);
                }
                if (!strcmp(v->name, "fake_counts") && !counted) counted = v->memory[0];
            }
            if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && symbols[s].st_other & 0x10 && module->count < KERNELS) {
                struct function f = {module};
                snprintf(f.name, 64, "%s", names + symbols[s].st_name);
                f.text = sections[at].sh_offset + symbols[s].st_value;
                f.bytes = symbols[s].st_size;
                for (f.place = 0; f.place < CONTEXTS; f.place++) module->functions[f.place][module->count] = f;
                f.is_kernel = 1;
                module->kernels[module->count++] = f;
            }
        }
    }
    module->size = end;
    module->image = malloc(end);
    memcpy(module->image, image, end);
    return module;
}
static int says(struct module *module, const char *what) { return memmem(module->image, module->size, what, strlen(what)) != NULL; }
static int has(struct function *f, unsigned number) { return memmem(f->module->image + f->text, f->bytes, &number, 4) != NULL; }

static Code load_as(struct module **out, const char *image, int is_library) {
    /* Room for so many modules. */
    static long loaded;
    if (++loaded > setting("FAKE_ROOM", 1l << 30)) return OUT_OF_MEMORY;
    if (sticky) return sticky;
    if (*(const unsigned *)image == 0x466243b1) image = *(const char *const *)(image + 8);
    if (*(const unsigned *)image == 0xba55ed50) image += 16 + 64; /* the first entry of the container, not compressed */
    struct module *module = parse(image, is_library);
    if (module && setting("FAKE_PICKY", 0)) for (unsigned i = 0; i < module->count; i++) if (strchr(module->kernels[i].name, '.')) return INVALID_IMAGE;
    if (!module) { /* PTX: of our kernels it has one */
        *out = module = calloc(1, sizeof *module);
        module->image = strdup("ptx");
        module->size = 3;
        module->count = 2;
        module->place = current->place;
        for (unsigned i = 0; i < 2; i++) {
            struct function *f = &module->functions[module->place][i];
            strcpy(f->name, i ? "ww_flush" : "ww_diff");
            f->module = module;
            f->place = module->place;
        }
        return 0;
    }
    *out = module;
    return 0;
}
/* As above; some options choose the PTX of a fat binary, which is no other program here. */
static Code load_with(struct module **out, const char *image, int is_library, unsigned n, const int *options, void **values) {
    Code code = load_as(out, image, is_library);
    int is_fat = *(const unsigned *)image == 0x466243b1 || *(const unsigned *)image == 0xba55ed50;
    for (unsigned i = 0; !code && is_fat && i < n; i++) if (options[i] == 10 && !values[i]) (*out)->is_compiled = 1;
    return code;
}
static Code load(struct module **out, const char *image) { return load_as(out, image, 0); }
Code cuModuleLoadData(struct module **out, const char *image) { return load(out, image); }
Code cuModuleLoadDataEx(struct module **out, const char *image, unsigned n, void *o, void **v) { return load_with(out, image, 0, n, o, v); }
Code cuModuleLoadFatBinary(struct module **out, const char *image) { return load(out, image); }
static Code load_file(struct module **out, const char *path, int is_library) {
    FILE *file = fopen(path, "rb");
    static char bytes[1 << 22];
    if (!file) return INVALID_VALUE;
    fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return load_as(out, bytes, is_library);
}
Code cuModuleLoad(struct module **out, const char *path) { return load_file(out, path, 0); }
Code cuLibraryLoadData(struct module **out, const char *image, void *o, void **v, unsigned n, void *lo, void **lv, unsigned ln) { return load_with(out, image, 1, n, o, v); }
Code cuLibraryLoadFromFile(struct module **out, const char *path, void *o, void **v, unsigned n, void *lo, void **lv, unsigned ln) { return load_file(out, path, 1); }
/* What was unloaded is loaded into the same place again, one at a time: handles come back. */
Code cuModuleUnload(struct module *module) {
    enter();
    memset(module->functions, 0, sizeof module->functions);
    memset(module->kernels, 0, sizeof module->kernels);
    /* Whoever kept an address finds nothing of use there. */
    for (unsigned i = 0; i < module->variables; i++) for (int place = 0; place < CONTEXTS; place++) memset(module->all[i].memory[place], 0xee, module->all[i].bytes);
    free(module->image);
    module->image = strdup("gone");
    module->size = 4;
    if (!kept) kept = module;
    leave();
    return sticky;
}
/* The linker: of a cubin it makes that cubin, of PTX the one that FAKE_CUBIN names. */
static size_t linked_bytes;
Code cuLinkCreate_v2(unsigned n, void *o, void **v, void **state) { *state = calloc(1, sizeof(void *)); return 0; }
Code cuLinkAddData_v2(void **state, unsigned kind, void *data, size_t bytes, const char *name, unsigned n, void *o, void **v) {
    const char *path = getenv("FAKE_CUBIN");
    if (kind == 1 && !path) return 218;  // PTX is not compiled here
    *state = malloc(linked_bytes = kind == 1 ? 1 << 20 : bytes);
    if (kind != 1) return memcpy(*state, data, bytes), 0;
    FILE *file = fopen(path, "rb");
    linked_bytes = fread(*state, 1, linked_bytes, file);
    return fclose(file);
}
Code cuLinkComplete(void **state, void **cubin, size_t *bytes) { *cubin = *state; *bytes = linked_bytes; return 0; }
Code cuLinkDestroy(void **state) { free(*state); free(state); return 0; }
Code cuLibraryUnload(struct module *module) { return cuModuleUnload(module); }
static struct module *module_in(struct module *m, int place) {
    if (!m->is_library) return m;
    if (!m->modules[place]) {
        m->modules[place] = calloc(1, sizeof *m);
        m->modules[place]->library = m;
        m->modules[place]->place = place;
    }
    return m->modules[place];
}
Code cuLibraryGetModule(struct module **out, struct module *library) { *out = module_in(library, current->place); return 0; }
static int place_of(struct module *m) { return m->is_library ? current->place : m->place; }
static struct module *code_of(struct module *m) { return m->library ? m->library : m; }
static Code get(struct function **out, struct function *all, unsigned count, const char *name) {
    for (unsigned i = 0; i < count; i++) if (!strcmp(all[i].name, name)) { *out = &all[i]; return sticky; }
    return NOT_FOUND;
}
Code cuModuleGetFunction(struct function **out, struct module *m, const char *name) { return get(out, code_of(m)->functions[place_of(m)], code_of(m)->count, name); }
Code cuLibraryGetKernel(struct function **out, struct module *m, const char *name) { return get(out, m->kernels, m->count, name); }
Code cuModuleEnumerateFunctions(struct function **out, unsigned count, struct module *m) { for (unsigned i = 0; i < count && i < code_of(m)->count; i++) out[i] = &code_of(m)->functions[place_of(m)][i]; return 0; }
Code cuLibraryEnumerateKernels(struct function **out, unsigned count, struct module *m) { for (unsigned i = 0; i < count && i < m->count; i++) out[i] = &m->kernels[i]; return 0; }
Code cuModuleGetFunctionCount(unsigned *count, struct module *m) { *count = code_of(m)->count; return 0; }
Code cuLibraryGetKernelCount(unsigned *count, struct module *m) { *count = m->count; return 0; }
Code cuKernelGetFunction(struct function **out, struct function *k) {
    if (!k->is_kernel) return INVALID_VALUE;
    *out = &k->module->functions[current->place][k - k->module->kernels];
    return 0;
}
Code cuFuncGetName(const char **name, struct function *f) { if (f->is_kernel) return INVALID_VALUE; *name = f->name; return 0; }
Code cuFuncGetModule(struct module **out, struct function *f) { if (f->is_kernel || !f->module) return INVALID_VALUE; *out = module_in(f->module, f->place); return 0; }
Code cuKernelGetName(const char **name, struct function *k) { *name = k->name; return 0; }
Code cuKernelGetLibrary(struct module **out, struct function *k) { *out = k->module; return 0; }
Code cuFuncGetAttribute(int *value, int attribute, struct function *f) {
    if (attribute == 4) { *value = setting("FAKE_REGISTERS", -1); return *value < 0 ? INVALID_VALUE : 0; }
    *value = f->attributes[attribute];
    return 0;
}
Code cuFuncSetAttribute(struct function *f, int attribute, int value) { f->attributes[attribute] = value; return 0; }
Code cuKernelGetAttribute(int *value, int attribute, struct function *k, int device) { return cuFuncGetAttribute(value, attribute, k); }
Code cuKernelSetAttribute(int attribute, int value, struct function *k, int device) { k->attributes[attribute] = value; return 0; }
Code cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct function *f, int threads, size_t shared) { *blocks = 2048 / threads; return 0; }
Code cuFuncGetParamInfo(struct function *f, size_t index, size_t *offset, size_t *size) {
    if (index > 1) return INVALID_VALUE;
    *offset = 8 * index;
    *size = index ? 4 : 8;
    return 0;
}
Code cuKernelGetParamInfo(struct function *f, size_t index, size_t *offset, size_t *size) { return cuFuncGetParamInfo(f, index, offset, size); }

Code cuModuleGetGlobal_v2(Pointer *address, size_t *bytes, struct module *m, const char *name) {
    int place = place_of(m);
    m = code_of(m);
    for (unsigned i = 0; i < m->variables; i++)
        if (!strcmp(m->all[i].name, name)) {
            *address = (Pointer)m->all[i].memory[place];
            *bytes = m->all[i].bytes;
            return setting("FAKE_NO_VARIABLES", 0) ? NOT_FOUND : sticky;
        }
    return NOT_FOUND;
}
Code cuLibraryGetGlobal(Pointer *address, size_t *bytes, struct module *m, const char *name) { return cuModuleGetGlobal_v2(address, bytes, m, name); }

/* Streams, events. Everything is done at once. */
Code cuStreamCreate(struct stream **stream, unsigned flags) { *stream = calloc(1, sizeof **stream); return sticky; }
static struct graph *capture(void *stream) { return (uintptr_t)stream > 2 ? ((struct stream *)stream)->captures : NULL; }
Code cuStreamIsCapturing(void *stream, unsigned *status) { *status = capture(stream) != NULL; return sticky; }
Code cuStreamBeginCapture_v2(struct stream *stream, unsigned mode) { stream->captures = calloc(1, sizeof(struct graph)); return sticky; }
Code cuStreamEndCapture(struct stream *stream, struct graph **graph) { *graph = stream->captures; stream->captures = NULL; return sticky; }
Code cuStreamSynchronize(void *stream) { return sticky; }
Code cuStreamQuery(void *stream) { return hung ? NOT_READY : sticky; }
Code cuEventCreate(void **event, unsigned flags) { *event = calloc(1, sizeof(double)); return sticky; }
Code cuEventDestroy_v2(void *event) { free(event); return sticky; }
Code cuEventRecord(void *event, void *stream) { *(double *)event = nanoseconds; return sticky; }
Code cuEventQuery(void *event) { return hung ? NOT_READY : sticky; }
Code cuEventSynchronize(void *event) { return sticky; }
Code cuEventElapsedTime(float *ms, void *begin, void *end) { *ms = (*(double *)end - *(double *)begin) * 1e-6; return sticky; }

/* Memory. */
static struct { Pointer address; size_t bytes; } allocated[256];
static unsigned allocations;
Code cuMemAlloc_v2(Pointer *address, size_t bytes) {
    used += bytes;
    if ((long)used > setting("FAKE_MEMORY", 1l << 30)) { used -= bytes; return OUT_OF_MEMORY; }
    *address = (Pointer)aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (!*address) return OUT_OF_MEMORY;
    unsigned place = __sync_fetch_and_add(&allocations, 1) % 256;
    allocated[place].address = *address;
    allocated[place].bytes = bytes;
    return sticky;
}
Code cuMemAllocAsync(Pointer *address, size_t bytes, void *stream) { return cuMemAlloc_v2(address, bytes); }
Code cuMemAllocManaged(Pointer *address, size_t bytes, unsigned flags) { return cuMemAlloc_v2(address, bytes); }
Code cuMemFree_v2(Pointer address) { return sticky; }
Code cuMemFreeAsync(Pointer address, void *stream) { return sticky; }
Code cuMemGetInfo_v2(size_t *unused, size_t *total) { *total = setting("FAKE_MEMORY", 1l << 30); *unused = *total - used; return sticky; }
/* The kind of memory (2), which is that of a device (2), at what was allocated. */
Code cuPointerGetAttribute(void *value, int attribute, Pointer address) {
    for (unsigned i = 0; attribute == 2 && i < 256; i++)
        if (address - allocated[i].address < allocated[i].bytes) { *(unsigned *)value = 2; return 0; }
    return INVALID_VALUE;
}
Code cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) { memcpy((void *)to, from, bytes); return sticky; }
Code cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) { memcpy(to, (void *)from, bytes); return sticky; }
Code cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void *stream) { copied = 1; memcpy((void *)to, (void *)from, bytes); return sticky; }
Code cuMemsetD8Async(Pointer to, unsigned char byte, size_t bytes, void *stream) { memset((void *)to, byte, bytes); return sticky; }

/* Launches. */
static void *variable(struct function *f, const char *name) {
    struct module *m = f->module;
    for (unsigned i = 0; i < m->variables; i++) if (!strcmp(m->all[i].name, name)) return m->all[i].memory[f->place];
    abort();
}
static int in_graph;
static Code run(struct function *f, void **params) {
    struct module *module = f->module;
    if (sticky) return sticky;
    if (says(module, "fake_refused")) return INVALID_VALUE;
    if (!strcmp(f->name, "ww_diff")) {
        const unsigned char *a = *(void **)params[0], *b = *(void **)params[1];
        uint64_t *result = *(void **)params[3];
        for (uint64_t i = *(uint64_t *)params[2]; i-- > 0;) if (a[i] != b[i]) { result[0]++; result[1] = i; }
        return 0;
    }
    if (!strcmp(f->name, "ww_flush")) {
        if (*(uint64_t *)params[1]) copied = 0;
        return 0;
    }
    if (!strncmp(f->name, "scale", 5)) {
        float *p = *(float **)params[0];
        unsigned n = *(unsigned *)params[1];
        enter();
        for (unsigned i = 0; i < n; i++) p[i] = 2 * p[i] + 1;
        /* A sum in another order at each launch. */
        static unsigned order;
        if (setting("FAKE_UNSTEADY", 0)) for (unsigned i = 0; i < n; i++) p[i] *= 1 + (order++ * 2654435761u >> 30) * 1e-7f;
        if (says(module, "fake_wrong")) p[n / 2] += 1;
        if (says(module, "fake_rounds")) p[n / 2] *= 1 + 4e-7f;
        leave();
    }
    if (!strncmp(f->name, "weigh", 5)) {
        float *p = *(float **)params[0], *weights = variable(f, "weights"), *bias = variable(f, "bias");
        unsigned n = *(unsigned *)params[1], *total = variable(f, "total");
        enter();
        for (unsigned i = 0; i < n; i++) p[i] = p[i] * weights[i % 8] + *bias;
        *total += has(f, 0x4ffa7fa8) ? 2 : 1;
        if (has(f, 0x4ffa7fa7)) p[n / 2] += 1;
        leave();
    }
    if (counted) ++*counted;
    if (says(module, "fake_faults") || !in_graph && setting("FAKE_GRAPH_ONLY", 0)) sticky = ILLEGAL_ADDRESS;
    if (says(module, "fake_hangs")) hung = 1;
    int lonely = has(f, 0x4ffa7fa6);
    double took = says(module, "fake_fast") || has(f, 0x4ffa7fa5) || lonely && copied ? 50e3 : lonely || says(module, "fake_slow") ? 200e3 : copied && setting("FAKE_CACHES", 0) ? 80e3 : 100e3;
    took *= setting("FAKE_SLOWLY", 1);
    if (setting("FAKE_SLOWLY", 0)) usleep(took / 1e3);
    nanoseconds += took;
    copied = 0;
    return 0;
}
static Code launch_in(unsigned cluster, const char *flavour, struct function *f, const unsigned *grid, const unsigned *block, unsigned shared, void *stream, void **params, void **extra) {
    if (sticky) return sticky;
    if (grid[0] == 0) return INVALID_VALUE;
    void *unpacked[3];
    if (!params && extra && extra[0] == (void *)1 && extra[2] == (void *)2 && *(size_t *)extra[3] > 4096) return INVALID_VALUE;
    if (!params && extra && extra[0] == (void *)1) { /* a buffer with our kernels' parameters */
        unpacked[0] = extra[1];
        unpacked[1] = (char *)extra[1] + 8;
        unpacked[2] = (char *)extra[1] + 16;
        params = unpacked;
    }
    struct graph *graph = capture(stream);
    if (!f->module) return INVALID_VALUE;
    struct function *function = f;
    if (f->is_kernel) cuKernelGetFunction(&function, f);
    if (function->place != current->place) return INVALID_CONTEXT;
    if (graph) {
        struct node *node = &graph->nodes[graph->count++];
        *node = (struct node){function, graph->count - 1, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared};
        node->values[0] = *(uint64_t *)params[0];
        node->values[1] = *(unsigned *)params[1];
        node->attributes[4][0] = cluster;
        note("captured", f, grid[0], block[0], shared, flavour, cluster);
        return 0;
    }
    Code code = run(function, params);
    if (!code && strncmp(f->name, "ww_", 3)) note("launch", f, grid[0], block[0], shared, flavour, cluster);
    return code;
}
static Code launch(const char *flavour, struct function *f, const unsigned *grid, const unsigned *block, unsigned shared, void *stream, void **params, void **extra) {
    return launch_in(0, flavour, f, grid, block, shared, stream, params, extra);
}
static Code launch_config(const char *flavour, struct config *c, struct function *f, void **params, void **extra) {
    struct attribute *all = c->attributes;
    unsigned cluster = 0;
    for (unsigned i = 0; i < c->count; i++) if (all[i].id == 4) cluster = (unsigned)all[i].value[0];
    return launch_in(cluster, flavour, f, c->grid, c->block, c->shared, c->stream, params, extra);
}
#define THREE(a, b, c) (unsigned[]){a, b, c}
Code cuLaunchKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
    return launch("legacy", f, THREE(gx, gy, gz), THREE(bx, by, bz), shared, stream, params, extra);
}
Code cuLaunchKernel_ptsz(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
    return launch("thread", f, THREE(gx, gy, gz), THREE(bx, by, bz), shared, stream, params, extra);
}
static Code later_launch(void) { return 999; }
Code cuLaunchKernelEx(struct config *c, struct function *f, void **params, void **extra) { return launch_config("legacy-ex", c, f, params, extra); }
Code cuLaunchKernelEx_ptsz(struct config *c, struct function *f, void **params, void **extra) { return launch_config("thread-ex", c, f, params, extra); }
Code cuLaunchCooperativeKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params) {
    return launch("cooperative", f, THREE(gx, gy, gz), THREE(bx, by, bz), shared, stream, params, NULL);
}

/* Graphs: nodes run in their order. */
Code cuGraphCreate(struct graph **graph, unsigned flags) { *graph = calloc(1, sizeof **graph); return sticky; }
static Code set_node(struct node *node, struct node_params *p) {
    struct function *function = p->function ? p->function : p->kernel;
    if (function->is_kernel) cuKernelGetFunction(&function, function);
    uint64_t values[2] = {*(uint64_t *)p->params[0], *(unsigned *)p->params[1]}, attributes[ATTRIBUTES][8];
    memcpy(attributes, node->attributes, sizeof attributes);
    *node = (struct node){function, node->place, {p->grid[0], p->grid[1], p->grid[2]}, {p->block[0], p->block[1], p->block[2]}, p->shared};
    memcpy(node->values, values, sizeof values);
    memcpy(node->attributes, attributes, sizeof attributes);
    note("node", node->function, p->grid[0], p->block[0], p->shared, "graph", node->attributes[4][0]);
    return sticky;
}
Code cuGraphKernelNodeSetParams_v2(struct node *node, struct node_params *p) { return set_node(node, p); }
Code cuGraphKernelNodeSetAttribute(struct node *node, unsigned id, const void *value) {
    if (id >= ATTRIBUTES) return INVALID_VALUE;
    memcpy(node->attributes[id], value, id == 4 || id == 11 ? 12 : 8);
    return sticky;
}
Code cuGraphKernelNodeGetAttribute(struct node *node, unsigned id, void *value) {
    if (id >= ATTRIBUTES) return INVALID_VALUE;
    memcpy(value, node->attributes[id], id == 4 || id == 11 ? 12 : 8);
    return sticky;
}
Code cuGraphKernelNodeCopyAttributes(struct node *to, struct node *from) {
    memcpy(to->attributes, from->attributes, sizeof to->attributes);
    return sticky;
}
/* The executable graph has copies of the nodes, in their order. */
Code cuGraphExecKernelNodeSetParams_v2(struct graph *exec, struct node *node, struct node_params *p) {
    return set_node(&exec->nodes[node->place], p);
}
Code cuGraphAddKernelNode_v2(struct node **out, struct graph *graph, void *after, size_t count, struct node_params *p) {
    *out = &graph->nodes[graph->count++];
    (*out)->place = graph->count - 1;
    return set_node(*out, p);
}
Code cuGraphKernelNodeGetParams_v2(struct node *node, struct node_params *p) {
    node->params[0] = &node->values[0];
    node->params[1] = &node->values[1];
    *p = (struct node_params){node->function, {node->grid[0], node->grid[1], node->grid[2]}, {node->block[0], node->block[1], node->block[2]}, node->shared, node->params};
    return sticky;
}
Code cuGraphGetNodes(struct graph *graph, struct node **nodes, size_t *count) {
    if (nodes) for (unsigned i = 0; i < graph->count; i++) nodes[i] = &graph->nodes[i];
    *count = graph->count;
    return sticky;
}
Code cuGraphNodeGetType(struct node *node, unsigned *type) { *type = 0; return sticky; }
static int holds(struct graph *graph, const char *what) {
    for (unsigned i = 0; i < graph->count; i++) if (says(graph->nodes[i].function->module, what)) return 1;
    return 0;
}
Code cuGraphInstantiateWithFlags(struct graph **exec, struct graph *graph, unsigned long long flags) {
    if (holds(graph, "fake_unmade")) return OUT_OF_MEMORY;
    *exec = malloc(sizeof **exec);
    **exec = *graph;
    return sticky;
}
Code cuGraphDestroy(struct graph *graph) { memset(graph, 0xee, sizeof *graph); free(graph); return sticky; }
Code cuGraphLaunch(struct graph *exec, void *stream) {
    if (holds(exec, "fake_unstarted")) return OUT_OF_MEMORY;
    for (unsigned i = 0; i < exec->count; i++) {
        struct node *node = &exec->nodes[i];
        void *params[2] = {&node->values[0], &node->values[1]};
        in_graph = 1;
        Code code = run(node->function, params);
        in_graph = 0;
        if (code) return code;
        note("graph-launch", node->function, node->grid[0], node->block[0], node->shared, "graph", node->attributes[4][0]);
    }
    return sticky;
}
Code cuGraphExecDestroy(struct graph *exec) { free(exec); return sticky; }
Code cuGraphExecUpdate_v2(struct graph *exec, struct graph *graph, void *result) {
    if (exec->count != graph->count) return 910; /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */
    *exec = *graph;
    return sticky;
}

/* The other door. */
Code cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);
Code cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    static const char *const versioned[] = {"cuMemAlloc", "cuMemFree", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemGetInfo", "cuCtxDestroy", "cuEventDestroy",
        "cuCtxCreate", "cuModuleGetGlobal", "cuLinkCreate", "cuLinkAddData", "cuGraphAddKernelNode", "cuGraphKernelNodeGetParams", "cuGraphKernelNodeSetParams", "cuGraphExecKernelNodeSetParams", "cuGraphExecUpdate", "cuStreamBeginCapture", "cuDevicePrimaryCtxRelease"};
    char symbol[128];
    snprintf(symbol, sizeof symbol, "%s", name);
    if (!strcmp(name, "cuLaunchKernel") && version >= 13000 && setting("FAKE_VERSION_2", 0)) { *found = later_launch; return 0; }
    for (unsigned i = 0; i < sizeof versioned / sizeof *versioned; i++) if (!strcmp(name, versioned[i])) strcat(symbol, "_v2");
    if (!strcmp(name, "cuGraphInstantiate")) strcat(symbol, "WithFlags");
    if (!strcmp(name, "cuGetProcAddress") && version >= 12000) strcat(symbol, "_v2");
    void *self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    *found = NULL;
    if (flags == 2) { char own[140]; snprintf(own, sizeof own, "%s_ptsz", symbol); *found = dlsym(self, own); }
    if (!*found) *found = dlsym(self, symbol);
    return *found ? 0 : NOT_FOUND;
}
Code cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    if (status) *status = 0;
    return cuGetProcAddress(name, found, version, flags);
}
