/* Takes something from itself and becomes another program: few KIND PROGRAM ARGS, where KIND is
 *   files     no file may be opened
 *   prctl     `openat` is refused, by a filter that is set so
 *   syscall   the same
 *   vfork     the same in a child between `vfork` and exec; the program is started once more behind it, without the library
 *   none      nothing
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
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
    execv(words[2], words + 2);
    return 8;
}
