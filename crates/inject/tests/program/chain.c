/* Starts itself in one way after the other, as its arguments say, and launches a kernel in the last: chain CUBIN [WAY]...
 * Says what it sees of its environment, and how each child ended.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char own[4096], **all, image[1 << 22], stack[1 << 18];
static int next; /* the argument that comes now */

static unsigned launch(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module, *function;
    int file = open(all[1], O_RDONLY);
    if (!driver || file < 0 || read(file, image, sizeof image) <= 0) return 1;
    close(file);
#define ASK(name, args) unsigned (*name) args = dlsym(driver, #name)
    ASK(cuInit, (unsigned));
    ASK(cuModuleLoadData, (void **, const void *));
    ASK(cuModuleGetFunction, (void **, void *, const char *));
    ASK(cuMemAlloc_v2, (uint64_t *, size_t));
    ASK(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t));
    ASK(cuMemcpyDtoH_v2, (void *, uint64_t, size_t));
    ASK(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **));
    unsigned count = 1000, code = cuInit(0);
    uint64_t memory;
    float values[1000] = {1, 2, 3};
    void *parameters[] = {&memory, &count};
    if (!code) code = cuModuleLoadData(&module, image);
    if (!code) code = cuModuleGetFunction(&function, module, "scale");
    if (!code) code = cuMemAlloc_v2(&memory, sizeof values);
    if (!code) code = cuMemcpyHtoD_v2(memory, values, sizeof values);
    if (!code) code = cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
    if (!code) code = cuMemcpyDtoH_v2(values, memory, sizeof values);
    printf("code %u, %g %g %g %g\n", code, values[0], values[1], values[2], values[3]);
    fflush(stdout);
    return code;
}

static int ended(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    printf("ended %d by %d\n", WEXITSTATUS(status), WTERMSIG(status));
    fflush(stdout);
    return WEXITSTATUS(status);
}

static char **words(void) { all[next - 1] = all[1]; all[next - 2] = own; return all + next - 2; }
static int become(void *environment) { execve(own, words(), environment ? environment : environ); return 91; }
static int go(void);
static int child(pid_t number) { if (number) return ended(number); int code = go(); fflush(stdout); _exit(code); }

/* The environment without some names, and with entries that are odd. */
static char **environment(int is_odd) {
    static char *made[1000] = {"ODD=1", "ODD=2", "no sign", "=nameless"};
    int count = is_odd ? 4 : 0;
    for (char **one = environ; *one && count < 999; one++)
        if (is_odd || !strncmp(*one, "LD_LIBRARY", 10) || !strncmp(*one, "FAKE", 4)) made[count++] = *one;
    made[count] = NULL;
    return made;
}

static int go(void) {
    char *way = all[next++];
    if (!way) return launch();
#define IS(name) !strcmp(way, name)
    pid_t number;
    if (IS("launch")) launch();
    if (IS("fork")) return child(fork());
    if (IS("session")) { if (!(number = fork())) { setsid(); _exit(child(0)); } return ended(number); }
    if (IS("exec")) return become(NULL);
    if (IS("exec-bare")) return become(environment(0));
    if (IS("exec-odd")) return become(environment(1));
    if (IS("exec-kernel")) { syscall(SYS_execve, own, words(), environ); return 91; }
    if (IS("exec-file")) { fexecve(open(own, O_RDONLY | O_CLOEXEC), words(), environ); return 91; }
    if (IS("exec-path")) { execvp(own, words()); return 91; }
    if (IS("vfork")) { if (!(number = vfork())) _exit(become(NULL)); return ended(number); }
    if (IS("vfork-bare")) { char **bare = environment(0); if (!(number = vfork())) _exit(become(bare)); return ended(number); }
    if (IS("clone")) { if (!(number = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) _exit(become(NULL)); return ended(number); }
    if (IS("shared")) return ended(clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    if (IS("spawn")) return posix_spawn(&number, own, NULL, NULL, words(), environ) ? 92 : ended(number);
    if (IS("spawn-closed")) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        return posix_spawnp(&number, own, &actions, NULL, words(), environ) ? 92 : ended(number);
    }
    if (IS("daemon")) { /* its launcher is gone, and it says that it has ended */
        int both[2], code = 95;
        if (pipe(both)) return 94;
        if (!(number = fork())) { if (fork()) _exit(0); setsid(); close(both[0]); code = go(); fflush(stdout); _exit(write(both[1], &code, sizeof code)); }
        close(both[1]);
        if (read(both[0], &code, sizeof code) < 0) code = 96;
        ended(number);
        return code;
    }
    if (IS("close")) for (int i = 3; i < 256; i++) close(i);
    if (IS("block")) { sigset_t set; sigfillset(&set); sigprocmask(SIG_SETMASK, &set, NULL); }
    if (IS("ignore")) signal(SIGCHLD, SIG_IGN);
    if (IS("root")) if (chdir("/")) return 97;
    if (IS("unset")) unsetenv("LD_PRELOAD");
    if (IS("other")) setenv("LD_PRELOAD", "libm.so.6", 1);
    if (IS("privileges")) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (IS("undumpable")) prctl(PR_SET_DUMPABLE, 0);
    if (IS("environment"))
        for (char **one = environ; *one; one++) if (strncmp(*one, "LD_PRELOAD=", 11) && strncmp(*one, "WARPWRIGHT", 10) && strncmp(*one, "CUPY_CACHE_DIR=", 15)) puts(*one);
    fflush(stdout);
    return go();
}

int main(int count, char **given) {
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return 99;
    all = given;
    next = 2;
    int code = go();
    fflush(stdout);
    return code;
}
