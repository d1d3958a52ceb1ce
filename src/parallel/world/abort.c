/* Ends a job that cannot go on. Writes the exit code to shared memory, where peers read it, and
 * calls MPI_Abort. If MPI_Abort hangs, as it does when a host is dead, kills the processes that
 * were passed to world_abort_also_kill, and exits. */
#include "abort.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* seconds after which this process exits if MPI_Abort has not ended it */
enum { ABORT_LIMIT_S = 5 };

/* linked list of exit notices; borrowed; guarded by notices_lock */
static ExitNotice *notices;
static pthread_mutex_t notices_lock = PTHREAD_MUTEX_INITIALIZER;

void exit_notice_add(ExitNotice *notice)
{
    pthread_mutex_lock(&notices_lock);
    notice->next = notices;
    notices = notice;
    pthread_mutex_unlock(&notices_lock);
}

void exit_notice_remove(ExitNotice *notice)
{
    pthread_mutex_lock(&notices_lock);
    ExitNotice **at = &notices;
    while (*at && *at != notice) at = &(*at)->next;
    if (*at) *at = notice->next;
    pthread_mutex_unlock(&notices_lock);
}

typedef struct AlsoKilled {
    pid_t process;
    struct AlsoKilled *next;
} AlsoKilled;
static AlsoKilled *also_killed;

void world_abort_also_kill(pid_t process)
{
    AlsoKilled *one = mem_new(sizeof *one);
    *one = (AlsoKilled){process, also_killed};
    also_killed = one;
}

static void *exit_after_limit(void *code)
{
    clock_sleep(ABORT_LIMIT_S);
    for (const AlsoKilled *one = also_killed; one; one = one->next) kill(one->process, SIGKILL);
    _exit((int)(intptr_t)code);
}

void world_abort(int code)
{
    pthread_t thread;
    thread_begin(&thread, exit_after_limit, (void *)(intptr_t)code);
    pthread_mutex_lock(&notices_lock);
    for (ExitNotice *one = notices; one; one = one->next) atomic_store(one->code, (uint32_t)code);
    pthread_mutex_unlock(&notices_lock);
    MPI_Abort(MPI_COMM_WORLD, code);
}
