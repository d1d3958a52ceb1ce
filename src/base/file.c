/* Opens and creates files safely, reads whole files, renames and describes files, and makes
 * folders. */
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

/* Returns true if an open file is an unnamed pipe, which the kernel calls "pipe:[4711]". */
static bool is_unnamed_pipe(int fd)
{
    char link[64], name[8] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof name - 1) > 0 && strncmp(name, "pipe:[", 6) == 0;
}

/* Kinds of files that may be opened in addition to regular ones. */
typedef enum OtherKind { NO_OTHER, UNNAMED_PIPE, CHARACTER_DEVICE } OtherKind;

/* Returns 0 if an open file is a regular file or of the kind `other`, else an errno. */
static int check_kind(int fd, OtherKind other)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return errno;
    if (S_ISREG(st.st_mode)) return 0;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    if (other == UNNAMED_PIPE && S_ISFIFO(st.st_mode) && is_unnamed_pipe(fd)) return 0;
    return other == CHARACTER_DEVICE && S_ISCHR(st.st_mode) ? 0 : ENXIO;
}

/* Opens a file that is regular or of the kind `other`. On failure returns -1 and sets errno.
 * O_NONBLOCK is set so that open() does not wait for the other end of a pipe; it is removed
 * afterwards if pipes or devices are accepted (regular files ignore it). */
static int open_kind(const char *path, int flags, OtherKind other)
{
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    int error = check_kind(fd, other);
    if (!error && other != NO_OTHER && fcntl(fd, F_SETFL, flags & O_APPEND) != 0) error = errno;
    if (!error) return fd;
    close(fd);
    errno = error;
    return -1;
}

int file_open(const char *path, int flags)
{
    return open_kind(path, flags, NO_OTHER);
}

/* Returns a stream on an open file. If it cannot be made, closes the file and returns NULL; also
 * returns NULL if file is -1. */
static FILE *stream_on(int file, const char *mode)
{
    FILE *stream = file < 0 ? NULL : fdopen(file, mode);
    if (file >= 0 && !stream) close(file);
    return stream;
}

FILE *file_open_stream(const char *path)
{
    return stream_on(open_kind(path, O_RDONLY, UNNAMED_PIPE), "r");
}

int file_create(const char *path, int flags)
{
    return open_kind(path, flags | O_CREAT | O_NOFOLLOW, CHARACTER_DEVICE);
}

int file_create_new(const char *path, int flags)
{
    if (unlink(path) != 0 && errno != ENOENT) return -1;
    return file_create(path, flags | O_EXCL);
}

FILE *file_create_new_stream(const char *path)
{
    return stream_on(file_create_new(path, O_WRONLY), "w");
}

bool file_can_create(const char *path)
{
    bool existed = access(path, F_OK) == 0;
    int file = file_create(path, O_WRONLY);
    if (file < 0) return false;
    close(file);
    if (!existed) unlink(path);
    return true;
}

FILE *file_create_stream(const char *path)
{
    return stream_on(file_create(path, O_WRONLY | O_TRUNC), "w");
}

int file_finish_stream(FILE *out)
{
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0) return errno;
    return failed ? EIO : 0;
}

Status file_close_stream(FILE *out, const char *path)
{
    int error = file_finish_stream(out);
    return error ? fail(ERR_IO, "%s: writing failed: %s", path, strerror(error)) : OK;
}

const char *file_error(int error)
{
    switch (error) {
    case ELOOP:
        return "it is a symbolic link, which is not followed to write a file: remove it";
    case EISDIR:
        return "it is a folder, not a file";
    case ENXIO:
        return "it is a pipe, a socket or a device, not a plain file";
    default:
        return strerror(error);
    }
}

/* Reads a stream to its end, or until it has more than `most` bytes, and appends a zero byte.
 * Returns 0, or the errno. */
static int read_stream(FILE *in, size_t most, char **text, size_t *bytes)
{
    for (size_t room = 0; !feof(in) && *bytes <= most;) {
        if (*bytes + 1 >= room) *text = mem_resize(*text, room = 2 * room + 65536);
        size_t got = fread(*text + *bytes, 1, room - 1 - *bytes, in);
        *bytes += got;
        if (ferror(in)) return errno ? errno : EIO;
    }
    (*text)[*bytes] = 0;
    return 0;
}

Status file_text(const char *path, size_t most, char **text, size_t *bytes)
{
    FILE *in = file_open_stream(path);
    *text = NULL;
    *bytes = 0;
    if (!in) return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, file_error(errno));
    int error = read_stream(in, most, text, bytes);
    fclose(in);
    if (!error && *bytes <= most) return OK;
    mem_free(text);
    if (error) return fail(ERR_IO, "%s: cannot be read: %s", path, strerror(error));
    return fail(ERR_DATA, "%s: has more than %zu bytes, too many for its purpose", path, most);
}

