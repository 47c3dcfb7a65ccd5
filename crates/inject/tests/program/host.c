/* A program that uses the driver through one of its doors, for testing the library that programs load.
 *
 * host DOOR SCENARIO CUBIN: doors are dlsym, proc1, proc2, thread (proc2 with per-thread streams), local (the driver in
 * no global scope, and cuGetProcAddress asked for itself), linked (if it was compiled with -DLINKED). Prints its results; exit code 0 unless a call fails.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

typedef unsigned Code;
typedef void *H;
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
struct node_params { void *function; unsigned grid[3], block[3], shared; void **params, **extra; void *kernel, *context; };

#define FUNCTIONS(F) \
    F(cuInit, (unsigned)) F(cuDeviceGetCount, (int *)) F(cuModuleLoadData, (H *, const void *)) F(cuModuleLoad, (H *, const char *)) \
    F(cuModuleUnload, (H)) F(cuModuleGetFunction, (H *, H, const char *)) \
    F(cuLibraryLoadData, (H *, const void *, void *, void *, unsigned, void *, void *, unsigned)) F(cuLibraryGetKernel, (H *, H, const char *)) \
    F(cuKernelGetFunction, (H *, H)) F(cuFuncSetAttribute, (H, int, int)) F(cuModuleEnumerateFunctions, (H *, unsigned, H)) \
    F(cuLaunchKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **)) \
    F(cuLaunchKernelEx, (struct config *, H, void **, void **)) \
    F(cuStreamCreate, (H *, unsigned)) F(cuStreamEndCapture, (H, H *)) F(cuCtxSynchronize, (void)) \
    F(cuGraphCreate, (H *, unsigned)) F(cuGraphLaunch, (H, H)) F(cuGraphInstantiateWithFlags, (H *, H, unsigned long long)) \
    F(cuGraphDestroy, (H)) F(cuGraphExecDestroy, (H)) F(cuGraphExecUpdate_v2, (H, H, void *)) \
    F(cuMemAlloc_v2, (uint64_t *, size_t)) F(cuMemAllocManaged, (uint64_t *, size_t, unsigned)) F(cuMemFree_v2, (uint64_t)) F(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t)) F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
    F(cuStreamBeginCapture_v2, (H, unsigned)) F(cuGraphAddKernelNode_v2, (H *, H, void *, size_t, struct node_params *)) \
    F(cuGraphKernelNodeGetParams_v2, (H, struct node_params *)) F(cuGraphKernelNodeSetParams_v2, (H, struct node_params *)) \
    F(cuGraphExecKernelNodeSetParams_v2, (H, H, struct node_params *)) F(cuGraphKernelNodeSetAttribute, (H, unsigned, const void *)) \
    F(cuGraphKernelNodeCopyAttributes, (H, H)) F(cuKernelSetAttribute, (int, int, H, int)) F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, H, const char *)) \
    F(cuLinkCreate_v2, (unsigned, void *, void **, H *)) F(cuLinkAddData_v2, (H, unsigned, void *, size_t, const char *, unsigned, void *, void **)) \
    F(cuLinkComplete, (H, void **, size_t *)) F(cuLinkDestroy, (H)) \
    F(cuLaunchCooperativeKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **)) \
    F(cuModuleLoadDataEx, (H *, const void *, unsigned, void *, void **)) F(cuModuleLoadFatBinary, (H *, const void *)) F(cuLibraryUnload, (H)) \
    F(cuLibraryGetGlobal, (uint64_t *, size_t *, H, const char *)) F(cuModuleGetFunctionCount, (unsigned *, H)) \
    F(cuLibraryGetKernelCount, (unsigned *, H)) F(cuLibraryEnumerateKernels, (H *, unsigned, H)) \
    F(cuCtxGetCurrent, (H *)) F(cuCtxCreate_v2, (H *, unsigned, int)) F(cuCtxSetCurrent, (H)) F(cuCtxEnablePeerAccess, (H, unsigned))
#ifdef LINKED
#define DECLARE(name, args) extern Code name args;
FUNCTIONS(DECLARE)
#else
#define DECLARE(name, args) static Code (*name) args;
FUNCTIONS(DECLARE)
#endif

static void fail(const char *what, Code code) { printf("%s: error %u\n", what, code); exit(1); }
#define DO(name, ...) do { Code code_ = name(__VA_ARGS__); if (code_) fail(#name, code_); } while (0)

#ifdef LINKED
static void find(const char *door) {}
#else
static void *library;
static void *by_name(const char *door, const char *name) {
    if (!strcmp(door, "dlsym")) return dlsym(library, name);
    char base[128];
    snprintf(base, sizeof base, "%s", name);
    char *version = strstr(base, "_v2");
    if (version) *version = 0;
    char *flags = strstr(base, "WithFlags");
    if (flags) *flags = 0;
    void *found = NULL;
    int want = getenv("HOST_CUDA") ? atoi(getenv("HOST_CUDA")) : 12080;
    if (!strcmp(door, "local")) {
        static Code (*ask)(const char *, void **, int, uint64_t, int *);
        if (!ask) {
            ask = dlsym(library, "cuGetProcAddress_v2");
            for (int i = 0; i < 2; i++) ask("cuGetProcAddress", (void **)&ask, 12000, 0, NULL);
        }
        ask(base, &found, want, 0, NULL);
    } else if (!strcmp(door, "proc1")) {
        Code (*ask)(const char *, void **, int, uint64_t) = dlsym(library, "cuGetProcAddress");
        ask(base, &found, want, 0);
    } else {
        Code (*first)(const char *, void **, int, uint64_t) = dlsym(library, "cuGetProcAddress");
        Code (*ask)(const char *, void **, int, uint64_t, int *) = NULL;
        /* As the runtime does: the second version is asked for through the first. */
        first("cuGetProcAddress", (void **)&ask, 12000, 0);
        ask(base, &found, want, !strcmp(door, "thread") ? 2 : 0, NULL);
    }
    return found;
}
static void find(const char *door) {
    library = dlopen("libcuda.so.1", !strcmp(door, "local") ? RTLD_NOW | RTLD_LOCAL : RTLD_NOW);
    if (!library) { puts(dlerror()); exit(1); }
#define FIND(name, args) name = by_name(door, #name);
    FUNCTIONS(FIND)
}
#endif

