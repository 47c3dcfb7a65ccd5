/* Preloaded into what is to run short of something:
 *   SHORT_DISK=N     regular files take N bytes from this process, then the disk is full; with SHORT_KILL=1 it is killed there
 *   SHORT_THREADS=1  no thread starts
 *   SHORT_LATER=1    none does once this process has forked
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t written;
static int has_forked;

static void note(void) { has_forked = 1; }
__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, note, NULL); }

static int is_full(int file, size_t bytes) {
    const char *most = getenv("SHORT_DISK");
    struct stat data;
    if (!most || fstat(file, &data) || !S_ISREG(data.st_mode)) return 0;
    if (__atomic_add_fetch(&written, bytes, __ATOMIC_RELAXED) <= strtoul(most, NULL, 10)) return 0;
    if (getenv("SHORT_KILL")) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

ssize_t write(int file, const void *data, size_t bytes) {
    return is_full(file, bytes) ? -1 : syscall(SYS_write, file, data, bytes);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
    return is_full(file, bytes) ? -1 : syscall(SYS_writev, file, parts, count);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *with) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    extern void *dlvsym(void *, const char *, const char *);
    if (getenv("SHORT_THREADS") || (has_forked && getenv("SHORT_LATER"))) return EAGAIN;
    if (!real) real = dlvsym((void *)-1L, "pthread_create", "GLIBC_2.34");
#ifdef __x86_64__
    if (!real) real = dlvsym((void *)-1L, "pthread_create", "GLIBC_2.2.5");
#else
    if (!real) real = dlvsym((void *)-1L, "pthread_create", "GLIBC_2.17");
#endif
    return real(thread, how, work, with);
}
