/* A file that only grows, with what could not be written yet in memory: a full disk leaves no hole,
 * for the next flush goes on where the last one stopped, in the middle of a record, too. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

Status append_open(AppendFile *file, const char *path, int flags)
{
    *file = (AppendFile){.fd = file_create(path, O_WRONLY | O_APPEND | flags)};
    if (file->fd >= 0) {
        file->path = mem_text(path);
        return OK;
    }
    int error = errno;
    Status status = fail(ERR_IO, "%s: opening failed: %s", path, file_error(error));
    errno = error;
    return status;
}

void append_put(AppendFile *file, const void *data, size_t bytes)
{
    file->data = mem_resize(file->data, file->bytes + bytes + 1);
    memcpy(file->data + file->bytes, data, bytes);
    file->bytes += bytes;
}

Status append_flush(AppendFile *file)
{
    size_t done = 0;
    int error = 0;
    while (done < file->bytes && !error) {
        ssize_t put = write(file->fd, file->data + done, file->bytes - done);
        if (put > 0)
            done += (size_t)put;
        else if (put == 0 || errno != EINTR)
            error = put == 0 ? ENOSPC : errno;
    }
    file->bytes -= done;
    if (done > 0) memmove(file->data, file->data + done, file->bytes);
    if (!error) return OK;
    return fail(ERR_IO, "%s: writing failed: %s", file->path, strerror(error));
}

Status append_sync(AppendFile *file)
{
    if (fsync(file->fd) == 0 || errno == EINVAL) return OK;
    return fail(ERR_IO, "%s: syncing failed: %s", file->path, strerror(errno));
}

Status append_close(AppendFile *file)
{
    if (!file->path) return OK;
    Status status = append_flush(file);
    if (close(file->fd) != 0 && status == OK)
        status = fail(ERR_IO, "%s: closing failed: %s", file->path, strerror(errno));
    mem_free(&file->path);
    mem_free(&file->data);
    *file = (AppendFile){.fd = -1};
    return status;
}
