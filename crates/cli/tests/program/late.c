/* Preloaded into a command: what it forks goes on late, where it asks for its number. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

static int own;

__attribute__((constructor)) static void begin(void) { own = syscall(SYS_getpid); }

int getpid(void) {
    int number = syscall(SYS_getpid);
    if (own && number != own) usleep(400000);
    return number;
}
