/* What comes in the middle of a library's work, and what a thread holds meanwhile: amid CUBIN DEED
 *   graph      a kernel in a graph that is made executable and launched, three times
 *   gone       the same, with the graph gone before the launch
 *   again      a graph is destroyed, and the nodes of a captured one get its handles
 *   kernel     a node is made of a kernel of a library, and is executable while another context is current
 *   handler    a handler of signals launches, while modules are loaded and unloaded
 *   jump       a handler jumps away from all that
 *   cancel     threads that launch are cancelled at any instruction
 *   numbers    floating-point exceptions trap, rounding and flags are the program's
 *   error      an error of the dynamic linker's that nobody has asked for yet
 *   tsc        the time-stamp counter may not be read
 *   stack      all of it in a handler on a small stack of its own
 *   vfork      a launch between `vfork` and exec, and one behind that
 *   locked     a thread loads and launches for the first time while another one holds the dynamic linker's locks and waits for it
 *   busy       forked children launch, whatever other threads do in the dynamic linker
 *   exits      children of the kernel's call end by `exit`, while other threads launch
 *   bare       children that no handler of `fork` runs in launch, whatever other threads do
 *   dispatch   system calls from outside the C library are served by a handler, which ends the program
 *   size       a launch with a buffer of parameters as large as the address space
 *   first      (-DLINKED, with the driver) a thread is cancelled in its first call of the driver
 * -DWAITS: a library that calls what HOOK says, under the dynamic linker's locks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WAITS
static int calls(struct dl_phdr_info *i, size_t n, void *x) {
    ((void (*)(void))strtoul(getenv("HOOK"), 0, 16))();
    return 1;
}
__attribute__((constructor)) static void waits(void) { dl_iterate_phdr(calls, 0); }
#else
typedef void *H;
struct params { H function; unsigned grid[3], block[3], shared; void **params, **extra; H kernel, context; };

static char image[1 << 20];
static float data[1000];
static uint64_t memory;
static unsigned count = 1000;
static H driver, module, function;
static unsigned (*load_data)(H *, const void *), (*unload)(H), (*get)(H *, H, const char *), (*out)(void *, uint64_t, size_t);
static unsigned (*launch_kernel)(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

static unsigned load(H *to) {
    H made = 0;
    unsigned code = load_data(&made, image);
    code = code ? code : get(to, made, "scale");
    module = made;
    return code;
}

static unsigned launch(uint64_t at, H what) {
    void *values[] = {&at, &count};
    return launch_kernel(what, 4, 1, 1, 256, 1, 1, 0, 0, values, 0);
}

static void show(void) {
    printf("%u %g %g\n", out(data, memory, sizeof data), data[7], data[500]);
    fflush(stdout);
}

static void begin(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned (*init)(unsigned) = dlsym(driver, "cuInit"), (*make)(uint64_t *, size_t) = dlsym(driver, "cuMemAlloc_v2");
    unsigned (*in)(uint64_t, const void *, size_t) = dlsym(driver, "cuMemcpyHtoD_v2");
    out = dlsym(driver, "cuMemcpyDtoH_v2");
    load_data = dlsym(driver, "cuModuleLoadData");
    unload = dlsym(driver, "cuModuleUnload");
    get = dlsym(driver, "cuModuleGetFunction");
    launch_kernel = dlsym(driver, "cuLaunchKernel");
    init(0);
    make(&memory, sizeof data);
    in(memory, data, sizeof data);
}

static void graph(int is_gone) {
    unsigned (*create)(H *, unsigned) = dlsym(driver, "cuGraphCreate"), (*add)(H *, H, H *, size_t, struct params *) = dlsym(driver, "cuGraphAddKernelNode_v2");
    unsigned (*make)(H *, H, unsigned long long) = dlsym(driver, "cuGraphInstantiateWithFlags"), (*start)(H, H) = dlsym(driver, "cuGraphLaunch");
    unsigned (*end)(H) = dlsym(driver, "cuGraphDestroy"), (*read)(H, struct params *) = dlsym(driver, "cuGraphKernelNodeGetParams_v2");
    for (int i = 0; i < 5; i++) {
        H all = 0, node = 0, exec = 0;
        void *values[] = {&memory, &count};
        struct params params = {function, {4, 1, 1}, {256, 1, 1}, 0, values}, found;
        printf("%u", create(&all, 0));
        printf(" %u", add(&node, all, 0, 0, &params));
        printf(" %u", make(&exec, all, 0));
        printf(" %u %d", read(node, &found), found.function == function);
        if (is_gone) printf(" gone %u", end(all));
        printf(" %u", start(exec, 0));
        printf(" %u\n", start(exec, 0));
        show();
    }
}

/* What the program is told of a node. */
static void told(H node) {
    unsigned (*read)(H, struct params *) = dlsym(driver, "cuGraphKernelNodeGetParams_v2"), (*set)(H, struct params *) = dlsym(driver, "cuGraphKernelNodeSetParams_v2");
    unsigned (*name)(const char **, H) = dlsym(driver, "cuFuncGetName");
    const char *text = "?";
    struct params found;
    unsigned codes[] = {read(node, &found), name(&text, found.function), set(node, &found)};
    printf("%u %u %u grid %u block %u name %s\n", codes[0], codes[1], codes[2], found.grid[0], found.block[0], text);
}

