/* ledger.jsonl: lines of JSON that are appended one at a time. A crash may leave the last line
 * torn; the next line does not join it. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char *ledger_path(const char *folder)
{
    return mem_format("%s/ledger.jsonl", folder);
}

static Status cannot_write(const char *path)
{
    return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
}

Status ledger_file_check(const char *folder)
{
    char *path = ledger_path(folder);
    Status st = file_can_create(path) ? OK : cannot_write(path);
    mem_free(&path);
    return st;
}

/* Returns true if the file is not empty and does not end with a newline. */
static bool is_torn(int file)
{
    char last = '\n';
    off_t bytes = lseek(file, 0, SEEK_END);
    return bytes > 0 && pread(file, &last, 1, bytes - 1) == 1 && last != '\n';
}

Status ledger_file_append(const char *folder, const char *line)
{
    char *path = ledger_path(folder);
    int file = file_create(path, O_RDWR | O_APPEND);
    char *text = mem_format("%s%s", file >= 0 && is_torn(file) ? "\n" : "", line);
    size_t bytes = strlen(text);
    Status st = OK;
    ssize_t put = file < 0 ? -1 : write(file, text, bytes);
    if (file >= 0 && put >= 0 && put < (ssize_t)bytes) errno = ENOSPC;
    if (put != (ssize_t)bytes) st = cannot_write(path);
    if (file >= 0 && close(file) != 0 && st == OK) st = cannot_write(path);
    mem_free(&text);
    mem_free(&path);
    return st;
}
