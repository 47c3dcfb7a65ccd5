/* A program that makes random calls of the driver and prints what it sees of them, for comparing runs with the library
 * and without.
 *
 * fuzz SEED STEPS CUBIN: a line for each step: its kind and a digest of everything seen so far. No handle and no
 * address gets into the digest. With an odd seed the driver's functions come through cuGetProcAddress.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned Code;
typedef void *H;
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
struct node_params { void *function; unsigned grid[3], block[3], shared; void **params, **extra; void *kernel, *context; };

#define FUNCTIONS(F) \
    F(cuInit, (unsigned)) F(cuModuleLoadData, (H *, const void *)) F(cuModuleLoadDataEx, (H *, const void *, unsigned, void *, void **)) \
    F(cuModuleLoadFatBinary, (H *, const void *)) F(cuModuleLoad, (H *, const char *)) F(cuModuleUnload, (H)) F(cuModuleGetFunction, (H *, H, const char *)) \
    F(cuLibraryLoadData, (H *, const void *, void *, void *, unsigned, void *, void *, unsigned)) F(cuLibraryUnload, (H)) \
    F(cuLibraryLoadFromFile, (H *, const char *, void *, void *, unsigned, void *, void *, unsigned)) F(cuLibraryGetModule, (H *, H)) \
    F(cuLibraryGetKernel, (H *, H, const char *)) F(cuKernelGetFunction, (H *, H)) F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, H, const char *)) \
    F(cuLibraryGetGlobal, (uint64_t *, size_t *, H, const char *)) F(cuModuleGetFunctionCount, (unsigned *, H)) F(cuModuleEnumerateFunctions, (H *, unsigned, H)) \
    F(cuLibraryGetKernelCount, (unsigned *, H)) F(cuLibraryEnumerateKernels, (H *, unsigned, H)) F(cuFuncGetName, (const char **, H)) F(cuKernelGetName, (const char **, H)) \
    F(cuFuncGetModule, (H *, H)) F(cuFuncSetAttribute, (H, int, int)) F(cuFuncGetAttribute, (int *, int, H)) F(cuKernelSetAttribute, (int, int, H, int)) F(cuKernelGetAttribute, (int *, int, H, int)) \
    F(cuLaunchKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **)) F(cuLaunchKernelEx, (struct config *, H, void **, void **)) \
    F(cuLaunchCooperativeKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **)) \
    F(cuStreamCreate, (H *, unsigned)) F(cuStreamBeginCapture_v2, (H, unsigned)) F(cuStreamEndCapture, (H, H *)) F(cuCtxSynchronize, (void)) \
    F(cuGraphCreate, (H *, unsigned)) F(cuGraphAddKernelNode_v2, (H *, H, void *, size_t, struct node_params *)) F(cuGraphKernelNodeGetParams_v2, (H, struct node_params *)) \
    F(cuGraphKernelNodeSetParams_v2, (H, struct node_params *)) F(cuGraphInstantiateWithFlags, (H *, H, unsigned long long)) F(cuGraphLaunch, (H, H)) F(cuGraphExecDestroy, (H)) \
    F(cuMemAlloc_v2, (uint64_t *, size_t)) F(cuMemFree_v2, (uint64_t)) F(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t)) F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
    F(cuCtxGetCurrent, (H *)) F(cuCtxCreate_v2, (H *, unsigned, int)) F(cuCtxSetCurrent, (H))
#define DECLARE(name, args) static Code (*name) args;
FUNCTIONS(DECLARE)

enum { N = 64, MODULES = 6, GRAPHS = 4, CONTEXTS = 3 };
static char image[1 << 20];
static const char *path;
struct dice { uint64_t state; };
static unsigned roll(struct dice *d, unsigned below) {
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(d->state >> 33) % below;
}

struct module { H owner, handles[2]; int library, live, context; };
struct world {
    struct dice dice;
    uint64_t seen, memory;
    struct module modules[MODULES];
    H contexts[CONTEXTS], streams[2], capturing[2], graphs[GRAPHS], execs[GRAPHS], nodes[GRAPHS];
    struct module *of_node[GRAPHS];
    int kernel_of_node[GRAPHS], context, captured[2];
};
static const char *const NAMES[2] = {"weigh", "scale"};

static void see(struct world *w, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) w->seen = (w->seen ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}
static Code code(struct world *w, Code c) { see(w, &c, sizeof c); return c; }

static struct module *any(struct world *w) {
    struct module *m = &w->modules[roll(&w->dice, MODULES)];
    return m->live ? m : NULL;
}
static void handles(struct world *w, struct module *m) {
    for (int k = 0; k < 2; k++) {
        H handle = NULL, module = NULL;
        if (!m->library) code(w, cuModuleGetFunction(&handle, m->owner, NAMES[k]));
        else switch (roll(&w->dice, 3)) {
            case 0: code(w, cuLibraryGetKernel(&handle, m->owner, NAMES[k])); break;
            case 1: code(w, cuLibraryGetKernel(&module, m->owner, NAMES[k])); code(w, cuKernelGetFunction(&handle, module)); break;
            case 2: code(w, cuLibraryGetModule(&module, m->owner)); code(w, cuModuleGetFunction(&handle, module, NAMES[k])); break;
        }
        m->handles[k] = handle;
    }
}
static void load(struct world *w, int files) {
    struct module *m = &w->modules[roll(&w->dice, MODULES)];
    if (m->live) return;
    unsigned options[] = {7, 3, 4}, other[] = {9};
    void *values[] = {0, 0, 0};
    unsigned how = roll(&w->dice, files ? 7 : 5);
    m->library = how == 0 || how == 6;
    Code c = 0;
    switch (how) {
        case 0: c = cuLibraryLoadData(&m->owner, image, 0, 0, 0, 0, 0, 0); break;
        case 1: c = cuModuleLoadData(&m->owner, image); break;
        case 2: c = cuModuleLoadDataEx(&m->owner, image, 3, options, values); break;
        case 3: c = cuModuleLoadDataEx(&m->owner, image, 1, other, values); break;
        case 4: c = cuModuleLoadFatBinary(&m->owner, image); break;
        case 5: c = cuModuleLoad(&m->owner, path); break;
        case 6: c = cuLibraryLoadFromFile(&m->owner, path, 0, 0, 0, 0, 0, 0); break;
    }
    if (code(w, c)) return;
    m->live = 1;
    m->context = w->context;
    handles(w, m);
}
static void forget_graphs(struct world *w) {
    for (int g = 0; g < GRAPHS; g++) { if (w->execs[g]) cuGraphExecDestroy(w->execs[g]); w->graphs[g] = w->execs[g] = w->nodes[g] = NULL; }
}
static void end_captures(struct world *w) {
    for (int s = 0; s < 2; s++) if (w->capturing[s]) { H graph; code(w, cuStreamEndCapture(w->streams[s], &graph)); w->capturing[s] = NULL; w->captured[s] = 0; }
}
static void unload(struct world *w) {
    struct module *m = any(w);
    if (!m) return;
    end_captures(w);
    forget_graphs(w);
    code(w, m->library ? cuLibraryUnload(m->owner) : cuModuleUnload(m->owner));
    m->live = 0;
}
static uint64_t global(struct world *w, struct module *m, const char *name, size_t *bytes) {
    uint64_t address = 0;
    *bytes = 0;
    if (code(w, m->library ? cuLibraryGetGlobal(&address, bytes, m->owner, name) : cuModuleGetGlobal_v2(&address, bytes, m->owner, name))) return 0;
    see(w, bytes, sizeof *bytes);
    return address;
}
static const char *const VARIABLES[4] = {"weights", "bias", "total", "absent"};
static void variable(struct world *w, int writes) {
    struct module *m = any(w);
    if (!m) return;
    size_t bytes;
    uint64_t address = global(w, m, VARIABLES[roll(&w->dice, 4)], &bytes);
    if (!address || bytes > 64) return;
    float values[16];
    if (writes) {
        for (int i = 0; i < 16; i++) values[i] = roll(&w->dice, 1000) / 500.f - 1;
        code(w, cuMemcpyHtoD_v2(address, values, bytes));
    } else {
        code(w, cuMemcpyDtoH_v2(values, address, bytes));
        see(w, values, bytes);
    }
}
static unsigned count = N;
static void launch(struct world *w) {
    struct module *m = any(w);
    if (!m) return;
    struct dice *d = &w->dice;
    void *params[] = {&w->memory, &count};
    H f = m->handles[roll(d, 2)];
    unsigned grid = roll(d, 9), block = 64 << roll(d, 3), shared = roll(d, 4) ? 0 : 1024, s = roll(d, 3);
    H stream = s < 2 ? w->streams[s] : NULL;
    if (s < 2 && w->capturing[s] && w->captured[s]++ >= 8) return;
    struct { unsigned id, padding, value[16]; } attribute = {4, 0, {2, 1, 1}};
    struct config config = {{grid, 1, 1}, {block, 1, 1}, shared, stream, &attribute, roll(d, 2)};
    switch (roll(d, 4)) {
        case 0: code(w, cuLaunchKernelEx(&config, f, params, NULL)); break;
        case 1: code(w, cuLaunchCooperativeKernel(f, grid, 1, 1, block, 1, 1, shared, stream, params)); break;
        default: code(w, cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, params, NULL));
    }
}
static void memory(struct world *w, int writes) {
    float values[N];
    if (writes) {
        for (int i = 0; i < N; i++) values[i] = roll(&w->dice, 1000) / 100.f;
        code(w, cuMemcpyHtoD_v2(w->memory, values, sizeof values));
    } else {
        code(w, cuCtxSynchronize());
        code(w, cuMemcpyDtoH_v2(values, w->memory, sizeof values));
        see(w, values, sizeof values);
    }
}
static void attributes(struct world *w) {
    struct module *m = any(w);
    if (!m) return;
    H f = m->handles[roll(&w->dice, 2)];
    int value = roll(&w->dice, 90000), which = 8 + roll(&w->dice, 2);
    const char *name;
    /* Which of the two a handle is, its names say. */
    if (!cuFuncGetName(&name, f)) {
        if (roll(&w->dice, 2)) code(w, cuFuncSetAttribute(f, which, value));
        code(w, cuFuncGetAttribute(&value, which, f));
    } else {
        if (roll(&w->dice, 2)) code(w, cuKernelSetAttribute(which, value, f, 0));
        code(w, cuKernelGetAttribute(&value, which, f, 0));
    }
    see(w, &value, sizeof value);
}
static void look(struct world *w) {
    struct module *m = any(w);
    if (!m) return;
    unsigned number = 0, most = roll(&w->dice, 8);
    H all[8] = {0};
    code(w, m->library ? cuLibraryGetKernelCount(&number, m->owner) : cuModuleGetFunctionCount(&number, m->owner));
    see(w, &number, sizeof number);
    code(w, m->library ? cuLibraryEnumerateKernels(all, most, m->owner) : cuModuleEnumerateFunctions(all, most, m->owner));
    for (unsigned i = 0; i < 8; i++) {
        const char *name = NULL;
        if (!all[i]) continue;
        code(w, m->library ? cuKernelGetName(&name, all[i]) : cuFuncGetName(&name, all[i]));
        see(w, name, strlen(name));
    }
    H owner = NULL;
    if (!m->library) { code(w, cuFuncGetModule(&owner, m->handles[0])); int own = owner == m->owner; see(w, &own, sizeof own); }
}
static void context(struct world *w) {
    if (roll(&w->dice, 3)) return;
    end_captures(w);
    w->context = roll(&w->dice, CONTEXTS);
    if (!w->contexts[w->context]) code(w, cuCtxCreate_v2(&w->contexts[w->context], 0, 0));
    else code(w, cuCtxSetCurrent(w->contexts[w->context]));
}
static void capture(struct world *w) {
    int s = roll(&w->dice, 2);
    if (!w->capturing[s]) {
        if (!code(w, cuStreamBeginCapture_v2(w->streams[s], 0))) w->capturing[s] = w->streams[s];
        return;
    }
    int g = roll(&w->dice, GRAPHS);
    w->capturing[s] = NULL;
    w->captured[s] = 0;
    w->nodes[g] = NULL;
    code(w, cuStreamEndCapture(w->streams[s], &w->graphs[g]));
}
static void node(struct world *w) {
    struct module *m = any(w);
    int g = roll(&w->dice, GRAPHS), k = roll(&w->dice, 2), set = w->nodes[g] && roll(&w->dice, 2);
    if (!m) return;
    void *params[] = {&w->memory, &count};
    struct node_params p = {m->handles[k], {1 + roll(&w->dice, 8), 1, 1}, {64 << roll(&w->dice, 3), 1, 1}, 0, params}, seen;
    const char *name;
    if (cuFuncGetName(&name, p.function)) { p.kernel = p.function; p.function = NULL; }
    if (set) code(w, cuGraphKernelNodeSetParams_v2(w->nodes[g], &p));
    else {
        code(w, cuGraphCreate(&w->graphs[g], 0));
        code(w, cuGraphAddKernelNode_v2(&w->nodes[g], w->graphs[g], NULL, 0, &p));
    }
    code(w, cuGraphKernelNodeGetParams_v2(w->nodes[g], &seen));
    see(w, seen.grid, sizeof seen.grid);
    see(w, seen.block, sizeof seen.block);
    if (p.function) { int own = seen.function == p.function; see(w, &own, sizeof own); }
}
static void graph(struct world *w) {
    int g = roll(&w->dice, GRAPHS);
    if (w->graphs[g] && roll(&w->dice, 2)) {
        if (w->execs[g]) code(w, cuGraphExecDestroy(w->execs[g]));
        code(w, cuGraphInstantiateWithFlags(&w->execs[g], w->graphs[g], 0));
    }
    if (w->execs[g]) code(w, cuGraphLaunch(w->execs[g], w->streams[1]));
}
static void begin(struct world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->dice.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->seen = 0xcbf29ce484222325u;
    code(w, cuMemAlloc_v2(&w->memory, N * 4));
    for (int s = 0; s < 2; s++) code(w, cuStreamCreate(&w->streams[s], 0));
    memory(w, 1);
}
/* What threads do at the same time: each with modules and memory of its own. */
static void *thread(void *arg) {
    struct world w;
    begin(&w, (uint64_t)arg);
    for (int i = 0; i < 40; i++) switch (roll(&w.dice, 8)) {
        case 0: load(&w, 0); break;
        case 1: unload(&w); break;
        case 2: variable(&w, 1); break;
        case 3: variable(&w, 0); break;
        case 4: memory(&w, 1); break;
        default: launch(&w);
    }
    memory(&w, 0);
    for (int m = 0; m < MODULES; m++) if (w.modules[m].live) code(&w, w.modules[m].library ? cuLibraryUnload(w.modules[m].owner) : cuModuleUnload(w.modules[m].owner));
    code(&w, cuMemFree_v2(w.memory));
    return (void *)w.seen;
}
static void threads(struct world *w) {
    if (roll(&w->dice, 4)) return;
    pthread_t all[3];
    for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, thread, (void *)(uintptr_t)(w->dice.state + i));
    for (int i = 0; i < 3; i++) { void *seen; pthread_join(all[i], &seen); see(w, &seen, sizeof seen); }
}