Status file_move_aside(const char *path, char **to)
{
    struct stat st;
    *to = NULL;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? OK
                               : fail(ERR_IO, "%s: cannot be found: %s", path, strerror(errno));
    if (st.st_size == 0) return OK;
    for (int n = 1; !*to; ++n) {
        *to = mem_format("%s.%d", path, n);
        if (lstat(*to, &st) == 0) mem_free(to);
    }
    if (rename(path, *to) == 0) return OK;
    Status status = fail(ERR_IO, "%s: cannot be renamed to %s: %s", path, *to, strerror(errno));
    mem_free(to);
    return status;
}

Status file_make_folders(const char *path)
{
    char *copy = mem_text(path);
    Status st = OK;
    for (char *at = copy + 1; st == OK; ++at) {
        char end = *at;
        if (end != '/' && end != 0) continue;
        *at = 0;
        struct stat there;
        int error = mkdir(copy, 0777) == 0 ? file_sync_entry(copy) : errno;
        if (error == EEXIST && stat(copy, &there) == 0 && S_ISDIR(there.st_mode)) error = 0;
        if (error) st = fail(ERR_IO, "%s: cannot make this folder: %s", copy, strerror(error));
        *at = end;
        if (end == 0) break;
    }
    mem_free(&copy);
    return st;
}

char *file_nearest_folder(const char *folder, bool *above)
{
    char *path = mem_text(folder);
    size_t length = strlen(path);
    struct stat st;
    while (length > 1 && path[length - 1] == '/') path[--length] = 0;
    *above = false;
    while (lstat(path, &st) != 0 && errno == ENOENT && strcmp(path, ".") != 0) {
        *above = true;
        while (length > 0 && path[length - 1] != '/') --length;
        while (length > 1 && path[length - 1] == '/') --length;
        path[length] = 0;
        if (length > 0) continue;
        mem_free(&path);
        path = mem_text(".");
    }
    return path;
}

Status file_check_writable(const char *path, bool force)
{
    struct stat st;
    if (lstat(path, &st) != 0) return OK;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return fail(ERR_USAGE, "%s: is already there, and is no file but a %s; choose another name",
                    path, S_ISDIR(st.st_mode) ? "folder" : "device, pipe or socket");
    if (force) return OK;
    return fail(ERR_USAGE, "%s: is already there; choose another name, or replace it with --force",
                path);
}

bool file_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

Status file_check_not_input(const char *out, const char *const *in, int count)
{
    /* endings of the files that verbs write next to their output */
    static const char *const ending[] = {"", ".part", ".part.journal", ".tokens.part", ".data"};
    Status status = OK;
    struct stat to, from;
    for (size_t k = 0; out && status == OK && k < sizeof ending / sizeof *ending; ++k) {
        char *path = mem_format("%s%s", out, ending[k]);
        bool exists = stat(path, &to) == 0;
        for (int i = 0; exists && status == OK && i < count; ++i)
            if (stat(in[i], &from) == 0 && file_is_same(&from, &to))
                status =
                    k == 0 ? fail(ERR_USAGE,
                                  "%s: is one of the files that are read; choose another name", out)
                           : fail(ERR_USAGE,
                                  "%s: is one of the files that are read, but would be "
                                  "replaced on the way to %s; choose another name",
                                  path, out);
        mem_free(&path);
    }
    return status;
}

/* For file_describe. WHOLE_BYTES: size of the largest file that is hashed as a whole; PLACES:
 * number of pieces of a larger file that are hashed; PIECE_BYTES: bytes of a piece. */
enum { WHOLE_BYTES = 4 << 20, PLACES = 64, PIECE_BYTES = 4 << 10 };

/* Reads exactly `bytes` bytes from offset `at` on. An earlier end of the file is an error, because
 * the file was longer when it was opened. Returns 0, or the errno. */
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

/* Hashes the whole file, or pieces that are spread evenly from its first byte to its last. Returns
 * 0, or the errno. */
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
    int file = file_open(path, O_RDONLY);
    int error = file < 0 || fstat(file, &stat) != 0 ? errno : 0;
    if (!error) error = hash_file(file, stat.st_size, &hash);
    if (file >= 0) close(file);
    if (error)
        snprintf(out, room, "no file to read (%s)", file_error(error));
    else
        snprintf(out, room, "%lld bytes with hash %016llx", (long long)stat.st_size,
                 (unsigned long long)hash);
}
