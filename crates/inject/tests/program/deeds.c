/* What programs do with themselves around the driver: deeds CUBIN DEED... Each deed says what came of it, where that is the same
 * in every run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char image[1 << 22];
static char **words;
static void *driver, *module, *function;
static uint64_t memory;
static unsigned count = 1000;
#define ALL(F) F(cuInit, (unsigned)) F(cuModuleLoadData, (void **, const void *)) F(cuModuleGetFunction, (void **, void *, const char *)) F(cuModuleUnload, (void *)) \
    F(cuMemAlloc_v2, (uint64_t *, size_t)) F(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t)) F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) F(cuCtxSynchronize, (void)) \
    F(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
#define DECLARE(name, args) static unsigned (*name) args;
ALL(DECLARE)

static void find(void *from) {
#define FIND(name, args) name = dlsym(from, #name);
    ALL(FIND)
}
static unsigned load(void) {
    unsigned code = cuModuleLoadData(&module, image);
    return code ? code : cuModuleGetFunction(&function, module, "scale");
}
static unsigned launch(void) {
    void *parameters[] = {&memory, &count};
    return cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
}
static void begin(void) {
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) { puts("no driver"); exit(1); }
    find(driver);
    float zeros[1000] = {0};
    unsigned a = cuInit(0), b = cuMemAlloc_v2(&memory, sizeof zeros), c = cuMemcpyHtoD_v2(memory, zeros, sizeof zeros), d = load();
    printf("begin %u %u %u %u\n", a, b, c, d);
}
static void show(void) {
    float values[1000];
    double sum = 0;
    unsigned code = cuMemcpyDtoH_v2(values, memory, sizeof values);
    for (int i = 0; i < 1000; i++) sum += values[i];
    printf("sum %u %.0f\n", code, sum);
    fflush(stdout);
}
static void *launches(void *times) {
    long bad = 0;
    for (long i = 0; i < (long)times; i++) bad += launch() != 0;
    return (void *)bad;
}
static void *forever(void *x) { for (;;) launch(); return x; }
static void *execs(void *x) { char *w[] = {"sh", "-c", "echo exec; exit 21", NULL}; execv("/bin/sh", w); return x; }
static void at_end(void) { printf("at end %u\n", launch()); show(); }
static volatile int ticks;
static void tick(int s) { ticks++; }
static jmp_buf back;
static void jump(int s) { siglongjmp(back, 1); }
static void limit(int what, rlim_t value) { struct rlimit l = {value, RLIM_INFINITY}; getrlimit(what, &l); l.rlim_cur = value; printf("limit %d\n", setrlimit(what, &l)); }
static void threads(int number, void *(*work)(void *), void *with, int join) {
    pthread_t all[16];
    int made = 0;
    while (made < number && !pthread_create(&all[made], NULL, work, with)) made++;
    for (int i = 0; join && i < made; i++) pthread_join(all[i], NULL);
    printf("threads %d\n", made);
}
static void *main_gone(void *x) { usleep(20000); for (int i = 0; i < 3; i++) launch(); show(); exit(17); }
static void *big_frames(void *x) { volatile char a[100000]; a[0] = 1; return (void *)(long)launch(); }
static void thread_of(size_t stack) { pthread_t t; pthread_attr_t a; void *r; pthread_attr_init(&a); pthread_attr_setstacksize(&a, stack); int c = pthread_create(&t, &a, launches, (void *)20); if (!c) pthread_join(t, &r); printf("small thread %d\n", c); }

static __attribute__((noinline)) void overflow(void) { volatile char a[1 << 20]; a[0] = 1; overflow(); a[1] = a[0]; }
static void does(const char *deed) {
#define IS(name) !strcmp(deed, name)
    int status = 0;
    pid_t child;
    if (IS("begin")) begin();
    else if (IS("launch")) printf("launch %u\n", launch());
    else if (IS("show")) show();
    else if (IS("many")) launches((void *)5000);
    else if (IS("load")) printf("load %u\n", load());
    else if (IS("unload")) { unsigned a = cuModuleUnload(module), b = load(); printf("unload %u %u\n", a, b); }
    else if (IS("threads")) threads(8, launches, (void *)200, 1);
    else if (IS("running")) threads(3, forever, NULL, 0);
    else if (IS("atexit")) atexit(at_end);
    else if (IS("main-gone")) { threads(1, main_gone, NULL, 0); fflush(stdout); pthread_exit(NULL); }
    else if (IS("thread-exec")) { fflush(stdout); threads(1, execs, NULL, 1); }
    else if (IS("quick")) { fflush(stdout); quick_exit(18); }
    else if (IS("_exit")) { fflush(stdout); _exit(19); }
    else if (IS("abort")) { fflush(stdout); abort(); }
    else if (IS("null")) { fflush(stdout); *(volatile int *)8 = 1; }
    else if (IS("divide")) { fflush(stdout); volatile int z = 0; printf("%d", 1 / z); }
    else if (IS("trap")) { fflush(stdout); __builtin_trap(); }
    else if (IS("bus")) { fflush(stdout); FILE *f = tmpfile(); char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0); printf("%d", p[0]); }
    else if (IS("overflow")) { fflush(stdout); overflow(); }
    else if (IS("kill")) { fflush(stdout); kill(getpid(), SIGKILL); }
    else if (IS("again")) { int c = dlclose(driver); driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); find(driver); printf("again %d %d\n", c, !!cuInit); }
    else if (IS("global")) { driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); find(RTLD_DEFAULT); printf("global %d\n", !!cuInit); if (!cuInit) find(driver); }
    else if (IS("namespace")) { void *other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW); printf("namespace %d\n", !!other); if (other) { unsigned (*f)(unsigned) = dlsym(other, "cuInit"); printf("  %d\n", f ? (int)f(0) : -1); } }
    else if (IS("timer")) { struct itimerval t = {{0, 300}, {0, 300}}; signal(SIGALRM, tick); setitimer(ITIMER_REAL, &t, NULL); launches((void *)20000); setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL); printf("timer %d\n", ticks > 0); }
    else if (IS("profile")) { struct itimerval t = {{0, 1000}, {0, 1000}}; signal(SIGPROF, tick); setitimer(ITIMER_PROF, &t, NULL); launches((void *)20000); setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL); puts("profile"); }
    else if (IS("fault")) { signal(SIGSEGV, jump); if (!sigsetjmp(back, 1)) *(volatile int *)8 = 1; signal(SIGSEGV, SIG_DFL); puts("fault"); }
    else if (IS("altstack")) { static char place[1 << 16]; stack_t s = {place, 0, sizeof place}; sigaltstack(&s, NULL); sigaction(SIGSEGV, &(struct sigaction){.sa_handler = jump, .sa_flags = SA_ONSTACK}, NULL); if (!sigsetjmp(back, 1)) *(volatile int *)8 = 1; signal(SIGSEGV, SIG_DFL); puts("altstack"); }
    else if (IS("fork")) { fflush(stdout); if (!(child = fork())) { puts("child"); exit(3); } waitpid(child, &status, 0); printf("fork %x\n", status); }
    else if (IS("fork-crash")) { fflush(stdout); if (!(child = fork())) *(volatile int *)8 = 1; waitpid(child, &status, 0); printf("fork %x\n", status & 0x7f); }
    else if (IS("fork-begin")) { fflush(stdout); if (!(child = fork())) { execl("/proc/self/exe", words[0], words[1], "begin", "launch", "show", NULL); _exit(90); } waitpid(child, &status, 0); printf("fork %x\n", status); }
    else if (IS("forks")) { fflush(stdout); threads(2, launches, (void *)3000, 0); for (int i = 0; i < 10; i++) { if (!(child = fork())) _exit(i); waitpid(child, &status, 0); printf("%x ", status); } puts(""); usleep(30000); }
    else if (IS("system")) { fflush(stdout); printf("system %x\n", system("echo shell; exit 5")); }
    else if (IS("popen")) { fflush(stdout); FILE *f = popen("cat; exit 6", "w"); fputs("to a pipe\n", f); printf("popen %x\n", pclose(f)); }
    else if (IS("files")) limit(RLIMIT_NOFILE, 3);
    else if (IS("few-files")) limit(RLIMIT_NOFILE, 8);
    else if (IS("fsize")) limit(RLIMIT_FSIZE, 0);
    else if (IS("data")) limit(RLIMIT_DATA, 1 << 20);
    else if (IS("stack")) limit(RLIMIT_STACK, 1 << 16);
    else if (IS("nproc")) limit(RLIMIT_NPROC, 1);
    else if (IS("core")) limit(RLIMIT_CORE, 0);
    else if (IS("memlock")) limit(RLIMIT_MEMLOCK, 0);
    else if (IS("sigpending")) limit(RLIMIT_SIGPENDING, 0);
    else if (IS("lock")) printf("lock %d\n", mlockall(MCL_CURRENT) == 0 || errno);
    else if (IS("cwd")) printf("cwd %d\n", chdir("/"));
    else if (IS("gone")) { mkdir("gone", 0700); if (chdir("gone")) puts("no"); rmdir("../gone"); }
    else if (IS("umask")) umask(0777);
    else if (IS("nobody")) printf("nobody %d %d\n", setgid(65534), setuid(65534));
    else if (IS("chroot")) { printf("chroot %d\n", chroot(".")); }
    else if (IS("close")) { for (int i = 3; i < 1024; i++) close(i); }
    else if (IS("close-range")) { syscall(SYS_close_range, 3, ~0u, 0); }
    else if (IS("lowest")) { int a = open("/dev/null", O_RDONLY), b = dup(0); printf("lowest %d %d\n", a, b); close(a); close(b); }
    else if (IS("descriptors")) { for (int i = 0; i < 64; i++) { struct stat s; if (fcntl(i, F_GETFD) != -1 && !fstat(i, &s)) printf("%d:%o ", i, s.st_mode & S_IFMT); } puts(""); }
    else if (IS("stdin-own")) { close(0); printf("opened %d\n", open("/etc/passwd", O_RDONLY)); }
    else if (IS("err-closed")) { close(2); int a = open("/dev/null", O_WRONLY); printf("opened %d\n", a); }
    else if (IS("clearenv")) clearenv();
    else if (IS("environ")) { extern char **environ; environ = NULL; }
    else if (IS("argv")) { memset(words[1], 'x', strlen(words[1])); }
    else if (IS("name")) { prctl(PR_SET_NAME, "name) R 1"); }
    else if (IS("new-privs")) printf("privs %d\n", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    else if (IS("subreaper")) printf("subreaper %d\n", prctl(PR_SET_CHILD_SUBREAPER, 1));
    else if (IS("children")) { int found = 0; while (waitpid(-1, &status, WNOHANG) > 0) found++; printf("children %d %d\n", found, errno); }
    else if (IS("undumpable")) prctl(PR_SET_DUMPABLE, 0);
    else if (IS("death")) prctl(PR_SET_PDEATHSIG, SIGTERM);
    else if (IS("tsc")) { int v = -1; prctl(PR_GET_TSC, &v); printf("tsc %d\n", v); }
    else if (IS("block")) { sigset_t s; sigfillset(&s); sigprocmask(SIG_SETMASK, &s, NULL); }
    else if (IS("ignore")) for (int i = 1; i < 65; i++) signal(i, SIG_IGN);
    else if (IS("default")) for (int i = 1; i < 65; i++) signal(i, SIG_DFL);
    else if (IS("actions")) { for (int i = 1; i < 65; i++) { struct sigaction a = {0}; sigaction(i, NULL, &a); printf("%d", a.sa_handler == SIG_DFL ? 0 : a.sa_handler == SIG_IGN ? 1 : 2); } puts(""); }
    else if (IS("cancel")) { pthread_t t; void *r; pthread_create(&t, NULL, forever, NULL); usleep(1000); pthread_cancel(t); puts("cancel"); }
    else if (IS("small-thread")) thread_of(16384);
    else if (IS("thread-64")) thread_of(65536);
    else if (IS("errno")) { errno = 77; launch(); printf("errno %d\n", errno); errno = 78; dlsym(driver, "cuFoo"); dlerror(); dlsym(RTLD_DEFAULT, "cuLaunchKernel"); printf("errno %d\n", errno); }
    else if (IS("rounding")) { unsigned m; __asm__ volatile("stmxcsr %0" : "=m"(m)); unsigned n = m | 0x8040; __asm__ volatile("ldmxcsr %0" ::"m"(n)); launch(); load(); __asm__ volatile("stmxcsr %0" : "=m"(n)); printf("rounding %x\n", n & 0xffc0); __asm__ volatile("ldmxcsr %0" ::"m"(m)); }
    else if (IS("info")) { Dl_info i = {0}; int a = dladdr(cuLaunchKernel, &i); printf("info %d\n", a); }
    else if (IS("sleep")) usleep(30000);
    else if (IS("stderr")) fprintf(stderr, "to stderr");
    else printf("unknown %s\n", deed);
    fflush(stdout);
}

int main(int n, char **all) {
    words = all;
    FILE *f = fopen(all[1], "r");
    if (!f || !fread(image, 1, sizeof image, f)) return 2;
    fclose(f);
    for (int i = 2; i < n; i++) does(all[i]);
    puts("end");
    return n % 7;
}