static H function;
static uint64_t memory;
static unsigned n = 1000;

static Code launch(H f, unsigned grid, unsigned block, unsigned shared, H stream) {
    void *params[] = {&memory, &n};
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, params, NULL);
}

static void print(void) {
    float values[1000];
    DO(cuCtxSynchronize);
    DO(cuMemcpyDtoH_v2, values, memory, sizeof values);
    double sum = 0;
    for (unsigned i = 0; i < n; i++) sum += values[i];
    printf("sum %.0f\n", sum);
}

static void *thread(void *arg) {
    for (int i = 0; i < 50; i++) if (launch(function, 4, 256, 0, NULL)) return (void *)1;
    return NULL;
}

static char image[1 << 22];
static size_t image_bytes;

/* A thread whose cancellation waits for it when it begins: nothing that it calls is where threads are cancelled. */
static pthread_barrier_t barrier;
static void *cancelled(void *arg) {
    H module, f;
    pthread_barrier_wait(&barrier);
    if (cuModuleLoadData(&module, image) || cuModuleGetFunction(&f, module, "scale")) return (void *)1;
    for (int i = 0; i < 5; i++) if (launch(f, 4, 256, 0, NULL)) return (void *)2;
    return (void *)3;
}

/* The same on a stack of the program's own, with nothing below it. */
static ucontext_t before, own;
static void *answer;
static void on_own(void) { answer = cancelled(NULL); }
static void *coroutine(void *arg) {
    size_t below = 1 << 20, size = 20 << 10;
    char *stack = mmap(NULL, below + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack + below, size, PROT_READ | PROT_WRITE) || getcontext(&own)) return NULL;
    own.uc_stack.ss_sp = stack + below;
    own.uc_stack.ss_size = size;
    own.uc_link = &before;
    makecontext(&own, on_own, 0);
    swapcontext(&before, &own);
    return answer;
}

/* Loads, launches and unloads, again and again. */
static void *churn(void *arg) {
    for (int i = 0; i < *(int *)arg; i++) {
        H module, f;
        if (cuModuleLoadData(&module, image) || cuModuleGetFunction(&f, module, "scale") || launch(f, 4, 256, 0, NULL) || cuModuleUnload(module)) return (void *)1;
    }
    return NULL;
}

static long pages(void) {
    long size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%ld", &size);
    fclose(file);
    return size;
}

/* Modules with variables: each with memory of its own, in whatever way it is loaded. */
struct loaded { H owner, kernel; int library; };

static struct loaded load_variables(int how) {
    struct loaded l = {0};
    unsigned options[] = {7, 14};
    void *values[] = {0, 0};
    l.library = how == 0;
    if (how == 0) DO(cuLibraryLoadData, &l.owner, image, 0, 0, 0, 0, 0, 0);
    if (how == 1) DO(cuModuleLoadData, &l.owner, image);
    if (how == 2) DO(cuModuleLoadDataEx, &l.owner, image, 2, options, values);
    if (how == 3) DO(cuModuleLoadFatBinary, &l.owner, image);
    if (l.library) DO(cuLibraryGetKernel, &l.kernel, l.owner, "weigh");
    else DO(cuModuleGetFunction, &l.kernel, l.owner, "weigh");
    return l;
}

static uint64_t global(struct loaded *l, const char *name, size_t wanted) {
    uint64_t address;
    size_t bytes;
    if (l->library) DO(cuLibraryGetGlobal, &address, &bytes, l->owner, name);
    else DO(cuModuleGetGlobal_v2, &address, &bytes, l->owner, name);
    if (bytes != wanted) fail(name, bytes);
    return address;
}

