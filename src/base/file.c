/* What the C library leaves to do for files that must outlive a loss of power. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
