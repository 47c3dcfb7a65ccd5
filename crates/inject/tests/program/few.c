/* Takes something from itself and becomes another program: few KIND PROGRAM ARGS, where KIND is
 *   files     no file may be opened
 *   prctl     `openat` is refused, by a filter that is set so
 *   syscall   the same
 *   vfork     the same in a child between `vfork` and exec; the program is started once more behind it
 *   ways      PROGRAM alone is moved away while a shell is started in every way, in children of `vfork` as well
 *   others    PROGRAM is started in every way; it says whether it has the library (-c)
 *   long      says how long the last of many arguments may be
 *   shell     says how long a shell's command may be
 *   none      nothing
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void forbid(int by_prctl) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (by_prctl) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    else syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

extern char **environ;
static const char *path = "/bin/sh", *name = "sh";
static char *shell[] = {"sh", "-c", "echo $0 $LD_PRELOAD", NULL, NULL};

/* An environment that nobody may write. */
static char **constant(void) {
    char **made = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made[0] = (char *)(made + 3);
    made[1] = made[0] + sprintf(made[0], "B=1") + 1;
    snprintf(made[1], 4096, "LD_PRELOAD=%s", getenv("LD_PRELOAD") ?: "");
    mprotect(made, 8192, PROT_READ);
    return made;
}

static void become(int way) {
    char *word = shell[3];
    switch (way) {
    case 0: execv(path, shell); break;
    case 1: execve(path, shell, environ); break;
    case 2: execvp(name, shell); break;
    case 3: execvpe(name, shell, environ); break;
    case 4: execl(path, "sh", "-c", "echo $*", "0", "1", "2", "3", "4", "5", "6", "7", "8", word, NULL); break;
    case 5: execlp(name, "sh", "-c", shell[2], word, NULL); break;
    case 6: execle(path, "sh", "-c", shell[2], word, NULL, environ); break;
    case 7: fexecve(open(path, O_RDONLY | O_CLOEXEC), shell, environ); break;
    case 8: execve(path, shell, constant()); break;
    case 9: execv("/nowhere", shell); break;
    case 10: execl("/nowhere", "sh", "-c", shell[2], word, NULL); break;
    case 11: execve(path, shell, NULL); break;
    case 14: execveat(AT_FDCWD, path, shell, environ, 0); break;
    case 15: fexecve(open(path, O_PATH), shell, environ); break;
    }
    _exit(errno);
}

/* In another folder. */
static int spawned_elsewhere(void) {
    int status, child;
    char folder[4096], file[4096];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    snprintf(file, sizeof file, "./%s", name);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    int code = posix_spawn(&child, file, &actions, NULL, shell, environ);
    return code ? code : waitpid(child, &status, 0) == child ? status : -1;
}

static int spawned(int how) {
    int status, child;
    int code = how ? posix_spawnp(&child, name, NULL, NULL, shell, environ) : posix_spawn(&child, path, NULL, NULL, shell, environ);
    return code ? code : waitpid(child, &status, 0) == child ? status : -1;
}

static void ways(const char *library) {
    char away[4096], word[16], before[4096];
    snprintf(away, sizeof away, "%s.away", library);
    snprintf(before, sizeof before, "%s", getenv("LD_PRELOAD"));
    shell[3] = word;
    for (int way = 0; way < 17; way++) {
        int status = 0, child;
        snprintf(word, sizeof word, "way-%d", way);
        rename(library, away);
        if (way < 12) {
            if (!(child = vfork())) become(way);
            waitpid(child, &status, 0);
        }
        if (way == 12 || way == 13) status = spawned(way == 13);
        if (way == 14) status = system("echo system $LD_PRELOAD; exit 3");
        if (way == 15) status = pclose(popen("echo popen $LD_PRELOAD; exit 4", "w"));
        if (way == 16) status = system(NULL);
        rename(away, library);
        printf("%d %d %d\n", way, status, !strcmp(before, getenv("LD_PRELOAD")));
        fflush(stdout);
    }
}

static void others(const char *program) {
    char word[] = "other", folder[4096];
    /* A long one. */
    char slashes[600];
    memset(slashes, '/', sizeof slashes);
    snprintf(folder, sizeof folder, "/nowhere::%.600s%s", slashes, program);
    path = program, name = strrchr(program, '/') + 1;
    *strrchr(folder, '/') = 0;
    setenv("PATH", folder, 1);
    shell[3] = word;
    for (int way = 0; way < 17; way++) {
        int status = 0, child;
        if (way == 9 || way == 10) continue;
        if (way < 12 || way == 14 || way == 15) {
            if (!(child = vfork())) become(way);
            waitpid(child, &status, 0);
        } else status = way == 16 ? spawned_elsewhere() : spawned(way == 13);
        printf("%d %d\n", way, status);
        fflush(stdout);
    }
}

static void has_library(void) {
    char line[4096];
    int has = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) has |= !!strstr(line, "warpwright");
    printf("has it: %d\n", has);
}

static int starts(int way, char **words) {
    int status = -1, child;
    if (way == 2) {
        if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ)) return 0;
    } else if (!(child = vfork())) {
        if (way) execve("/bin/true", words, environ);
        execv("/bin/true", words);
        _exit(7);
    }
    waitpid(child, &status, 0);
    return !status;
}

/* All arguments and the environment take 2 MiB at most, of a stack of 8 MiB. */
static void long_ones(void) {
    enum { EACH = 131000, COUNT = 15 };
    static char full[EACH + 1], last[EACH + 1], *words[COUNT + 3] = {"true"};
    memset(full, 'y', EACH);
    for (int i = 1; i <= COUNT; i++) words[i] = full;
    words[COUNT + 1] = last;
    for (int way = 0; way < 3; way++) {
        int low = 0, high = EACH;
        while (low < high) {
            int middle = (low + high + 1) / 2;
            memset(last, 'z', middle), last[middle] = 0;
            if (starts(way, words)) low = middle;
            else high = middle - 1;
        }
        printf("%d %d\n", way, low);
    }
}

static int runs(int is_popen, const char *command) {
    if (!is_popen) return !system(command);
    FILE *shell = popen(command, "w");
    return shell && !pclose(shell);
}

static void long_commands(void) {
    enum { MOST = 131000 };
    static char command[MOST + 1];
    for (int way = 0; way < 2; way++) {
        int low = 0, high = MOST;
        while (low < high) {
            int middle = (low + high + 1) / 2;
            memset(command, 'z', middle), command[middle] = 0;
            memcpy(command, ": ", 2);
            if (runs(way, command)) low = middle;
            else high = middle - 1;
        }
        printf("%d %d\n", way, low);
    }
}

int main(int count, char **words) {
    const char *kind = words[1];
    if (!strcmp(kind, "files")) setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
    if (!strcmp(kind, "prctl") || !strcmp(kind, "syscall")) forbid(kind[0] == 'p');
    if (!strcmp(kind, "vfork")) {
        int status, child = vfork();
        if (!child) {
            forbid(1);
            execv(words[2], words + 2);
            _exit(9);
        }
        waitpid(child, &status, 0);
    }
    if (!strcmp(kind, "-c")) return has_library(), 5;
    if (!strcmp(kind, "others")) return others(words[2]), 0;
    if (!strcmp(kind, "long")) return long_ones(), 0;
    if (!strcmp(kind, "shell")) return long_commands(), 0;
    if (!strcmp(kind, "ways")) {
        ways(words[2]);
        return 0;
    }
    execv(words[2], words + 2);
    return 8;
}
