/* Starts its arguments and takes in their orphans: says how each ended, the program's own line first. */
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status, own, found, others[64], count = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!(own = fork())) {
        execvp(argv[1], argv + 1);
        return 1;
    }
    while ((found = wait(&status)) > 0) {
        if (found == own) printf("own %x\n", status);
        else if (count < 64) others[count++] = status;
    }
    for (int i = 0; i < count; i++) printf("other %x\n", others[i]);
    return 0;
}
