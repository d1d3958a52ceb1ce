/* Runs numbered work items on several threads. If several items fail, the failure of the smallest
 * number is reported, so the message does not depend on the threads' timing. */
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
    /* number of the next item */
    atomic_llong next;
    /* number of threads that have begun, which is the number of the next one */
    atomic_int workers;
    /* protects failure */
    pthread_mutex_t lock;
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
    /* The loop ends early if all items have been taken, which happens if items are short. If the
     * system grants fewer threads, these do all the work. The calling thread is one of them. */
    while (started < threads - 1 && atomic_load(&pool.next) < count &&
           thread_begin(&thread[started], worker_run, &pool) == 0)
        ++started;
    worker_run(&pool);
    for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&pool.lock);
    mem_free(&thread);
    return failure_end(&pool.failure);
}

/* ---- reading ahead ---- */

enum {
    /* number of threads that read: a call of a shared file system may take milliseconds, and many
     * calls can wait at the same time */
    AHEAD_THREADS = 64,
    /* number of items that are made before the first of them is taken, if AHEAD_BYTES is enough */
    AHEAD_ITEMS = 128,
    /* largest size of the items that are made together, unless a single item is larger */
    AHEAD_BYTES = 64 << 20
};

typedef struct Ahead {
    PoolMake *make;
    void *user;
    /* number of the first item in `item` */
    int64_t first;
    /* size of an item in bytes */
    size_t bytes;
    /* items first, first + 1, ..., one after the other; owned */
    char *item;
} Ahead;

static Status make_item(void *user, int worker, int64_t i)
{
    const Ahead *a = user;
    (void)worker;
    return a->make(a->user, a->first + i, a->item + (size_t)i * a->bytes);
}

Status worker_pool_ahead(int64_t count, size_t bytes, PoolMake *make, PoolTake *take, void *user)
{
    Ahead a = {.make = make, .user = user, .bytes = bytes};
    int64_t most = bytes > AHEAD_BYTES / AHEAD_ITEMS ? (int64_t)(AHEAD_BYTES / bytes) : AHEAD_ITEMS;
    Status st = OK;
    if (most < 1) most = 1;
    if (most > count) most = count;
    a.item = mem_new((size_t)most * bytes);
    for (; st == OK && a.first < count; a.first += most) {
        const int64_t n = count - a.first < most ? count - a.first : most;
        st = worker_pool_run(n < AHEAD_THREADS ? (int)n : AHEAD_THREADS, n, make_item, &a);
        for (int64_t i = 0; st == OK && i < n; ++i)
            st = take(user, a.first + i, a.item + (size_t)i * bytes);
    }
    mem_free(&a.item);
    return st;
}
