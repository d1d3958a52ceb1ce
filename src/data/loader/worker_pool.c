/* Runs numbered work items on several threads. If some fail, the failure with the smallest number
 * is reported, so the message does not depend on the threads' timing. */
#include "../data_private.h"

#include <stdatomic.h>

void failure_record(FirstFailure *first, int64_t i, Status status)
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

typedef struct WorkerPool {
    PoolWork *run;
    void *user;
    int64_t count;
    /* next item; number of threads that have begun */
    atomic_llong next;
    atomic_int workers;
    pthread_mutex_t lock;
    /* protected by lock */
    FirstFailure failure;
} WorkerPool;

static void *worker_run(void *user)
{
    WorkerPool *pool = user;
    int worker = atomic_fetch_add(&pool->workers, 1);
    for (;;) {
        int64_t i = atomic_fetch_add(&pool->next, 1);
        if (i >= pool->count) return NULL;
        Status st = pool->run(pool->user, worker, i);
        if (st == OK) continue;
        pthread_mutex_lock(&pool->lock);
        failure_record(&pool->failure, i, st);
        /* Items that have begun continue, since they may fail with a smaller number. */
        atomic_store(&pool->next, pool->count);
        pthread_mutex_unlock(&pool->lock);
    }
}

Status worker_pool_run(int threads, int64_t count, PoolWork *run, void *user)
{
    WorkerPool pool = {.run = run, .user = user, .count = count};
    pthread_t *thread = mem_new((size_t)threads * sizeof *thread);
    int started = 0;
    pthread_mutex_init(&pool.lock, NULL);
    /* If the system grants fewer threads, they do all the work; this thread is one of them. */
    while (started < threads - 1 && thread_begin(&thread[started], worker_run, &pool) == 0)
        ++started;
    worker_run(&pool);
    for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&pool.lock);
    mem_free(&thread);
    return failure_end(&pool.failure);
}
