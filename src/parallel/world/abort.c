/* Ends a job that cannot go on: leaves the exit code for the peers, and ends the processes itself
 * where MPI_Abort hangs, as it does where a host is dead. */
#include "abort.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 5 };

/* linked list; borrowed */
static ExitNotice *notices;

void exit_notice_add(ExitNotice *notice)
{
    notice->next = notices;
    notices = notice;
}

void exit_notice_remove(ExitNotice *notice)
{
    ExitNotice **at = &notices;
    while (*at && *at != notice) at = &(*at)->next;
    if (*at) *at = notice->next;
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

static void *end_by_itself(void *code)
{
    clock_rest(PATIENCE_S);
    for (const AlsoKilled *d = also_killed; d; d = d->next) kill(d->process, SIGKILL);
    _exit((int)(intptr_t)code);
}

void world_abort(int code)
{
    pthread_t thread;
    thread_begin(&thread, end_by_itself, (void *)(intptr_t)code);
    for (ExitNotice *f = notices; f; f = f->next) atomic_store(f->code, (uint32_t)code);
    MPI_Abort(MPI_COMM_WORLD, code);
}
