/* Starts others in every way while a library cannot be opened, or can again: beyond LIBRARY WAY... */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *sh[] = {"sh", "-c", "echo started $LD_PRELOAD; exit 3", NULL};
static void *sys(void *x) { int r = system("sleep 5"); return (void *)(long)r; }
static void *spawn(void *x) { int c, s; int r = posix_spawn(&c, "/bin/sh", NULL, NULL, sh, environ); if (!r) waitpid(c, &s, 0); printf("spawn %d %x\n", r, s); return NULL; }
static void *vforks(void *x) { int s, c = vfork(); if (!c) { execv("/bin/sh", sh); _exit(1); } waitpid(c, &s, 0); printf("vfork %x\n", s); return NULL; }
static void on_stack(size_t size, void *(*f)(void *)) { pthread_t t; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, size); if (pthread_create(&t, &a, f, NULL)) puts("no thread"); else pthread_join(t, NULL); }
static void handler(int s) { int st, c = fork(); if (!c) { execl("/bin/sh", "sh", "-c", "echo handler; exit 4", NULL); _exit(1); } waitpid(c, &st, 0); }
static void many(int n) { char t[40]; for (int i = 0; i < n; i++) { sprintf(t, "M%d", i); setenv(t, "x", 1); } }
int main(int n, char **w) {
    char away[4096]; int s, c; snprintf(away, sizeof away, "%s.away", w[1]);
    int hidden = 0;
    for (int i = 2; i < n; i++) {
        fflush(stdout);
#define IS(x) !strcmp(w[i], x)
        if (IS("hide")) { rename(w[1], away); hidden = 1; }
        else if (IS("unhide")) { rename(away, w[1]); hidden = 0; }
        else if (IS("cancel")) { pthread_t t; void *r; pthread_create(&t, NULL, sys, NULL); usleep(30000); pthread_cancel(t); pthread_join(t, &r); printf("cancel %d\n", r == PTHREAD_CANCELED); }
        else if (IS("cancel-spawn")) { pthread_t t; void *r; pthread_create(&t, NULL, sys, NULL); pthread_cancel(t); pthread_join(t, &r); puts("cancelled"); }
        else if (IS("small-spawn")) on_stack(16384, spawn);
        else if (IS("small-vfork")) on_stack(16384 + 4096, vforks);
        else if (IS("spawn")) spawn(NULL);
        else if (IS("vfork")) vforks(NULL);
        else if (IS("handler")) { static char st[8192]; stack_t k = {st, 0, sizeof st}; sigaltstack(&k, NULL); sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL); raise(SIGUSR1); puts("handled"); }
        else if (IS("many")) many(150);
        else if (IS("null-argv")) { if (!(c = fork())) { execve("/bin/true", NULL, environ); _exit(errno); } waitpid(c, &s, 0); printf("null %x\n", s); }
        else if (IS("null-env")) { if (!(c = fork())) { execve("/bin/sh", sh, NULL); _exit(errno); } waitpid(c, &s, 0); printf("null %x\n", s); }
        else if (IS("no-environ")) { char **e = environ; environ = NULL; if (!(c = fork())) { execvp("/bin/sh", sh); _exit(errno); } waitpid(c, &s, 0); printf("none %x %d\n", s, system("exit 2")); environ = e; }
        else if (IS("bad")) { errno = 0; if (!(c = fork())) { execv("/nowhere", sh); printf("errno %d\n", errno); execl("/etc/passwd", "x", NULL); printf("errno %d\n", errno); execvp("nowhere-at-all", sh); printf("errno %d\n", errno); fexecve(-1, sh, environ); printf("errno %d\n", errno); fflush(stdout); _exit(1); } waitpid(c, &s, 0); printf("bad %d\n", posix_spawn(&c, "/nowhere", NULL, NULL, sh, environ)); }
        else if (IS("system-null")) printf("system %d\n", system(NULL) != 0);
        else if (IS("popen-bad")) { errno = 0; FILE *f = popen("true", "zz"); printf("popen %d %d\n", !!f, errno); }
        else if (IS("popen-e")) { FILE *f = popen("echo from; exit 2", "re"); char l[99] = ""; fgets(l, 99, f); printf("popen %s %x\n", l, pclose(f)); }
        else if (IS("attributes")) { posix_spawnattr_t a; posix_spawnattr_init(&a); sigset_t m; sigemptyset(&m); sigaddset(&m, SIGTERM); posix_spawnattr_setsigmask(&a, &m); posix_spawnattr_setflags(&a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_USEVFORK); char *g[] = {"grep", "SigBlk", "/proc/self/status", NULL}; int r = posix_spawnp(NULL, "grep", NULL, &a, g, environ); printf("attributes %d\n", r); wait(&s); }
        else if (IS("script")) { FILE *f = fopen("noshebang", "w"); fputs("echo script $LD_PRELOAD\nexit 6\n", f); fclose(f); chmod("noshebang", 0755); char *a[] = {"noshebang", NULL}; if (!(c = fork())) { execvp("./noshebang", a); _exit(errno); } waitpid(c, &s, 0); printf("script %x\n", s); if (!(c = fork())) { execve("./noshebang", a, environ); _exit(errno); } waitpid(c, &s, 0); printf("script %x %d\n", s, posix_spawn(&c, "./noshebang", NULL, NULL, a, environ)); }
        else if (IS("const")) { if (!(c = vfork())) { static char *const e[] = {"A=1", NULL}; execve("/bin/sh", sh, e); _exit(1); } waitpid(c, &s, 0); printf("const %x\n", s); }
        else if (IS("list-20")) { if (!(c = fork())) { execl("/bin/echo", "echo", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", NULL); _exit(1); } waitpid(c, &s, 0); printf("list %x\n", s); }
        else if (IS("kept")) printf("kept %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "-");
        else if (IS("threads")) { pthread_t t[6]; for (int j = 0; j < 6; j++) pthread_create(&t[j], NULL, j & 1 ? spawn : vforks, NULL); for (int j = 0; j < 6; j++) pthread_join(t[j], NULL); }
        else puts("?");
    }
    if (hidden) rename(away, w[1]);
    return 11;
}
