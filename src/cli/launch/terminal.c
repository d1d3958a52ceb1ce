/* Adapts output to the terminal that mpirun writes to. Open MPI's daemon gives each rank a pseudo
 * terminal as stdout, even if mpirun's own output is a file. The parent process is that daemon or
 * mpirun itself, so the parent's stdout shows whether this rank's output goes to a terminal. */
#include "../private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Opens the parent's stdout if it is a terminal. Returns the file descriptor, or -1. */
static int parent_terminal(void)
{
    char link[64], path[256];
    snprintf(link, sizeof link, "/proc/%d/fd/1", (int)getppid());
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return -1;
    path[length] = 0;
    /* a pipe or a file must not be opened */
    if (strncmp(path, "/dev/", 5) != 0) return -1;
    int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !isatty(fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void terminal_adapt(void)
{
    struct winsize size;
    if (!is_launched() || !isatty(STDOUT_FILENO)) return;
    int fd = parent_terminal();
    if (fd < 0) {
        /* without a terminal, output is plain lines without colour */
        setenv("TERM", "dumb", 1);
        return;
    }
    if (ioctl(fd, TIOCGWINSZ, &size) == 0) ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
    close(fd);
}
