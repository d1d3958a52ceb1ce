/* This host and program, random ids, states of other processes from /proc, and starting threads. */
#include "base.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void host_name(char *name, size_t room)
{
    memset(name, 0, room);
    if (gethostname(name, room - 1) != 0 && errno != ENAMETOOLONG) snprintf(name, room, "?");
}

void random_id(char *id)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        double now = clock_s();
        uint64_t parts[2] = {(uint64_t)getpid(), 0};
        memcpy(&parts[1], &now, sizeof now);
        number = hash_bytes(parts, sizeof parts);
    }
    snprintf(id, RANDOM_ID_BYTES, "%016" PRIx64, number);
}

bool program_path(char *path, size_t room)
{
    ssize_t length = readlink("/proc/self/exe", path, room - 1);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Returns the state of a process as process_state does. *began: time at which it began, in ticks
 * since the boot; set only if /proc can be read. */
static char read_stat(pid_t process, long long *began)
{
    char path[64], line[1024], state;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)process);
    FILE *file = fopen(path, "re");
    /* the kernel is queried, because /proc may hide other users' processes (hidepid) */
    if (!file) return kill(process, 0) != 0 && errno == ESRCH ? PROCESS_ENDED : PROCESS_UNKNOWN;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    /* in "PID (name) STATE ...", the name may contain any characters; the last ')' ends it */
    const char *end = strrchr(line, ')');
    if (!end || sscanf(end + 1,
                       " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                       "%*d %lld",
                       &state, began) != 2)
        return PROCESS_UNKNOWN;
    return state == 'Z' || state == 'X' ? PROCESS_ENDED : state;
}

char process_state(pid_t process)
{
    long long began;
    return read_stat(process, &began);
}

int64_t process_began(pid_t process)
{
    long long began = 0;
    char state = read_stat(process, &began);
    if (state == PROCESS_UNKNOWN) return -1;
    return state == PROCESS_ENDED ? 0 : began;
}

double proc_bytes(const char *path, const char *keys)
{
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    char line[256];
    double sum = -1, kilobytes;
    while (fgets(line, sizeof line, file)) {
        size_t length;
        for (const char *key = keys; *key; key += length) {
            length = strcspn(key, ":") + 1;
            if (strncmp(line, key, length) == 0 && sscanf(line + length, "%lf", &kilobytes) == 1)
                sum = (sum < 0 ? 0 : sum) + 1024 * kilobytes;
        }
    }
    fclose(file);
    return sum;
}

int thread_begin(pthread_t *thread, void *(*run)(void *of), void *argument)
{
    static const int fault[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof fault / sizeof *fault; ++i) sigdelset(&all, fault[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void threads_run(void *(*run)(void *of), void *elements, size_t bytes, int count)
{
    pthread_t *thread = mem_new((size_t)count * sizeof *thread);
    int started = 0;
    for (int i = 0; i < count; ++i)
        if (thread_begin(&thread[started], run, (char *)elements + (size_t)i * bytes) == 0)
            ++started;
    for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
    mem_free(&thread);
}
