/* Other processes of this host, as /proc has them, and threads of our own. */
#include "base.h"

#include <errno.h>
#include <string.h>

char process_state(pid_t process)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)process);
    FILE *file = fopen(path, "re");
    if (!file) return errno == ENOENT || errno == ESRCH ? PROCESS_GONE : PROCESS_UNKNOWN;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    /* "PID (name) STATE ...": the name may hold anything but is the last thing in brackets. */
    const char *state = strrchr(line, ')');
    if (!state || state[1] != ' ') return PROCESS_UNKNOWN;
    return state[2] == 'Z' || state[2] == 'X' ? PROCESS_GONE : state[2];
}

double process_swapped(pid_t process)
{
    char path[64], line[256];
    double kilobytes = 0;
    snprintf(path, sizeof path, "/proc/%lld/status", (long long)process);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmSwap: %lf", &kilobytes) == 1) break;
    fclose(file);
    return 1024 * kilobytes;
}

int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of)
{
    static const int fault[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof fault / sizeof *fault; ++i) sigdelset(&all, fault[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, of);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