static void again(void) {
    unsigned (*create)(H *, unsigned) = dlsym(driver, "cuGraphCreate"), (*add)(H *, H, H *, size_t, struct params *) = dlsym(driver, "cuGraphAddKernelNode_v2");
    unsigned (*make)(H *, H, unsigned long long) = dlsym(driver, "cuGraphInstantiateWithFlags"), (*start)(H, H) = dlsym(driver, "cuGraphLaunch");
    unsigned (*end)(H) = dlsym(driver, "cuGraphDestroy"), (*list)(H, H *, size_t *) = dlsym(driver, "cuGraphGetNodes");
    unsigned (*open)(H *, unsigned) = dlsym(driver, "cuStreamCreate"), (*capture)(H, int) = dlsym(driver, "cuStreamBeginCapture_v2"), (*close)(H, H *) = dlsym(driver, "cuStreamEndCapture");
    H stream = 0, first = module, other = 0;
    printf("%u", open(&stream, 0));
    printf(" %u\n", load(&other));
    /* The C library gives memory of this size again from the second time on. */
    for (int i = 0; i < 2; i++) {
        H none = 0;
        printf("%u", create(&none, 0));
        printf(" %u\n", end(none));
    }
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        H all = 0, node = 0, captured = 0, exec = 0, nodes[4];
        size_t room = 4;
        void *values[] = {&memory, &count};
        struct params params = {function, {5, 1, 1}, {256, 1, 1}, 0, values};
        printf("%u", create(&all, 0));
        printf(" %u", add(&node, all, 0, 0, &params));
        printf(" %u", end(all));
        if (is_gone) {
            printf(" gone %u", unload(first));
            function = other;
        }
        printf(" %u", capture(stream, 0));
        printf(" %u", launch_kernel(function, 7, 1, 1, 128, 1, 1, 0, stream, values, 0));
        printf(" %u", close(stream, &captured));
        printf(" %u", list(captured, nodes, &room));
        printf(" %d\n", nodes[0] == node);
        told(nodes[0]);
        printf("%u", make(&exec, captured, 0));
        printf(" %u\n", start(exec, 0));
        show();
    }
}

static void of_kernel(void) {
    unsigned (*create)(H *, unsigned) = dlsym(driver, "cuGraphCreate"), (*add)(H *, H, H *, size_t, struct params *) = dlsym(driver, "cuGraphAddKernelNode_v2");
    unsigned (*make)(H *, H, unsigned long long) = dlsym(driver, "cuGraphInstantiateWithFlags"), (*start)(H, H) = dlsym(driver, "cuGraphLaunch");
    unsigned (*read)(H, struct params *) = dlsym(driver, "cuGraphKernelNodeGetParams_v2"), (*of)(H *, H) = dlsym(driver, "cuKernelGetFunction");
    unsigned (*open)(H *, const void *, H, H, unsigned, H, H, unsigned) = dlsym(driver, "cuLibraryLoadData"), (*kernel)(H *, H, const char *) = dlsym(driver, "cuLibraryGetKernel");
    unsigned (*context)(H *, unsigned, int) = dlsym(driver, "cuCtxCreate_v2"), (*current)(H) = dlsym(driver, "cuCtxSetCurrent"), (*which)(H *) = dlsym(driver, "cuCtxGetCurrent");
    H library = 0, handle = 0, own = 0, all = 0, node = 0, exec = 0, before = 0, other = 0;
    void *values[] = {&memory, &count};
    printf("%u", open(&library, image, 0, 0, 0, 0, 0, 0));
    printf(" %u", kernel(&handle, library, "scale"));
    printf(" %u", of(&own, handle));
    struct params params = {0, {4, 1, 1}, {256, 1, 1}, 0, values, 0, handle}, found;
    printf(" %u", create(&all, 0));
    printf(" %u", add(&node, all, 0, 0, &params));
    printf(" %u", read(node, &found));
    printf(" %d %d", found.function == own, found.kernel == params.kernel);
    printf(" %u", which(&before));
    printf(" %u", context(&other, 0, 0));
    printf(" %u", make(&exec, all, 0));
    printf(" %u", start(exec, 0));
    printf(" %u\n", current(before));
    show();
}