int main(int argc, char **argv) {
    uint64_t seed = strtoull(argv[1], NULL, 10);
    int steps = atoi(argv[2]);
    path = argv[3];
    FILE *file = fopen(path, "rb");
    fread(image, 1, sizeof image, file);
    fclose(file);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    Code (*ask)(const char *, void **, int, uint64_t, int *) = dlsym(library, "cuGetProcAddress_v2");
    char base[64];
#define FIND(name, args) \
    snprintf(base, sizeof base, "%s", #name); \
    if (strstr(base, "_v2")) *strstr(base, "_v2") = 0; \
    if (strstr(base, "WithFlags")) *strstr(base, "WithFlags") = 0; \
    if (seed % 2) ask(base, (void **)&name, 12080, 0, NULL); else name = dlsym(library, #name); \
    if (!name) { puts(#name); return 1; }
    FUNCTIONS(FIND)
    struct world w;
    cuInit(0);
    begin(&w, seed);
    cuCtxGetCurrent(&w.contexts[0]);
    for (int i = 0; i < steps; i++) {
        unsigned kind = roll(&w.dice, 22);
        switch (kind) {
            case 0: case 1: load(&w, 1); break;
            case 2: unload(&w); break;
            case 3: { struct module *m = any(&w); if (m) handles(&w, m); break; }
            case 4: case 5: variable(&w, 1); break;
            case 6: variable(&w, 0); break;
            case 7: memory(&w, 1); break;
            case 8: memory(&w, 0); break;
            case 9: attributes(&w); break;
            case 10: look(&w); break;
            case 11: context(&w); break;
            case 12: capture(&w); break;
            case 13: node(&w); break;
            case 14: case 15: graph(&w); break;
            case 16: threads(&w); break;
            default: launch(&w);
        }
        printf("%d %u %016lx\n", i, kind, (unsigned long)w.seen);
    }
    end_captures(&w);
    memory(&w, 0);
    printf("end %016lx\n", (unsigned long)w.seen);
    return 0;
}
