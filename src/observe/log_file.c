/* log.txt in a run's folder: what rank 0 says of the run, as it is said, behind what earlier starts
 * have said. A line goes out in one write, by whatever thread says it. The file is bounded: where
 * it would grow beyond LIMIT_BYTES it becomes log.txt.1, in place of an older one. What a full disk
 * does not take is counted, and said once there is room. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_BYTES = 16 << 20, HEAD_BYTES = 256 };

/* The file of the run that this process is at, under the lock of log_copy. */
static struct {
    /* owned; NULL: there is none */
    char *path;
    int fd;
    int64_t bytes, lost;
} file = {.fd = -1};

static int open_end(void)
{
    struct stat st;
    file.fd = file_create(file.path, O_WRONLY | O_APPEND | O_NONBLOCK);
    if (file.fd < 0) return errno;
    bool regular = fstat(file.fd, &st) == 0 && S_ISREG(st.st_mode);
    file.bytes = regular ? (int64_t)st.st_size : 0;
    if (regular) return 0;
    close(file.fd);
    file.fd = -1;
    return EINVAL;
}

static void rotate(void)
{
    char *older = mem_format("%s.1", file.path);
    if (rename(file.path, older) == 0) {
        close(file.fd);
        open_end();
    }
    mem_free(&older);
}

static bool put(const char *text, size_t bytes)
{
    ssize_t done = file.fd < 0 ? -1 : write(file.fd, text, bytes);
    if (done > 0) file.bytes += done;
    return done == (ssize_t)bytes;
}

static void take(void *user, const char *text, size_t bytes)
{
    char line[HEAD_BYTES];
    (void)user;
    if (file.bytes + (int64_t)bytes > LIMIT_BYTES) rotate();
    if (file.lost > 0) {
        int n = snprintf(line, sizeof line, "\n(%lld lines could not be written here)\n",
                         (long long)file.lost);
        if (!put(line, (size_t)n)) {
            ++file.lost;
            return;
        }
        file.lost = 0;
    }
    if (!put(text, bytes)) ++file.lost;
}

/* Nobody writes to it any more. */
static void release(void)
{
    if (file.fd >= 0) close(file.fd);
    file.fd = -1;
    file.lost = 0;
    mem_free(&file.path);
}

Status log_file_open(const char *dir, int64_t step)
{
    char head[HEAD_BYTES], now[64], host[HOST_BYTES];
    time_t seconds = time(NULL);
    struct tm local;
    release();
    file.path = mem_format("%s/log.txt", dir);
    int error = open_end();
    if (error) {
        Status status =
            fail(ERR_IO, "%s: opening failed: %s", file.path,
                 error == EINVAL ? "it is a pipe or a device: remove it" : file_error(error));
        mem_free(&file.path);
        return status;
    }
    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S %z", localtime_r(&seconds, &local));
    host_name(host, sizeof host);
    int n = snprintf(head, sizeof head, "---- %s, weft %s on %s, after step %lld\n", now,
                     WEFT_VERSION, host, (long long)step);
    take(NULL, head, (size_t)n);
    log_copy_to(take, NULL);
    return OK;
}

void log_file_close(void)
{
    log_copy_to(NULL, NULL);
    release();
}
