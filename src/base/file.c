/* What the C library leaves to do for files that must outlive a loss of power. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_sync_entry(const char *path)
{
    char *folder = mem_text(path), *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    mem_free(&folder);
    return error == EINVAL || error == EACCES ? 0 : error;
}

Status file_move_aside(const char *path, char **to)
{
    struct stat st;
    *to = NULL;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? OK
                               : fail(ERR_IO, "%s: cannot be found: %s", path, strerror(errno));
    if (st.st_size == 0) return OK;
    for (int n = 1; !*to; ++n) {
        *to = mem_format("%s.%d", path, n);
        if (access(*to, F_OK) == 0) mem_free(to);
    }
    if (rename(path, *to) == 0) return OK;
    Status status = fail(ERR_IO, "%s: cannot be renamed to %s: %s", path, *to, strerror(errno));
    mem_free(to);
    return status;
}
