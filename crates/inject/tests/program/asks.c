/* Says what a program sees of itself: attributes, limits, descriptors, what reading its standard input gives; what the dynamic
 * linker answers: asks WHAT, where WHAT is `self`, `input`, `linker` or `race`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void self(void) {
    int value = -1;
    prctl(PR_GET_PDEATHSIG, &value);
    printf("pdeathsig %d dumpable %d\n", value, prctl(PR_GET_DUMPABLE));
    prctl(PR_GET_CHILD_SUBREAPER, &value);
    printf("subreaper %d new-privs %d keep-caps %d slack %d seccomp %d secure %d\n", value, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
           prctl(PR_GET_KEEPCAPS), prctl(PR_GET_TIMERSLACK), prctl(PR_GET_SECCOMP), prctl(PR_GET_SECUREBITS));
    printf("nice %d policy %d umask %o\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), umask(0));
    for (int i = 0; i < RLIMIT_NLIMITS; i++) {
        struct rlimit limit;
        getrlimit(i, &limit);
        printf("%d:%lx,%lx ", i, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("\ncpus %d children %d\n", CPU_COUNT(&cpus), waitpid(-1, NULL, WNOHANG) == -1 ? errno : 0);
    for (int i = 0; i < 4; i++) {
        struct itimerval timer;
        if (!getitimer(i % 3, &timer)) printf("timer %ld ", (long)timer.it_value.tv_sec);
    }
    sigset_t set;
    sigprocmask(SIG_SETMASK, NULL, &set);
    for (int i = 1; i < 65; i++) {
        struct sigaction action = {0};
        sigaction(i, NULL, &action);
        printf("%d%d", sigismember(&set, i), action.sa_handler == SIG_IGN ? 1 : action.sa_handler == SIG_DFL ? 0 : 2);
    }
    stack_t stack;
    sigaltstack(NULL, &stack);
    printf("\nstack %d\n", stack.ss_flags);
}

static void input(void) {
    struct stat data;
    char byte;
    for (int i = 0; i < 40; i++) {
        if (fcntl(i, F_GETFD) == -1) continue;
        fstat(i, &data);
        printf("%d %x %x %o\n", i, fcntl(i, F_GETFD), fcntl(i, F_GETFL), data.st_mode & S_IFMT);
    }
    errno = 0;
    ssize_t count = read(0, &byte, 1);
    printf("read %zd %d\n", count, errno);
}

static void linker(void) {
    const char *names[] = {"cuInit", "cuLaunchKernel", "curl_easy_init", "cudaMalloc", "nvrtcVersion", "printf", "", "cu", "cuX", "__nvrtcX"};
    void *own = dlopen(NULL, RTLD_LAZY), *driver = dlopen("libcuda.so.1", RTLD_LAZY | (getenv("DEEP") ? RTLD_DEEPBIND : 0));
    errno = 42;
    for (int i = 0; i < 10; i++) {
        dlerror();
        void *found = dlsym(driver, names[i]);
        char *why = dlerror();
        printf("%s: %d %d errno %d\n", names[i], !!found, !!why, errno);
        found = dlsym(RTLD_NEXT, names[i]);
        why = dlerror();
        printf("  %d %d\n", !!found, !!why);
    }
    void *away = dlopen("/nowhere.so", RTLD_LAZY);
    printf("away %d %s\n", !!away, dlerror());
    printf("again %d\n", !!dlerror());
    void *malloced = dlsym(own, "malloc");
    printf("malloc %d\n", malloced == (void *)malloc);
    dlclose(driver);
    for (int i = 0; i < 3; i++) {
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        printf("init %u\n", ((unsigned (*)(unsigned))dlsym(driver, "cuInit"))(0));
        dlclose(driver);
    }
}

static pthread_barrier_t barrier;

static void *first(void *driver) {
    unsigned count = 0;
    pthread_barrier_wait(&barrier);
    unsigned (*counted)(unsigned *) = dlsym(driver, "cuDeviceGetCount");
    void *load = dlsym(driver, "cuModuleLoadData");
    if (counted) counted(&count);
    return (void *)(long)(load ? count : 99);
}

static int holds(struct dl_phdr_info *i, size_t n, void *x) {
    for (int turn = 0; turn < 2; turn++) pthread_barrier_wait(&barrier);
    return 1;
}
static void *locks(void *x) { return (void *)(long)dl_iterate_phdr(holds, x); }

static void child(void *driver) {
    int status, child = fork();
    if (!child) _exit(dlsym(driver, "cuLaunchKernel") ? 3 : 4);
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
}

/* Many threads ask first, while children are forked; before that one is forked while a thread holds a lock of the dynamic linker's. */
static void race(void) {
    pthread_t threads[16];
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY), *result;
    ((unsigned (*)(unsigned))dlsym(driver, "cuInit"))(0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(threads, NULL, locks, NULL);
    pthread_barrier_wait(&barrier);
    child(driver);
    pthread_barrier_wait(&barrier);
    pthread_join(threads[0], NULL);
    pthread_barrier_destroy(&barrier);
    pthread_barrier_init(&barrier, NULL, 17);
    for (int i = 0; i < 16; i++) pthread_create(&threads[i], NULL, first, driver);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 4; i++) child(driver);
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], &result);
        printf("%ld ", (long)result);
    }
    puts("");
}

int main(int count, char **words) {
    if (!strcmp(words[1], "self")) self();
    if (!strcmp(words[1], "input")) input();
    if (!strcmp(words[1], "linker")) linker();
    if (!strcmp(words[1], "race")) race();
    return 6;
}
