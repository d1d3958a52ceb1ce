/* Writes log.txt in a run's folder: a copy of rank 0's messages, after the messages of earlier
 * starts. Each message is one write(2) by the thread that logs it. The size is bounded: before a
 * write that would exceed LIMIT_BYTES the file is renamed to log.txt.1, which replaces an older
 * file of that name. Lines that cannot be written, for instance on a full disk, are counted, and
 * the count is written once there is room. Before each write the path and the size are checked. If
 * the path leads to no file, the content of the file that is still open is copied to a new file at
 * the path; if it leads to another file, later messages go to that file. After log_file_pin nothing
 * is checked, and the size is not bounded. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* LIMIT_BYTES: largest size of log.txt. HEAD_BYTES: size of the buffers for the lines that
 * log_file.c itself writes. */
enum { LIMIT_BYTES = 16 << 20, HEAD_BYTES = 256 };

/* The log file of the current run, protected by the lock of log_copy. */
static struct {
    /* path of the file; owned; NULL: none is open */
    char *path;
    /* descriptor of the file; -1: none is open */
    int fd;
    /* size of the file */
    int64_t bytes;
    /* number of lines that could not be written and are not reported in the file yet */
    int64_t lost;
    /* lease of the run's folder, which must be held to open or rename the file; NULL: no other
     * process writes in the folder, so nothing is checked; borrowed */
    const Lease *lease;
} file = {.fd = -1};

/* Changes of the file, one bit each, that log_file_warn_of_changes has to report. They are kept
 * until then, because no message may be logged under the lock. */
typedef enum Change { REWRITTEN = 1, REPLACED = 2, CUT = 4, NOT_OPENED = 8 } Change;
static _Atomic unsigned changes;
/* true: the path is no longer checked (log_file_pin) */
static atomic_bool pinned;

/* Opens the path for appending, and closes the file that was open. O_EXCL in `flags` means that the
 * path leads to no file: the content of the old file is then copied to the new one before the old
 * one is closed. Returns 0 or errno; on an error the old file stays open. */
static int open_for_append(int flags)
{
    struct stat st;
    int fd = file_create(file.path, O_RDWR | O_APPEND | flags);
    if (fd < 0) return errno;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return ENXIO;
    }
    if (flags & O_EXCL && file.fd >= 0 && append_copy(file.fd, fd) != 0)
        atomic_fetch_or(&changes, CUT);
    if (file.fd >= 0) close(file.fd);
    file.fd = fd;
    file.bytes = fstat(fd, &st) == 0 ? (int64_t)st.st_size : 0;
    return 0;
}

/* Opens the path again if it no longer leads to the open file and the folder still belongs to this
 * run; notes if the file was cut short. */
static void follow_path(void)
{
    struct stat opened;
    if (atomic_load(&pinned) || file.fd < 0 || fstat(file.fd, &opened) != 0) return;
    NameState state = append_path_state(file.path, &opened);
    if (state != NAME_SAME) {
        if (!lease_is_held(file.lease)) return;
        bool unlinked = state == NAME_UNLINKED;
        int error = open_for_append(unlinked ? O_EXCL : 0);
        atomic_fetch_or(&changes, error ? NOT_OPENED : unlinked ? REWRITTEN : REPLACED);
        return;
    }
    if (opened.st_size < file.bytes) atomic_fetch_or(&changes, CUT);
    file.bytes = (int64_t)opened.st_size;
}

/* Renames the file to log.txt.1, and opens a new one. If that fails, the file gets its name back
 * and grows beyond the limit. */
static void rotate(void)
{
    char *older = mem_format("%s.1", file.path);
    if (lease_is_held(file.lease) && rename(file.path, older) == 0 && open_for_append(0) != 0)
        (void)rename(older, file.path);
    mem_free(&older);
}

/* Writes a text, and returns the number of lines that could not be written. */
static int64_t put(const char *text, size_t bytes)
{
    ssize_t done = file.fd < 0 ? -1 : write(file.fd, text, bytes);
    int64_t lost = 0;
    if (done > 0) file.bytes += done;
    for (size_t i = done > 0 ? (size_t)done : 0; i < bytes; ++i) lost += text[i] == '\n';
    return lost;
}

/* Writes one message or several, after the number of lost lines if there are any. Called by
 * log_copy, under its lock. */
static void append_text(void *user, const char *text, size_t bytes)
{
    char line[HEAD_BYTES];
    (void)user;
    follow_path();
    if (!atomic_load(&pinned) && file.bytes + (int64_t)bytes > LIMIT_BYTES) rotate();
    if (file.lost > 0) {
        int n = snprintf(line, sizeof line, "\n(%lld lines could not be written here)\n",
                         (long long)file.lost);
        if (put(line, (size_t)n) == 0) file.lost = 0;
    }
    file.lost += put(text, bytes);
}

/* Closes the file. Call it only while log_copy does not pass messages to append_text. */
static void release(void)
{
    if (file.fd >= 0) close(file.fd);
    file.fd = -1;
    file.lost = 0;
    mem_free(&file.path);
}

Status log_file_open(const char *dir, const Lease *lease, int64_t step)
{
    char head[HEAD_BYTES], now[64], host[HOST_BYTES];
    time_t seconds = time(NULL);
    struct tm local;
    release();
    file.path = mem_format("%s/log.txt", dir);
    file.lease = lease;
    atomic_store(&pinned, false);
    int error = open_for_append(0);
    if (error) {
        Status status = fail(ERR_IO, "%s: opening failed: %s", file.path, file_error(error));
        mem_free(&file.path);
        return status;
    }
    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S %z", localtime_r(&seconds, &local));
    host_name(host, sizeof host);
    int n = snprintf(head, sizeof head, "---- %s, weft %s on %s, after step %lld\n", now,
                     WEFT_VERSION, host, (long long)step);
    append_text(NULL, head, (size_t)n);
    log_copy_to(append_text, NULL);
    return OK;
}

void log_file_pin(void)
{
    atomic_store(&pinned, true);
}

void log_file_warn_of_changes(void)
{
    static const struct {
        Change change;
        const char *words;
    } all[] = {
        {REWRITTEN, "was removed or renamed, and has been written again from its beginning"},
        {REPLACED, "has been replaced by another file, and continues in that one"},
        {CUT, "was cut short: earlier lines are lost; later ones are appended to what is left"},
        {NOT_OPENED, "was removed, renamed or replaced, and cannot be opened again: later lines "
                     "are lost"},
    };
    /* true: NOT_OPENED has been reported, and the file has not been opened since then */
    static bool unopened;
    unsigned now = atomic_exchange(&changes, 0);
    if (unopened) now &= ~(unsigned)NOT_OPENED;
    if (now & (REWRITTEN | REPLACED)) unopened = false;
    if (now & NOT_OPENED) unopened = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        if (now & all[i].change) log_warn("%s: %s", file.path, all[i].words);
}
