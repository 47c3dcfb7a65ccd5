/* Says of each signal that it takes its number and what was sent along; ends with 9 at signal 64. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t ends;

static void told(int signal, siginfo_t *info, void *context) {
    char text[40];
    int value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
    if (write(1, text, snprintf(text, sizeof text, "%d %d\n", signal, value)) < 0) ends = 1;
    ends |= signal == 64;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = told, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t none;
    sigfillset(&action.sa_mask);
    for (int signal = 1; signal <= 64; signal++) sigaction(signal, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (write(2, "ready\n", 6) < 0) return 1;
    while (!ends) usleep(2000);
    return 9;
}
