/* Runs numbered pieces of work on several threads. If some fail, the failure with the smallest
 * number is reported, so the message does not depend on the threads' timing. */
#include "data_private.h"

#include <stdatomic.h>

void failure_note(FirstFailure *first, int64_t i, Status status)
{
    if (first->status != OK && first->i < i) return;
    mem_free(&first->why);
    *first = (FirstFailure){.i = i, .status = status, .why = mem_text(fail_message())};
}

Status failure_end(FirstFailure *first)
{
    Status st = first->status == OK ? OK : fail(first->status, "%s", first->why);
    mem_free(&first->why);
    return st;
}

typedef struct Crew {
    CrewWork *run;
    void *user;
    int64_t count;
    atomic_llong next;
    atomic_int workers;
    pthread_mutex_t lock;
    /* protected by lock */
    FirstFailure failure;
} Crew;

static void *crew_run(void *of)
{
    Crew *crew = of;
    int worker = atomic_fetch_add(&crew->workers, 1);
    for (;;) {
        int64_t i = atomic_fetch_add(&crew->next, 1);
        if (i >= crew->count) return NULL;
        Status st = crew->run(crew->user, worker, i);
        if (st == OK) continue;
        pthread_mutex_lock(&crew->lock);
        failure_note(&crew->failure, i, st);
        /* Work that has begun continues, since it may fail with a smaller number. */
        atomic_store(&crew->next, crew->count);
        pthread_mutex_unlock(&crew->lock);
    }
}

Status crew_work(int threads, int64_t count, CrewWork *run, void *user)
{
    Crew crew = {.run = run, .user = user, .count = count};
    pthread_t *thread = mem_new((size_t)threads * sizeof *thread);
    int started = 0;
    pthread_mutex_init(&crew.lock, NULL);
    /* If the system grants fewer threads, those do all the work. */
    while (started < threads - 1 && thread_begin(&thread[started], crew_run, &crew) == 0) ++started;
    crew_run(&crew);
    for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&crew.lock);
    mem_free(&thread);
    return failure_end(&crew.failure);
}