static void set(struct loaded *l, float weight, float bias) {
    float weights[8];
    for (int i = 0; i < 8; i++) weights[i] = weight + i / 64.f;
    DO(cuMemcpyHtoD_v2, global(l, "weights", sizeof weights), weights, sizeof weights);
    DO(cuMemcpyHtoD_v2, global(l, "bias", 4), &bias, 4);
}

static unsigned total(struct loaded *l) {
    unsigned count;
    DO(cuMemcpyDtoH_v2, &count, global(l, "total", 4), 4);
    return count;
}

static void variables(void) {
    int repeat = getenv("HOST_REPEAT") ? atoi(getenv("HOST_REPEAT")) : 2;
    struct loaded all[4];
    for (int how = 0; how < 4; how++) all[how] = load_variables(how);
    unsigned functions, kernels;
    DO(cuModuleGetFunctionCount, &functions, all[1].owner);
    DO(cuLibraryGetKernelCount, &kernels, all[0].owner);
    H listed[16] = {0};
    DO(cuModuleEnumerateFunctions, listed, 16, all[1].owner);
    int known = 0;
    for (int i = 0; i < 16; i++) known += listed[i] != NULL;
    DO(cuLibraryEnumerateKernels, listed, 1, all[0].owner);
    printf("%u functions, %d listed, %u kernels, the first is %s\n", functions, known, kernels, listed[0] ? "there" : "missing");
    for (int i = 0; i < repeat; i++) {
        for (int how = 0; how < 4; how++) {
            /* Values that they had from the file, then such as were written. */
            if (i > 0) set(&all[how], 0.25f * (how + 1), i);
            DO(launch, all[how].kernel, 4, 256, 0, NULL);
            DO(launch, all[how].kernel, 4, 128, 0, NULL);
        }
        print();
    }
    for (int how = 0; how < 4; how++) printf("%u launches\n", total(&all[how]));
    /* A module that is loaded again begins anew. */
    DO(cuModuleUnload, all[1].owner);
    all[1] = load_variables(1);
    DO(launch, all[1].kernel, 4, 256, 0, NULL);
    printf("%u launches after loading again\n", total(&all[1]));
    /* In another context a library has other memory. */
    H first, second;
    DO(cuCtxGetCurrent, &first);
    DO(cuCtxCreate_v2, &second, 0, 0);
    set(&all[0], 3, 1);
    DO(launch, all[0].kernel, 4, 256, 0, NULL);
    if (!launch(all[1].kernel, 4, 256, 0, NULL)) fail("a function of another context works", 0);
    printf("%u launches in the second context\n", total(&all[0]));
    DO(cuCtxSetCurrent, first);
    DO(launch, all[0].kernel, 4, 256, 0, NULL);
    printf("%u launches in the first\n", total(&all[0]));
    /* Graphs. */
    H graph, exec, node, stream;
    void *params[] = {&memory, &n};
    struct node_params p = {all[1].kernel, {4, 1, 1}, {256, 1, 1}, 0, params}, q = {NULL, {4, 1, 1}, {256, 1, 1}, 0, params, NULL, all[0].kernel}, seen;
    DO(cuStreamCreate, &stream, 0);
    DO(cuGraphCreate, &graph, 0);
    DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
    DO(cuGraphKernelNodeGetParams_v2, node, &seen);
    printf("the node's function is %s\n", seen.function == all[1].kernel ? "mine" : "another");
    DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &q);
    DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < 3; i++) DO(cuGraphLaunch, exec, stream);
    printf("%u and %u launches\n", total(&all[0]), total(&all[1]));
    print();
}

/* Launches of a kernel that does nothing, as the lines of a file say: how, grid, block, shared memory, the pointer's
 * offset, a number, bytes of a structure. */
