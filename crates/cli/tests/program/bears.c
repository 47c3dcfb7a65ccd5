/* What a process keeps when it becomes another program.
 *   bears set FILE PROGRAM...   a signal for the parent's end, orphans, waiting signals, a lock on a file, a timer, a child
 *   bears show FILE             what of it is there; the last line is what a child of its does not have
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    int file = open(words[2], O_RDWR | O_CREAT, 0600), value = -1;
    struct flock lock = {.l_type = F_WRLCK};
    sigset_t set;
    if (!strcmp(words[1], "set")) {
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGRTMIN + 3);
        sigprocmask(SIG_BLOCK, &set, 0);
        raise(SIGUSR1);
        kill(getpid(), SIGRTMIN + 3);
        prctl(PR_SET_PDEATHSIG, SIGUSR2);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        fcntl(file, F_SETLK, &lock);
        alarm(100);
        if (!fork()) _exit(7);
        execvp(words[3], words + 3);
        return 1;
    }
    prctl(PR_GET_PDEATHSIG, &value);
    printf("death %d", value);
    prctl(PR_GET_CHILD_SUBREAPER, &value);
    printf(" reaps %d waiting", value);
    sigpending(&set);
    for (int i = 1; i < 65; i++) if (sigismember(&set, i)) printf(" %d", i);
    puts("");
    fflush(stdout);
    if (!(value = fork())) {
        fcntl(file, F_GETLK, &lock);
        printf("lock %d", lock.l_type == F_WRLCK && lock.l_pid == getppid());
        fflush(stdout);
        _exit(0);
    }
    waitpid(value, 0, 0);
    int status = 0, others = waitpid(-1, &status, 0) > 0;
    printf(" timer %d child %d %x\n", alarm(0) > 0, others, status);
    return 4;
}
