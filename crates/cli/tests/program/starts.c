/* Removes a file and starts a shell in the way that is asked for: starts WAY FILE. The shell says which libraries it was told to load. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
#define SCRIPT "echo LD_PRELOAD=$LD_PRELOAD.; exit 7"
#define WORDS "sh", "-c", SCRIPT, (char *)NULL

int main(int argc, char **argv) {
    char *words[] = {WORDS};
    remove(argv[2]);
#define IS(name) (!strcmp(argv[1], name))
    if (IS("execve")) execve("/bin/sh", words, environ);
    if (IS("execv")) execv("/bin/sh", words);
    if (IS("execvp")) execvp("sh", words);
    if (IS("execvpe")) execvpe("sh", words, environ);
    if (IS("execl")) execl("/bin/sh", WORDS);
    if (IS("execlp")) execlp("sh", WORDS);
    if (IS("execle")) execle("/bin/sh", WORDS, environ);
    if (IS("execle-long")) execle("/bin/sh", "sh", "-c", SCRIPT, "0", "1", "2", "3", "4", (char *)NULL, environ);
    if (IS("fexecve")) fexecve(open("/bin/sh", O_RDONLY), words, environ);
    if (IS("system")) return system(SCRIPT) >> 8;
    int child = 0, status;
    if (IS("posix_spawn")) posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ);
    if (IS("posix_spawnp")) posix_spawnp(&child, "sh", NULL, NULL, words, environ);
    if (child) return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
    FILE *pipe = popen(SCRIPT, "r");
    char line[999];
    while (fgets(line, sizeof line, pipe)) fputs(line, stdout);
    return pclose(pipe) >> 8;
}