static uint64_t others;
static volatile sig_atomic_t ticks, wrong;
static void tick(int s) {
    int before = errno;
    wrong |= launch(others, function);
    ticks++;
    errno = before;
}
static sigjmp_buf back;
static void jump(int s) { ticks++; siglongjmp(back, 1); }

static void each(long microseconds, void (*does)(int), int flags) {
    struct sigaction action = {.sa_handler = does, .sa_flags = flags};
    struct itimerval times = {{0, microseconds}, {0, microseconds}};
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &times, 0);
}

static H work(void) {
    H other = 0;
    wrong |= load(&other);
    for (int i = 0; i < 20; i++) wrong |= launch(others, other);
    wrong |= unload(module);
    return other;
}

static void handlers(int flags) {
    H own = 0;
    load(&own);
    function = own;
    launch(others, function);
    each(150, tick, flags);
    for (int i = 0; i < 300 || ticks < 50; i++) work();
    each(0, SIG_IGN, 0);
    printf("wrong %d\n", wrong);
}

static void *launches(void *x) {
    for (int i = 0; i < 50; i++) wrong |= launch(memory, function);
    return x;
}

static void jumps(void) {
    for (volatile int i = 0; i < 300; i++) {
        if (!sigsetjmp(back, 1)) {
            each(120 + 7 * i, jump, 0);
            for (;;) launch(others, function);
        }
        each(0, SIG_IGN, 0);
    }
    pthread_t thread;
    pthread_create(&thread, 0, launches, 0);
    pthread_join(thread, 0);
    printf("wrong %d\n", wrong);
}

static void *forever(void *x) {
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    for (;;) launch(others, function);
    return x;
}

static void cancels(void) {
    /* The dynamic linker looks for functions at their first call, and whoever is cancelled in there leaves it locked. */
    launch(others, function);
    for (int i = 0; i < 400; i++) {
        pthread_t thread;
        void *result = 0;
        pthread_create(&thread, 0, forever, 0);
        usleep(i % 100);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) puts("not cancelled");
    }
    launches(0);
    puts("cancelled");
}

static unsigned words(void) {
    unsigned mxcsr = 0;
    unsigned short control = 0;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(control));
    return mxcsr << 16 | control;
}

static void numbers(void) {
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
    unsigned before = words();
    H own = 0;
    unsigned codes = load(&own) | launch(memory, own) | launch(memory, own) | unload(module);
    printf("%u %x %x %d\n", codes, before, words(), fetestexcept(FE_ALL_EXCEPT));
    fedisableexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_OVERFLOW);
    before = words();
    codes = load(&own) | launch(memory, own);
    printf("%u %x %x\n", codes, before, words());
}

static void pending(void) {
    char *why;
    H own = 0;
    void *nowhere = dlsym(RTLD_DEFAULT, "of_nobody");
    unsigned codes = load(&own) | launch(memory, own) | launch(memory, own) | unload(module);
    printf("%p %u %s", nowhere, codes, (why = dlerror()) ? why : "none");
    printf(" %s\n", (why = dlerror()) ? why : "none");
    codes = load(&own) | launch(memory, own);
    printf("%u %s\n", codes, (why = dlerror()) ? why : "none");
}

static volatile int is_done;
static void *loads(void *x) {
    H own = 0;
    unsigned codes = load(&own) | launch(memory, own) | launch(memory, own) | unload(module);
    is_done = codes ? 2 : 1;
    return x;
}

static void waits(void) {
    pthread_t thread;
    pthread_create(&thread, 0, loads, 0);
    for (int i = 0; i < 1000 && !is_done; i++) usleep(10000);
    printf("done %d\n", is_done);
    fflush(stdout);
    if (!is_done) _exit(4);
    pthread_join(thread, 0);
}

static void locked(void) {
    char at[32];
    snprintf(at, sizeof at, "%lx", (unsigned long)waits);
    setenv("HOOK", at, 1);
    printf("%d\n", !!dlopen("waits.so", RTLD_NOW));
}

