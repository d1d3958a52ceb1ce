/* Removes OUT.part when a signal (SIGINT, SIGTERM, SIGHUP) ends an import. This applies to signals
 * that are neither ignored nor handled otherwise, and to the process that created the file: a
 * process forked for HDF5 removes nothing. */
#include "../data_private.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* a training set and a test set; further files are not removed */
enum { PARTS = 2 };
static char path[PARTS][DATA_PATH + 8];
static volatile sig_atomic_t used[PARTS], caught;
static volatile pid_t owner;

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* The raised signal is blocked in its handler, so it ends the process as soon as this returns. */
static void remove_all(int signal)
{
    for (int i = 0; i < PARTS && getpid() == owner; ++i)
        if (used[i]) unlink(path[i]);
    raise(signal);
}

static void catch_signals(void)
{
    struct sigaction now, old;
    if (caught) return;
    caught = true;
    owner = getpid();
    memset(&now, 0, sizeof now);
    now.sa_handler = remove_all;
    now.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&now.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(ends[i], &now, NULL);
}

void part_stop_removes(const char *part)
{
    for (int i = 0; i < PARTS; ++i) {
        if (used[i] || strlen(part) >= sizeof path[i]) continue;
        strcpy(path[i], part);
        catch_signals();
        used[i] = true;
        return;
    }
}

void part_stop_keeps(const char *part)
{
    for (int i = 0; i < PARTS; ++i)
        if (used[i] && strcmp(path[i], part) == 0) used[i] = false;
}
