/* When and how a run saves, and what it keeps. Training outlives a file system that is full or
 * away. */
#include "run.h"

#include <string.h>

/* Training outlives a file system that is full or away: said when it begins and when it ends, tried
 * again in between. Other errors stay. */
static Status tolerate(Status st, bool *failing, const char *what)
{
    if (st == ERR_IO && !*failing)
        log_warn("%s; training continues, and this is tried again", fail_message());
    if (st == OK && *failing) log_info("%s works again", what);
    if (st == OK || st == ERR_IO) *failing = st != OK;
    return st == ERR_IO ? OK : st;
}

/* Adds what to do where a model has run away. */
Status run_ran_away(Status st, int64_t step)
{
    if (st != ERR_DATA) return st;
    return fail(st,
                "%s at step %lld: lower optim.lr, set optim.clip, or look at the data with `weft "
                "data check`; the newest checkpoint stays as it is",
                fail_message(), (long long)step);
}

/* Once it is there: what it is good for. Rank 0's disk alone. */
static void saved(Run *r, const char *path)
{
    if (r->world->rank != 0) return;
    good_files_add(r->good, path);
    Status st = checkpoint_prune(r->dir.checkpoints, r->config->checkpoint.keep, r->good);
    (void)tolerate(st, &r->prune_failing, "removing old checkpoints");
}

/* last: nothing comes after it, so that its failure is the run's. */
Status run_save(Run *r, bool last)
{
    Trainer *t = r->trainer;
    char *path = run_dir_checkpoint(&r->dir, t->step);
    if (r->last && strcmp(path, r->last) == 0) {
        mem_free(&path);
        return OK;
    }
    double begin_s = clock_s();
    observer_break(r->observer);
    /* lines up to this step are on the disk before the checkpoint that makes them history */
    (void)tolerate(observer_sync(r->observer), &r->sync_failing, "syncing metrics");
    Status st = run_ran_away(train_save(t, path), t->step);
    bool there = st == OK;
    if (!last) st = tolerate(st, &r->save_failing, "saving checkpoints");
    if (there) {
        saved(r, path);
        mem_free(&r->last);
        r->last = path;
    } else {
        mem_free(&path);
    }
    r->saved_s = clock_s();
    run_time_save(r, r->saved_s - begin_s);
    return st;
}

/* best.h5 carries its own metric, whatever others the run has seen that could not be saved. */
Status run_save_best(Run *r, double metric)
{
    Trainer *t = r->trainer;
    double best = t->best_metric;
    t->best_metric = metric;
    Status st = run_ran_away(train_save(t, r->dir.best), t->step);
    t->best_metric = best;
    if (st == OK) r->best_saved = metric;
    observer_break(r->observer);
    return tolerate(st, &r->best_failing, "saving best.h5");
}