static void *opens(void *x) {
    while (!is_done) {
        void *library = dlopen("libutil.so.1", RTLD_NOW);
        dlsym(library, "of_nobody");
        dlclose(library);
    }
    return x;
}

static pid_t forked(void) { return fork(); }
static pid_t cloned(void) { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

/* Children that are made so launch, or only end by their handlers, while so many threads do something. */
static void children(pid_t (*make)(void), int count, void *(*meanwhile)(void *), int exits) {
    int ends = 0, status;
    pthread_t threads[2];
    for (int i = 0; i < count; i++) pthread_create(&threads[i], 0, meanwhile, 0);
    for (int i = 0; i < 40; i++) {
        usleep(i * 25);
        pid_t child = make();
        if (!child) {
            alarm(10);
            if (exits) exit(0);
            _exit(launch(memory, function) | launch(memory, function));
        }
        waitpid(child, &status, 0);
        ends += !status;
        if (status) break;
    }
    is_done = 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
    printf("ends %d\n", ends);
}

static void *goes_on(void *x) {
    while (!is_done) launch(others, function);
    return x;
}

static void *reloads(void *x) {
    H other;
    for (int i = 0; i < 60 && !is_done; i++) load(&other);
    return x;
}

static volatile char selector;
static void served(int s) { _exit(88); }
static void dispatch(void) {
    char line[512];
    unsigned long start = 0, end = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "libc.so.6") && strstr(line, "r-xp")) sscanf(line, "%lx-%lx", &start, &end);
    fclose(maps);
    signal(SIGSYS, served);
    fflush(stdout);
    selector = 1;
    int code = prctl(59, 1, start, end - start, &selector);
    unsigned codes = launch(memory, function) | launch(memory, function);
    selector = 0;
    prctl(59, 0, 0, 0, 0);
    printf("%d %u\n", code, codes);
}

static void sized(void) {
    struct { uint64_t at; unsigned count; } buffer = {memory, count};
    size_t size = -1;
    void *extra[] = {(void *)1, &buffer, (void *)2, &size, 0};
    for (int i = 0; i < 3; i++) printf("%u\n", launch_kernel(function, 4, 1, 1, 256, 1, 1, 0, 0, 0, extra));
    size = 12;
    printf("%u\n", launch_kernel(function, 4, 1, 1, 256, 1, 1, 0, 0, 0, extra));
}

#ifdef LINKED
unsigned cuDevicePrimaryCtxRelease_v2(int);
static volatile int is_there;
static void *asks(void *x) {
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    is_there = 1;
    cuDevicePrimaryCtxRelease_v2(0);
    for (;;);
}

static void *sleeps(void *x) {
    for (;;) pause();
}

static void first(void) {
    pthread_t thread;
    void *result = 0;
    /* The C library opens what it unwinds with at the first cancellation. */
    pthread_create(&thread, 0, sleeps, 0);
    pthread_cancel(thread);
    pthread_join(thread, 0);
    pthread_create(&thread, 0, asks, 0);
    while (!is_there);
    usleep(20);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    puts(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    alarm(20);
}
#endif

int main(int n, char **all) {
#ifdef LINKED
    first();
#endif
    FILE *file = fopen(all[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    begin();
    static float other[1000];
    others = (uint64_t)other;
#define IS(name) !strcmp(all[2], name)
    if (IS("numbers")) numbers();
    if (IS("error")) pending();
    if (IS("locked")) locked();
    printf("%u\n", load(&function));
    if (IS("tsc")) printf("%d\n", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    if (IS("handler")) handlers(0);
    if (IS("stack")) {
        static char place[1 << 16];
        stack_t stack = {place, 0, sizeof place};
        sigaltstack(&stack, 0);
        handlers(SA_ONSTACK);
    }
    if (IS("jump")) jumps();
    if (IS("busy")) children(forked, 2, opens, 0);
    if (IS("bare")) children(cloned, 1, reloads, 0);
    if (IS("exits")) children(cloned, 2, goes_on, 1);
    if (IS("dispatch")) dispatch();
    if (IS("size")) sized();
    if (IS("cancel")) cancels();
    if (IS("graph") || IS("gone")) graph(IS("gone"));
    if (IS("again")) again();
    if (IS("kernel")) of_kernel();
    if (IS("vfork")) {
        int status = 0;
        pid_t child = vfork();
        if (!child) {
            launch(memory, function);
            execlp("sh", "sh", "-c", "exit 5", (char *)0);
            _exit(9);
        }
        waitpid(child, &status, 0);
        printf("child %x\n", status);
    }
    printf("%u\n", launch(memory, function));
    show();
    return 3;
}
#endif
