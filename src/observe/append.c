/* Writes files that are only appended to. Other processes may remove, rename, replace or truncate
 * such a file meanwhile. Data that could not be written stays in memory. Therefore a full disk
 * leaves no gap: the next flush continues where the last one stopped, also in the middle of a
 * record. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

Status append_open(AppendFile *file, const char *path, int flags, const Lease *lease)
{
    *file = (AppendFile){.fd = file_create(path, O_RDWR | O_APPEND | flags), .lease = lease};
    if (file->fd >= 0) {
        file->path = mem_text(path);
        file->size = size_of(file->fd);
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

/* Writes all bytes. Returns 0 or errno. *done: number of bytes written, also on an error. */
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

int append_copy(int from, int to)
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

/* bytes at the end of a file that are read to find its last line */
enum { TAIL = 4096 };

/* Makes a file of lines end with a complete line, because the next line would be joined to a torn
 * one. If the last line lacks only its newline, adds it. Otherwise removes the torn line, unless it
 * is longer than TAIL bytes. Returns 0 or errno. */
static int end_line(int fd, int64_t size)
{
    char tail[TAIL];
    int64_t from = size > TAIL ? size - TAIL : 0;
    ssize_t got = pread(fd, tail, (size_t)(size - from), from);
    if (got < 0) return errno;
    if (got == 0 || tail[got - 1] == '\n') return 0;
    size_t done;
    if (tail[got - 1] == '}') return write_bytes(fd, "\n", 1, &done);
    while (got > 0 && tail[got - 1] != '\n') --got;
    return (got > 0 || from == 0) && ftruncate(fd, from + got) != 0 ? errno : 0;
}

/* Returns the step of a line of metrics.jsonl; -1: it has none. */
static int64_t step_of(const char *line)
{
    static const char key[] = "{\"step\":";
    return strncmp(line, key, sizeof key - 1) == 0 ? strtoll(line + sizeof key - 1, NULL, 10) : -1;
}

/* Returns the step of a file's last line; -1: the line is torn or has no step. */
static int64_t last_step(int fd)
{
    char tail[TAIL + 1];
    int64_t size = size_of(fd), from = size > TAIL ? size - TAIL : 0;
    ssize_t got = pread(fd, tail, (size_t)(size - from), from);
    if (got <= 0 || tail[got - 1] != '\n') return -1;
    tail[got - 1] = 0;
    const char *line = strrchr(tail, '\n');
    return step_of(line ? line + 1 : tail);
}

/* Appends lines of the old file `from` to the file `to` that has replaced it: all lines of steps
 * after the step of the last line in `to`, or none if that line has no step. A user's edited copy
 * lacks the lines that were written while the user edited it. Returns 0 or errno. */
static int append_later_lines(int from, int to)
{
    char *line = NULL;
    size_t room = 0, done;
    int64_t known = last_step(to);
    int copy = known < 0 ? -1 : dup(from), error = 0;
    FILE *in = copy < 0 ? NULL : fdopen(copy, "r");
    if (in) rewind(in);
    for (ssize_t got; in && !error && (got = getline(&line, &room, in)) > 0;)
        if (step_of(line) > known && line[got - 1] == '\n')
            error = write_bytes(to, line, (size_t)got, &done);
    if (in)
        fclose(in);
    else if (copy >= 0)
        close(copy);
    free(line);
    return error;
}

/* Opens the path again. removed = true: the path leads to no file, so the complete file is written
 * again there. removed = false: the path leads to another file, to which later data is appended; a
 * file of lines first gets the lines that it lacks (append_later_lines). The descriptor keeps its
 * number, because another thread may be syncing the file. */
static Status open_again(AppendFile *file, bool removed)
{
    lease_require(file->lease);
    int fd = file_create(file->path, O_RDWR | O_APPEND | (removed ? O_EXCL : 0));
    int error = fd < 0 ? errno : removed ? append_copy(file->fd, fd) : 0;
    if (!error && !removed && file->lines) error = end_line(fd, size_of(fd));
    if (!error && !removed && file->lines) error = append_later_lines(file->fd, fd);
    if (!error && dup3(fd, file->fd, O_CLOEXEC) < 0) error = errno;
    if (fd >= 0) close(fd);
    if (error && fd >= 0 && removed) unlink(file->path);
    if (error)
        return fail(ERR_IO, "%s: has been %s, and cannot be opened again: %s", file->path,
                    removed ? "removed" : "replaced", file_error(error));
    file->rewritten = file->rewritten || removed;
    file->replaced = file->replaced || !removed;
    file->size = size_of(file->fd);
    return OK;
}

NameState append_path_state(const char *path, const struct stat *opened)
{
    struct stat named;
    if (lstat(path, &named) != 0)
        return errno == ENOENT || errno == ESTALE ? NAME_UNLINKED : NAME_SAME;
    return file_is_same(opened, &named) ? NAME_SAME : NAME_OTHER;
}

/* Opens the path again if it no longer leads to the open file. */
static Status follow_path(AppendFile *file)
{
    struct stat opened;
    if (fstat(file->fd, &opened) != 0 || !S_ISREG(opened.st_mode)) return OK;
    NameState state = append_path_state(file->path, &opened);
    return state == NAME_SAME ? OK : open_again(file, state == NAME_UNLINKED);
}

/* Drops the unwritten rest of a record whose written beginning has been cut off the file. */
static void drop_partial(AppendFile *file)
{
    const char *end = file->partial && file->lines ? memchr(file->data, '\n', file->bytes) : NULL;
    size_t drop = end ? (size_t)(end - file->data) + 1 : file->partial ? file->bytes : 0;
    file->bytes -= drop;
    if (drop > 0) memmove(file->data, file->data + drop, file->bytes);
    file->partial = false;
}

/* Compares the file's size with its size after the last write. If another process has truncated the
 * file, notes this in file->lost, and makes a file of lines end with a complete line. */
static Status check_size(AppendFile *file)
{
    int64_t size = size_of(file->fd);
    if (size < 0) return OK;
    if (size < file->size) {
        file->size_before = file->size;
        file->lost = file->size - size;
        drop_partial(file);
        int error = file->lines ? end_line(file->fd, size) : 0;
        size = size_of(file->fd);
        if (error) return fail(ERR_IO, "%s: writing failed: %s", file->path, strerror(error));
    }
    file->size = size;
    return OK;
}

Status append_write(AppendFile *file)
{
    size_t done = 0;
    TRY(check_size(file));
    if (file->lost > 0 && !file->lines) return OK;
    int error = write_bytes(file->fd, file->data, file->bytes, &done);
    file->bytes -= done;
    file->partial = file->bytes > 0 && (done > 0 || file->partial);
    if (done > 0) memmove(file->data, file->data + done, file->bytes);
    file->size += (int64_t)done;
    if (!error) return OK;
    return fail(ERR_IO, "%s: writing failed: %s", file->path, strerror(error));
}

Status append_flush(AppendFile *file)
{
    TRY(follow_path(file));
    return append_write(file);
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
