/* Values that are fetched (fetch.c): a bucket is gathered from all replicas' shares to its place, ahead of its use, while
 * operations run. All replicas run the same lists, so they begin to gather the same buckets in the same order, whether their
 * micro-batches have samples or not. */
#include "executor.h"

void values_new(Executor *e)
{
    const Plan *plan = e->plan;
    if (!plan->fetches) return;
    Fetched *f = &e->fetched;
    window_init(&f->window, plan);
    f->number = mem_new((size_t)(plan->fetch.count + 1) * sizeof *f->number);
    f->fresh = mem_new((size_t)plan->graph->node_count * sizeof *f->fresh);
}

void values_free(Executor *e)
{
    window_fini(&e->fetched.window);
    mem_free(&e->fetched.number);
    mem_free(&e->fetched.fresh);
}

void values_start(Executor *e, const Schedule *schedule)
{
    if (e->plan->fetches) window_start(&e->fetched.window, schedule);
}

void values_forget(Executor *e)
{
    e->fetched.window.here_count = 0;
}

/* This rank's share goes to its place in the bucket, and from there to the others. */
static void fetch(Executor *e, int b)
{
    const ValueBucket *bucket = &e->plan->fetch.bucket[b];
    int rank = e->grid->dp_rank;
    int64_t begin = bucket->share[rank], count = bucket->share[rank + 1] - begin;
    int64_t shift = bucket->place - bucket->offset;
    if (count > 0)
        e->backend->table->copy(e->stream, e->weights + begin + shift,
                                e->params + plan_held_at(e->plan, begin, rank),
                                (size_t)count * sizeof *e->params);
    e->fetched.number[b] = comm_allgather_begin(e->comm, bucket->share, shift);
}

void values_use(Executor *e)
{
    int buckets[WINDOW_MOST], count;
    const ValueUse *use = window_next(&e->fetched.window, buckets, &count);
    for (int i = 0; i < count; ++i) fetch(e, buckets[i]);
    for (int i = 0; i < use->count; ++i)
        collective_wait(e, comm_allgather_wait, e->fetched.number[use->bucket[i]]);
}

void values_renew(Executor *e, const OpRun *run, int node)
{
    const Node *n = &e->plan->graph->node[node];
    int64_t number = e->fetched.number[e->plan->fetch.bucket_of[n->param[0]]];
    if (n->op->cache_bytes == 0 || e->fetched.fresh[node] == number) return;
    op_refresh(n->op, run);
    e->fetched.fresh[node] = number;
}
