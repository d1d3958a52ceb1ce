/* What a .gz may become. A kilobyte of deflate can be a megabyte of zeros: a file that grows beyond
 * a hundredfold is refused before it is written or held, unless it stays small; who trusts it
 * unpacks it. */
#include "data_private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { SMALL_BYTES = 64 << 20, TIMES = 100 };

Status packed_open(PackedFile *file, const char *path)
{
    struct stat st;
    *file = (PackedFile){.path = path};
    if (stat(path, &st) != 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fail(ERR_NOINPUT, "%s: is not a file; save what a pipe or a device gives", path);
    file->bytes = (int64_t)st.st_size;
    errno = 0;
    file->gz = gzopen(path, "rbe");
    if (file->gz) return OK;
    return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path,
                errno ? strerror(errno) : "out of memory");
}

void packed_close(PackedFile *file)
{
    if (file->gz) gzclose(file->gz);
    file->gz = NULL;
}

Status packed_check(const PackedFile *file)
{
    int code;
    const char *words = gzerror(file->gz, &code);
    if (code == Z_OK || code == Z_STREAM_END) return OK;
    if (code == Z_ERRNO) return fail(ERR_IO, "%s: cannot be read: %s", file->path, strerror(errno));
    return fail(ERR_DATA, "%s: is damaged or truncated (%s); fetch it again", file->path, words);
}

Status packed_bound(const PackedFile *file, int64_t unpacked)
{
    char size[16], own[16];
    if (gzdirect(file->gz) || unpacked <= SMALL_BYTES || unpacked / TIMES <= file->bytes) return OK;
    return fail(ERR_DATA,
                "%s: unpacks to %s or more, over %d times the %s that it has; unpack it with "
                "gunzip first, where you trust it",
                file->path, text_bytes((double)unpacked, size), TIMES,
                text_bytes((double)file->bytes, own));
}