struct bytes { unsigned words[4]; };
static void launch_as(H f, const char *line) {
    unsigned how, gx, gy, bx, by, shared, number;
    unsigned long offset;
    struct bytes s;
    if (sscanf(line, "%u %u %u %u %u %u %lu %u %u %u %u %u", &how, &gx, &gy, &bx, &by, &shared, &offset, &number, &s.words[0], &s.words[1], &s.words[2], &s.words[3]) != 12) fail(line, 0);
    uint64_t pointer = 0x100000 + offset;
    void *params[] = {&pointer, &number, &s};
    struct { uint64_t pointer; unsigned number; struct bytes s; } buffer = {pointer, number, s};
    size_t bytes = 28;
    void *extra[] = {(void *)1, &buffer, (void *)2, &bytes, NULL};
    struct { unsigned id, padding; uint64_t value[8]; } attributes[] = {{8, 0, {0}}, {4, 0, {2 | 1ull << 32, 1}}};
    struct config config = {{gx, gy, 1}, {bx, by, 1}, shared, NULL, attributes, how == 4 ? 2 : 1};
    H graph, node, exec;
    /* A node's first parameters are others, too. */
    unsigned number_before = number + 1;
    struct bytes s_before = {{~s.words[0], s.words[1], s.words[2], ~s.words[3]}};
    void *params_before[] = {&pointer, &number_before, &s_before};
    struct node_params p = {f, {gx, gy, 1}, {bx, by, 1}, shared, params}, first = {f, {1, gy, 1}, {1, by, 1}, shared, params_before}, seen;
    switch (how) {
        case 0: DO(cuLaunchKernel, f, gx, gy, 1, bx, by, 1, shared, NULL, params, NULL); break;
        case 1: DO(cuLaunchKernel, f, gx, gy, 1, bx, by, 1, shared, NULL, NULL, extra); break;
        case 2: case 4: DO(cuLaunchKernelEx, &config, f, params, NULL); break;
        case 3: DO(cuLaunchCooperativeKernel, f, gx, gy, 1, bx, by, 1, shared, NULL, params); break;
        default: /* a node that is made with other values, and gets these behind it */
            DO(cuGraphCreate, &graph, 0);
            DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &first);
            if (how == 5) DO(cuGraphKernelNodeSetParams_v2, node, &p);
            DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
            if (how == 6) DO(cuGraphExecKernelNodeSetParams_v2, exec, node, &p);
            DO(cuGraphKernelNodeGetParams_v2, node, &seen);
            struct node_params *own = how == 5 ? &p : &first;
            if (seen.function != f || memcmp(seen.grid, own->grid, 12) || memcmp(seen.block, own->block, 12) || seen.shared != shared) fail("the node is another", 0);
            DO(cuGraphLaunch, exec, NULL);
    }
}

/* Launches of so many elements, again and again: `1000,600x2@8,9+` is 1000, twice 600 in a grid of 8, and one more than nine
 * at each turn. With a graph (1) its node is updated before each launch, or all of it by another graph (2). */
static void sizes(H function, const char *all, int turns, int in_graph) {
    H graph, node, exec, other, its;
    void *params[] = {&memory, &n};
    struct node_params p = {function, {4, 1, 1}, {256, 1, 1}, 0, params};
    if (in_graph) {
        DO(cuGraphCreate, &graph, 0);
        DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
        DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
    }
    for (int turn = 0; turn < turns; turn++)
        for (const char *word = all; *word;) {
            char *end;
            unsigned times = 1, grid = 4;
            n = strtoul(word, &end, 10);
            if (*end == 'x') times = strtoul(end + 1, &end, 10);
            if (*end == '@') grid = strtoul(end + 1, &end, 10);
            if (*end == '+') { n += turn; end++; }
            for (unsigned i = 0; i < times; i++) {
                p.grid[0] = grid;
                if (in_graph == 1) DO(cuGraphExecKernelNodeSetParams_v2, exec, node, &p);
                if (in_graph == 2) {
                    DO(cuGraphCreate, &other, 0);
                    DO(cuGraphAddKernelNode_v2, &its, other, NULL, 0, &p);
                    DO(cuGraphExecUpdate_v2, exec, other, NULL);
                    DO(cuGraphDestroy, other);
                }
                if (in_graph) DO(cuGraphLaunch, exec, NULL);
                else DO(launch, function, grid, 256, 0, NULL);
            }
            word = *end == ',' ? end + 1 : end;
        }
    n = 1000;
    print();
}

/* Machine code that a compiler in this process makes: the option is NVRTC's, the text an input of nvJitLink and of the
 * driver's linker beside the first. */
static void *compiler;
#define ASK(name, args) int (*name) args = dlsym(compiler, #name)
static void compile(const char *by, const char *library, const char *option, const char *ptx, const char *second) {
    compiler = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!compiler) fail(library, 0);
    size_t bytes = 0;
    if (!strcmp(by, "nvrtc")) {
        ASK(nvrtcCompileProgram, (void *, int, const char **));
        ASK(nvrtcGetCUBINSize, (void *, size_t *));
        ASK(nvrtcGetCUBIN, (void *, char *));
        nvrtcCompileProgram(&compiler, option != NULL, &option);
        nvrtcGetCUBINSize(&compiler, &bytes);
        if (bytes > sizeof image || nvrtcGetCUBIN(&compiler, image)) fail("nvrtc", bytes);
    } else if (!strcmp(by, "nvjitlink")) {
        void *link;
        ASK(__nvJitLinkCreate_13_0, (void **, unsigned, const char **));
        ASK(__nvJitLinkAddData_13_0, (void *, unsigned, const void *, size_t, const char *));
        ASK(__nvJitLinkGetLinkedCubin_13_0, (void *, void *));
        __nvJitLinkCreate_13_0(&link, option != NULL, &option);
        __nvJitLinkAddData_13_0(link, 2, ptx, strlen(ptx) + 1, "first");
        if (second) __nvJitLinkAddData_13_0(link, 2, second, strlen(second), "second");
        __nvJitLinkGetLinkedCubin_13_0(link, image);
    } else {
        H link;
        void *linked;
        DO(cuLinkCreate_v2, 0, NULL, NULL, &link);
        DO(cuLinkAddData_v2, link, 1, (void *)ptx, strlen(ptx), "first", 0, NULL, NULL);
        if (second) DO(cuLinkAddData_v2, link, 0, image, image_bytes, "second", 0, NULL, NULL);
        DO(cuLinkComplete, link, &linked, &bytes);
        memcpy(image, linked, bytes);
        DO(cuLinkDestroy, link);
    }
}

