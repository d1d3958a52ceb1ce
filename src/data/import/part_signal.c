/* Removes OUT.part when a signal (SIGINT, SIGTERM, SIGHUP) ends an import, unless the signal is
 * ignored or has another handler. Only the process that created the file removes it; a process that
 * was forked for HDF5 does not. */
#include "../data_private.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* largest number of registered files: enough for a training set and a test set, or a file of each
 * thread; further files are not registered */
enum { PARTS = 32 };
/* paths of registered files; the 8 bytes are for ".part" and a zero byte */
static char path[PARTS][DATA_PATH + 8];
/* used[i]: true if path[i] is registered; installed: true if the handlers are installed */
static volatile sig_atomic_t used[PARTS], installed;
/* held while an entry of path changes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* process that created the files, which alone removes them */
static volatile pid_t owner;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Signal handler: removes the registered files, and raises the signal again. The signal is blocked
 * until the handler returns; then it ends the process, since SA_RESETHAND has restored the
 * default. */
static void remove_all(int signal)
{
    for (int i = 0; i < PARTS && getpid() == owner; ++i)
        if (used[i]) unlink(path[i]);
    raise(signal);
}

static void install_handlers(void)
{
    struct sigaction action, old;
    if (installed) return;
    installed = true;
    owner = getpid();
    memset(&action, 0, sizeof action);
    action.sa_handler = remove_all;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}

void part_remove_on_signal(const char *part)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PARTS; ++i) {
        if (used[i] || strlen(part) >= sizeof path[i]) continue;
        strcpy(path[i], part);
        install_handlers();
        used[i] = true;
        break;
    }
    pthread_mutex_unlock(&lock);
}

void part_keep_on_signal(const char *part)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PARTS; ++i)
        if (used[i] && strcmp(path[i], part) == 0) used[i] = false;
    pthread_mutex_unlock(&lock);
}
