/* Writes into the file LOG what it hears at a terminal: signals, the window's size, lines that are typed, whether it is in front.
 * SIGQUIT ends it with 9, SIGHUP with 7.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int out;

static void say(const char *what, int a, int b) {
    char line[80];
    if (write(out, line, snprintf(line, sizeof line, "%s %d %d\n", what, a, b)) < 0) _exit(5);
}

static void told(int signal) {
    struct winsize size = {0};
    int number = errno;
    if (signal == SIGWINCH) ioctl(0, TIOCGWINSZ, &size);
    say("signal", signal, size.ws_row);
    if (signal == SIGCONT) say("front", tcgetpgrp(0) == getpgrp(), 0);
    if (signal == SIGQUIT) _exit(9);
    if (signal == SIGHUP) _exit(7);
    errno = number;
}

int main(void) {
    out = open(getenv("LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int all[] = {SIGINT, SIGQUIT, SIGHUP, SIGWINCH, SIGCONT, SIGTERM};
    for (int i = 0; i < 6; i++) sigaction(all[i], &(struct sigaction){.sa_handler = told}, NULL);
    say("ready", tcgetpgrp(0) == getpgrp(), isatty(0) + isatty(1) + isatty(2));
    for (;;) {
        char line[64];
        ssize_t count = read(0, line, sizeof line);
        if (count > 0) say("read", count, line[0]);
        else if (count == 0 || errno != EINTR) usleep(10000);
    }
}
