/* What a program sees of its standard input before it reads it, and what it finds there at once; then it becomes its arguments. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct stat data;
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    struct pollfd one = {.fd = 0, .events = POLLIN};
    char text[64];
    int unread = -1, is_peer = getpeername(0, (struct sockaddr *)&peer, &size) == 0;
    fstat(0, &data);
    ioctl(0, FIONREAD, &unread);
    poll(&one, 1, 0);
    printf("kind %o, peer %d of %d, flags %x, %d unread, %x\n", data.st_mode & S_IFMT, is_peer, is_peer ? peer.ss_family : 0,
           fcntl(0, F_GETFL) & O_NONBLOCK, unread, one.revents);
    fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    printf("%d at once\n", (int)read(0, text, 5));
    if (S_ISSOCK(data.st_mode)) {
        printf("%d back\n", (int)write(0, "answer", 6));
        printf("shut %d\n", shutdown(0, SHUT_WR));
    }
    fflush(stdout);
    execv(argv[1], argv + 1);
    return 1;
}