static void little_memory(long more);

/* From when something is asked in WARPWRIGHT_DIR until the launches are through all memory is taken; a file there says so. */
static volatile int is_over;
static void *take_all(void *unused) {
    const char *folder = getenv("WARPWRIGHT_DIR");
    int is_asked = 0;
    char full[4096];
    snprintf(full, sizeof full, "%s/full", folder ? folder : "");
    while (folder && !is_over && !is_asked) {
        DIR *all = opendir(folder);
        for (struct dirent *file; all && (file = readdir(all));) is_asked |= !strncmp(file->d_name, "ask-", 4);
        if (all) closedir(all);
        usleep(1000);
    }
    void **taken = NULL, **piece;
    struct rlimit limit;
    if (is_asked) {
        getrlimit(RLIMIT_AS, &limit);
        little_memory(0);
        for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) while ((piece = malloc(bytes))) { *piece = taken; taken = piece; }
        close(open(full, O_CREAT | O_WRONLY, 0600));
    }
    while (!is_over) usleep(1000);
    for (; taken; taken = piece) { piece = *taken; free(taken); }
    if (is_asked) setrlimit(RLIMIT_AS, &limit);
    return NULL;
}

static void little_memory(long more) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) fail("statm", 0);
    fclose(file);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &limit)) fail("setrlimit", 0);
}

/* From here on files that are opened or renamed end the program, and questions about its memory. */
static void forbid(const char *by) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mincore, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0x80000000), /* SECCOMP_RET_KILL_PROCESS */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (strcmp(by, "prctl") ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                            : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("seccomp", 0);
}

static void *spin(void *unused) { for (;;); }

int main(int argc, char **argv) {
    const char *door = argv[1], *scenario = argv[2], *path = argv[3];
    find(door);
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); return 1; }
    image_bytes = fread(image, 1, sizeof image, file);
    fclose(file);
