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

enum { WHOLE_BYTES = 4 << 20, PLACES = 64, PIECE_BYTES = 4 << 10 };

/* Reads until it has them all, or the file ends, which counts as an error: it was longer. */
static int read_all(int file, void *to, size_t bytes, off_t at)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(file, (char *)to + done, bytes - done, at + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? errno : EIO;
        done += (size_t)got;
    }
    return 0;
}

/* All of it, or pieces spread evenly from the first byte to the last. */
static int hash_file(int file, off_t size, uint64_t *hash)
{
    bool whole = size <= WHOLE_BYTES;
    size_t piece = whole ? (size_t)size : PIECE_BYTES, places = whole ? 1 : PLACES;
    char *bytes = mem_new(piece * places + 1);
    int error = 0;
    for (size_t i = 0; i < places && !error; ++i) {
        off_t at = whole ? 0 : (size - (off_t)piece) * (off_t)i / (PLACES - 1);
        error = read_all(file, bytes + i * piece, piece, at);
    }
    *hash = hash_bytes(bytes, piece * places);
    mem_free(&bytes);
    return error;
}

void file_describe(const char *path, char *out, size_t room)
{
    struct stat stat;
    uint64_t hash = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int error = file < 0 || fstat(file, &stat) != 0 ? errno : 0;
    if (!error && !S_ISREG(stat.st_mode)) error = EINVAL;
    if (!error) error = hash_file(file, stat.st_size, &hash);
    if (file >= 0) close(file);
    if (error)
        snprintf(out, room, "no file to read (%s)", strerror(error));
    else
        snprintf(out, room, "%lld bytes with hash %016llx", (long long)stat.st_size,
                 (unsigned long long)hash);
}
