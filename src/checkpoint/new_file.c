/* Writes a file as NAME.part and renames it once it is complete and synced (new_file.h). */
#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

Status new_file_begin(NewFile *file, const char *path)
{
    *file = (NewFile){.part = mem_format("%s.part", path), .path = path};
    file->fd = file_create_new(file->part, O_WRONLY | O_TRUNC);
    if (file->fd >= 0) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s", file->part, file_error(errno));
}

Status new_file_put(NewFile *file, const void *from, size_t bytes)
{
    file->bytes += (int64_t)bytes;
    for (const char *p = from; bytes > 0;) {
        ssize_t got = write(file->fd, p, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return fail(ERR_IO, "%s: writing failed: %s", file->part,
                        got < 0 ? file_error(errno) : "the disk is full");
        p += got, bytes -= (size_t)got;
    }
    return OK;
}

Status new_file_end(NewFile *file, Status st)
{
    const char *part = file->part, *path = file->path;
    const int fd = file->fd;
    if (st == OK && fsync(fd) != 0)
        st = fail(ERR_IO, "%s: syncing failed: %s", part, strerror(errno));
    if (fd >= 0 && close(fd) != 0 && st == OK)
        st = fail(ERR_IO, "%s: closing failed: %s", part, strerror(errno));
    if (st == OK && rename(part, path) != 0)
        st = fail(ERR_IO, "%s: renaming it failed: %s", part, strerror(errno));
    if (st == OK && file_sync_entry(path) != 0)
        st = fail(ERR_IO, "%s: syncing its folder failed: %s", path, strerror(errno));
    if (st != OK && fd >= 0) unlink(part);
    mem_free(&file->part);
    return st;
}
