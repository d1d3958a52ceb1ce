/* A file that only grows, and that somebody may remove, rename or replace meanwhile. What could not
 * be written yet is in memory: a full disk leaves no hole, for the next flush goes on where the
 * last one stopped, in the middle of a record, too. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Status append_open(AppendFile *file, const char *path, int flags)
{
    *file = (AppendFile){.fd = file_create(path, O_RDWR | O_APPEND | flags)};
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

/* 0 or errno; *done: bytes that were written, whatever it is. */
static int write_bytes(int fd, const char *data, size_t bytes, size_t *done)
{
    for (*done = 0; *done < bytes;) {
        ssize_t put = write(fd, data + *done, bytes - *done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put == 0 ? ENOSPC : errno;
        *done += (size_t)put;
    }
    return 0;
}

/* All of a file to the end of another. 0 or errno. */
static int copy_file(int from, int to)
{
    enum { PIECE = 1 << 16 };
    char *piece = mem_new(PIECE);
    int error = 0;
    for (off_t at = 0; !error;) {
        size_t done;
        ssize_t got = pread(from, piece, PIECE, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) error = errno;
        if (got <= 0) break;
        error = write_bytes(to, piece, (size_t)got, &done);
        at += got;
    }
    mem_free(&piece);
    return error;
}

/* Opens the path again, which leads nowhere (again) or to another file. The number of the open file
 * stays: another thread may be syncing it. */
static Status open_name(AppendFile *file, bool again)
{
    int fd = file_create(file->path, O_RDWR | O_APPEND | (again ? O_EXCL : 0));
    int error = fd < 0 ? errno : again ? copy_file(file->fd, fd) : 0;
    if (!error && dup3(fd, file->fd, O_CLOEXEC) < 0) error = errno;
    if (fd >= 0) close(fd);
    if (error && fd >= 0 && again) unlink(file->path);
    if (error)
        return fail(ERR_IO, "%s: has been %s, and cannot be opened again: %s", file->path,
                    again ? "removed" : "replaced", file_error(error));
    file->rewritten = file->rewritten || again;
    file->moved = file->moved || !again;
    return OK;
}

static Status check_name(AppendFile *file)
{
    struct stat is, named;
    if (fstat(file->fd, &is) != 0 || !S_ISREG(is.st_mode)) return OK;
    if (lstat(file->path, &named) != 0)
        return errno == ENOENT || errno == ESTALE ? open_name(file, true) : OK;
    bool same = is.st_ino == named.st_ino && is.st_dev == named.st_dev;
    return same ? OK : open_name(file, false);
}

Status append_flush(AppendFile *file)
{
    size_t done = 0;
    TRY(check_name(file));
    int error = write_bytes(file->fd, file->data, file->bytes, &done);
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