#define IS(name) (!strcmp(scenario, name))
    if (IS("fork-first") && !fork()) { /* before the driver is used: the child is a program like any other */
        scenario = "plain";
    } else if (IS("fork-first")) {
        int status;
        wait(&status);
        printf("child %d\n", status);
    }
    if (IS("forbidden-first")) forbid(argv[4]);
    H module, other, kernel;
    DO(cuInit, 0);
    if (getenv("HOST_MANAGED")) DO(cuMemAllocManaged, &memory, n * 4, 1);
    else DO(cuMemAlloc_v2, &memory, n * 4);
    if (getenv("HOST_SPINS")) {
        pthread_t thread;
        pthread_create(&thread, NULL, spin, NULL);
    }
    float zeros[1000] = {0};
    DO(cuMemcpyHtoD_v2, memory, zeros, sizeof zeros);
    if (IS("short")) { /* of memory: so many bytes more than it has by now */
        little_memory(atol(argv[4]));
        scenario = "plain";
    }
    if (IS("variables")) {
        variables();
        return 0;
    }
    if (IS("values")) {
        char line[256];
        DO(cuModuleLoadData, &module, image);
        DO(cuModuleGetFunction, &function, module, "count");
        FILE *lines = fopen(argv[4], "r");
        while (fgets(line, sizeof line, lines)) launch_as(function, line);
        puts("done");
        return 0;
    }
    if (IS("moved")) { /* the folder is another one when the library first looks for the store */
        if (chdir("/")) fail("chdir", 0);
    }
    if (IS("compiled")) { /* by whom, its library, an option, PTX, a second input */
        const char *words[5] = {0};
        for (int i = 0; i < 5; i++) words[i] = argv[4 + i][0] ? argv[4 + i] : NULL;
        compile(words[0], words[1], words[2], words[3], words[4]);
    }
    if (IS("cancelled") || IS("narrow")) { /* or with as little stack as a thread may have */
        pthread_t thread;
        pthread_attr_t how;
        void *result;
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_attr_init(&how);
        if (IS("narrow")) pthread_attr_setstacksize(&how, 20 << 10);
        pthread_create(&thread, &how, cancelled, NULL);
        if (IS("cancelled")) pthread_cancel(thread);
        pthread_barrier_wait(&barrier);
        pthread_join(thread, &result);
        printf("%ld\n", (long)result);
        scenario = "plain";
    }
    if (IS("coroutine") || IS("coroutine-thread")) { /* of the first thread, or of another */
        pthread_t thread;
        void *result;
        pthread_barrier_init(&barrier, NULL, 1);
        if (IS("coroutine")) result = coroutine(NULL);
        else {
            pthread_create(&thread, NULL, coroutine, NULL);
            pthread_join(thread, &result);
        }
        printf("%ld\n", (long)result);
        scenario = "plain";
    }
    unsigned fallback[] = {10};
    void *ptx[] = {0};
    if (IS("prefer-ptx")) {
        DO(cuModuleLoadDataEx, &module, image, 1, fallback, ptx);
        DO(cuModuleGetFunction, &function, module, "scale");
    } else if (IS("prefer-ptx-library")) {
        DO(cuLibraryLoadData, &module, image, fallback, ptx, 1, 0, 0, 0);
        DO(cuLibraryGetKernel, &function, module, "scale");
    } else if (IS("library")) {
        DO(cuLibraryLoadData, &module, image, 0, 0, 0, 0, 0, 0);
        DO(cuLibraryGetKernel, &function, module, "scale");
    } else if (IS("linked")) { /* device-linked: the code alone, and a list of what it was linked from */
        static void *parts[2];
        static struct { unsigned magic, version; char *data; void **parts; } wrapper = {0x466243b1, 2, 0, parts};
        parts[0] = image;
        wrapper.data = image + 16 + 64; /* the first entry of the container */
        DO(cuModuleLoadData, &module, (char *)&wrapper);
        DO(cuModuleGetFunction, &function, module, "scale");
    } else if (IS("file")) {
        DO(cuModuleLoad, &module, path);
        DO(cuModuleGetFunction, &function, module, "scale");
    } else if (IS("link")) {
        H linker;
        void *linked;
        size_t bytes;
        DO(cuLinkCreate_v2, 0, NULL, NULL, &linker);
        DO(cuLinkAddData_v2, linker, 0, image, image_bytes, "scale", 0, NULL, NULL);
        DO(cuLinkComplete, linker, &linked, &bytes);
        DO(cuModuleLoadData, &module, linked);
        DO(cuLinkDestroy, linker);
        DO(cuModuleGetFunction, &function, module, "scale");
    } else if (IS("ptx")) {
        DO(cuModuleLoadData, &module, ".version 9.0\n");
        puts("loaded");
        return 0;
    } else {
        DO(cuModuleLoadData, &module, image);
        DO(cuModuleGetFunction, &function, module, "scale");
    }
    if (IS("sizes") || IS("graph-sizes") || IS("graph-updates")) {
        sizes(function, argv[4], atoi(getenv("HOST_REPEAT")), IS("graph-sizes") ? 1 : IS("graph-updates") ? 2 : 0);
        return 0;
    }
    if (IS("short-last")) { /* in the middle of its work; what is left is for threads, modules, and then all taken */
        pthread_t threads[3];
        H other, f;
        static void *taken[10000];
        int count = 0, made = 0;
        for (int i = 0; i < 3; i++) DO(launch, function, 4, 256, 0, NULL);
        little_memory(atol(argv[4]));
        n = 1;
        while (made < 3 && !pthread_create(&threads[made], NULL, thread, NULL)) made++;
        for (int i = 0; i < made; i++) pthread_join(threads[i], NULL);
        n = 1000;
        printf("threads %d\n", made);
        while (count < 10000 && (taken[count] = malloc(64 << 10))) count++;
        printf("pieces %d\n", count);
        for (int i = 0; i < 3; i++) DO(launch, function, 4, 256, 0, NULL);
        for (int i = 0; i < count; i++) free(taken[i]);
        Code code = cuModuleLoadData(&other, image);
        if (!code) code = cuModuleGetFunction(&f, other, "scale");
        printf("load %u\n", code);
        for (int i = 0; i < 3; i++) DO(launch, code ? function : f, 4, 256, 0, NULL);
    }
    if (IS("short-later")) little_memory(atol(argv[4])); /* with the module loaded, before the first launch */
    if (IS("forbidden")) {
        DO(launch, function, 4, 256, 0, NULL);
        puts("launched");
        fflush(stdout);
        forbid(argv[4]);
        DO(launch, function, 4, 256, 0, NULL);
        DO(cuModuleLoadData, &module, image);
        DO(cuModuleGetFunction, &function, module, "scale");
    }
    if (IS("enumerate")) {
        H functions[1];
        DO(cuModuleEnumerateFunctions, functions, 1, module);
        function = functions[0];
    }
    if (IS("attributes")) {
        DO(launch, function, 4, 256, 0, NULL);
        DO(cuFuncSetAttribute, function, 8, 70000);
        DO(launch, function, 4, 256, 0, NULL);
        DO(cuFuncSetAttribute, function, 8, 90000);
    }
    if (IS("unload")) {
        for (int i = 0; i < 3; i++) {
            DO(launch, function, 4, 256, 0, NULL);
            DO(cuModuleUnload, module);
            if (launch(function, 4, 256, 0, NULL) == 0) fail("a stale handle works", 0);
            DO(cuModuleLoadData, &module, image);
            DO(cuModuleGetFunction, &function, module, "scale");
        }
    }
    if (IS("graph") || IS("capture")) {
        H graph, exec, node, stream;
        void *params[] = {&memory, &n};
        DO(cuStreamCreate, &stream, 0);
        if (IS("graph")) {
            struct node_params p = {function, {4, 1, 1}, {256, 1, 1}, 0, params}, seen;
            DO(cuGraphCreate, &graph, 0);
            DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
            DO(cuGraphKernelNodeGetParams_v2, node, &seen);
            printf("the node's function is %s\n", seen.function == function ? "mine" : "another");
        } else {
            DO(cuStreamBeginCapture_v2, stream, 0);
            DO(launch, function, 4, 256, 0, stream);
            DO(launch, function, 4, 256, 0, stream);
            DO(cuStreamEndCapture, stream, &graph);
        }
        DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
        H again = NULL; /* the same once more, launched behind it each time */
        if (getenv("HOST_TWICE")) DO(cuGraphInstantiateWithFlags, &again, graph, 0);
        for (int i = 0; i < 5; i++) {
            DO(cuGraphLaunch, exec, stream);
            if (again) DO(cuGraphLaunch, again, stream);
        }
        print();
        return 0;
    }
    if (IS("graph-both")) { /* two kernels in a graph, which goes once it is executable */
        H graph, exec, node, second;
        void *params[] = {&memory, &n};
        DO(cuModuleGetFunction, &second, module, "scale_too");
        struct node_params p = {function, {4, 1, 1}, {256, 1, 1}, 0, params}, q = {second, {4, 1, 1}, {256, 1, 1}, 0, params};
        DO(cuGraphCreate, &graph, 0);
        DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
        DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &q);
        DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
        DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
        DO(cuGraphDestroy, graph);
        for (int i = 0; i < atoi(getenv("HOST_REPEAT")); i++) DO(cuGraphLaunch, exec, NULL);
        DO(cuGraphExecDestroy, exec);
        print();
        return 0;
    }
    if (IS("graph-many")) { /* more nodes than are known, of which the first one gets a cluster */
        H graph, node, first = NULL;
        void *params[] = {&memory, &n};
        uint64_t value[8] = {2 | 1ull << 32, 1};
        struct node_params p = {function, {4, 1, 1}, {256, 1, 1}, 0, params}, seen;
        for (int i = 0; i < 4100 * 16; i++) {
            if (i % 16 == 0) DO(cuGraphCreate, &graph, 0);
            DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
            if (!first) first = node;
        }
        DO(cuGraphKernelNodeSetAttribute, first, 4, value);
        for (int i = 0; i < 2; i++) {
            DO(cuGraphKernelNodeGetParams_v2, i ? node : first, &seen);
            printf("%s: %u blocks of %u threads\n", seen.function == function ? "mine" : "another", seen.grid[0], seen.block[0]);
        }
        return 0;
    }
    if (IS("short-waits")) { /* of memory, while the first thread waits for a search */
        pthread_t thread;
        pthread_create(&thread, NULL, take_all, NULL);
        for (int i = 0; i < 12; i++) DO(launch, function, 4, 256, 0, NULL);
        is_over = 1;
        pthread_join(thread, NULL);
    }
    if (IS("required-cluster")) { /* not by the launch, but by the function */
        for (int width = 2; width >= 0; width -= 2) {
            for (int i = 11; i < 14; i++) DO(cuFuncSetAttribute, function, i, width ? i == 11 ? width : 1 : 0);
            DO(launch, function, 4, 256, 0, NULL);
        }
    }
    if (IS("policy")) DO(cuFuncSetAttribute, function, 15, 2);
    if (IS("preferred-cluster")) {
        struct { unsigned id, padding; uint64_t value[8]; } attribute = {11, 0, {4 | 1ull << 32, 1}};
        struct config config = {{4, 1, 1}, {256, 1, 1}, 0, NULL, &attribute, 1};
        void *params[] = {&memory, &n};
        for (int i = 0; i < 3; i++) DO(cuLaunchKernelEx, &config, function, params, NULL);
    }
    if (IS("node-cluster") || IS("node-copy") || IS("node-preferred")) { /* set behind the parameters, and copied from another node */
        H graph, exec, node, other;
        void *params[] = {&memory, &n};
        uint64_t value[8] = {2 | 1ull << 32, 1};
        struct node_params p = {function, {4, 1, 1}, {256, 1, 1}, 0, params}, seen;
        DO(cuGraphCreate, &graph, 0);
        DO(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &p);
        if (IS("node-cluster")) DO(cuGraphKernelNodeSetAttribute, node, 4, value);
        else if (IS("node-preferred")) DO(cuGraphKernelNodeSetAttribute, node, 11, value);
        else {
            H second;
            DO(cuGraphCreate, &second, 0);
            DO(cuGraphAddKernelNode_v2, &other, second, NULL, 0, &p);
            DO(cuGraphKernelNodeSetAttribute, other, 4, value);
            DO(cuGraphKernelNodeCopyAttributes, node, other);
        }
        DO(cuGraphKernelNodeSetParams_v2, node, &p);
        DO(cuGraphKernelNodeGetParams_v2, node, &seen);
        printf("the node's function is %s\n", seen.function == function ? "mine" : "another");
        DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
        for (int i = 0; i < 3; i++) DO(cuGraphLaunch, exec, NULL);
        DO(cuGraphExecKernelNodeSetParams_v2, exec, node, &p);
        DO(cuGraphLaunch, exec, NULL);
        print();
        return 0;
    }
    if (IS("extra")) {
        struct { uint64_t pointer; unsigned n; } buffer = {memory, n};
        size_t bytes = 12;
        void *extra[] = {(void *)1, &buffer, (void *)2, &bytes, NULL};
        for (int i = 0; i < 3; i++) DO(cuLaunchKernel, function, 4, 1, 1, 256, 1, 1, 0, NULL, NULL, extra);
    }
    if (IS("cooperative")) {
        void *params[] = {&memory, &n};
        for (int i = 0; i < 3; i++) DO(cuLaunchCooperativeKernel, function, 4, 1, 1, 256, 1, 1, 0, NULL, params);
    }
    if (IS("cluster")) { /* two blocks to a cluster, as an attribute of the launch */
        struct { unsigned id, padding, value[16]; } attribute = {4, 0, {2, 1, 1}};
        struct config config = {{4, 1, 1}, {256, 1, 1}, 0, NULL, &attribute, 1};
        void *params[] = {&memory, &n};
        for (int i = 0; i < 3; i++) DO(cuLaunchKernelEx, &config, function, params, NULL);
    }
    if (IS("churn")) { /* one thread loads and unloads while others launch */
        pthread_t threads[3];
        int times = 300;
        n = 1;
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, i ? thread : churn, &times);
        void *bad, *any = NULL;
        for (int i = 0; i < 3; i++) { pthread_join(threads[i], &bad); if (bad) any = bad; }
        printf("threads %s\n", any ? "failed" : "done");
        return 0;
    }
    if (IS("reload")) { /* for long; memory must not grow with it */
        int times = 20;
        n = 1;
        churn(&times);
        long before = pages();
        times = 2000;
        printf("%s\n", churn(&times) ? "failed" : "done");
        printf("grew by %s\n", pages() - before > (64 << 20) / 4096 ? "much" : "little");
        return 0;
    }
    if (IS("threads")) {
        pthread_t threads[4];
        n = 1;
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, NULL);
        void *bad, *any = NULL;
        for (int i = 0; i < 4; i++) { pthread_join(threads[i], &bad); if (bad) any = bad; }
        printf("threads %s\n", any ? "failed" : "done");
        return 0;
    }
    if (IS("contexts") || IS("devices") || IS("peers")) { /* memory in a second context, of this device or of another */
        H first, second;
        uint64_t more;
        DO(cuCtxGetCurrent, &first);
        DO(cuCtxCreate_v2, &second, 0, IS("contexts") ? 0 : 1);
        DO(cuMemAlloc_v2, &more, 1000);
        DO(cuCtxSetCurrent, first);
        if (IS("peers")) DO(cuCtxEnablePeerAccess, second, 0);
    }
    if (IS("fork-later")) { /* the child may not use the driver; it must end all the same */
        DO(launch, function, 4, 256, 0, NULL);
        pid_t child = fork();
        if (!child) { launch(function, 4, 256, 0, NULL); exit(0); }
        int status;
        waitpid(child, &status, 0);
        printf("child %d\n", status);
    }
    if (IS("benchmark")) {
        long count = atol(argv[4]);
        n = 0;
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (long i = 0; i < count; i++) DO(launch, function, 4, 256, 0, NULL);
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%.1f ns\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / count);
        return 0;
    }
    int repeat = getenv("HOST_REPEAT") ? atoi(getenv("HOST_REPEAT")) : 1;
    for (int i = 0; i < repeat; i++) {
        DO(launch, function, 4, 256, 0, NULL);
        DO(launch, function, 4, 128, 0, NULL); /* another class */
        struct config config = {{4, 1, 1}, {256, 1, 1}, 0, NULL, NULL, 0};
        void *params[] = {&memory, &n};
        DO(cuLaunchKernelEx, &config, function, params, NULL);
    }
    Code empty = launch(function, 0, 1, 0, NULL);
    printf("an empty grid is error %u\n", empty);
    print();
    if (IS("variable")) {
        uint64_t address;
        size_t bytes;
        unsigned count;
        DO(cuModuleGetGlobal_v2, &address, &bytes, module, "fake_counts");
        DO(cuMemcpyDtoH_v2, &count, address, bytes);
        printf("%u launches\n", count);
    }
    return 0;
}
