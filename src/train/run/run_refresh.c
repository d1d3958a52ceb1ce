/* Extends the training set during a run (data.refresh): at the start of an epoch rank 0 looks for
 * new files, and all ranks add them to the set. Checkpoints record the files, so that a resumed run
 * finishes its epoch with the same files. */
#include "../step/position.h"
#include "run.h"

Status run_refresh_begin(Run *r)
{
    Trainer *t = r->trainer;
    const Config *c = r->config;
    if (c->data.refresh == REFRESH_NEVER) return OK;
    if (!data_has_fields(&t->train_set))
        return config_fail_key(c, "data.refresh", "%s holds no fields: remove it",
                               t->train_set.path);
    if (!data_paths_have_pattern(c->data.train))
        return config_fail_key(c, "data.refresh",
                               "needs a pattern in data.train that new files match, as %s is none: "
                               "write one (runs/*.nc), or remove this key",
                               c->data.train);
    if (c->grid.mode != UPDATE_SYNC)
        return config_fail_key(c, "data.refresh", "needs grid.mode: sync");
    if (r->world->rank > 0) return OK;
    t->data_files = data_set_list_files(&t->train_set);
    r->left_out = data_left_out_new();
    return OK;
}

/* Looks for new files on rank 0. Returns the number of new files that join the set; if there are
 * any, *next is the extended set. The log names files that do not fit, which are left out. */
static int find_files(const Run *r, DataSet *next)
{
    int added;
    const Status st = data_set_extend(next, &r->trainer->train_set, r->config, r->left_out, &added);
    if (st == OK) return added;
    log_warn("%s: the training set stays as it is in this epoch", fail_message());
    return 0;
}

Status run_refresh(Run *r)
{
    Trainer *t = r->trainer;
    const Position at = position_after(t, t->step);
    if (r->config->data.refresh == REFRESH_NEVER || t->step == 0 || at.sample > 0) return OK;
    if (r->refreshed_step == t->step) return OK;
    r->refreshed_step = t->step;
    DataSet *next = mem_new(sizeof *next);
    int added = r->world->rank == 0 ? find_files(r, next) : 0;
    world_bcast(r->world, &added, sizeof added, 0);
    Status st = added > 0 ? trainer_extend_data(t, next) : OK;
    if (st == OK && added > 0) {
        /* trainer_extend_data has freed the former set, from which the watch borrows */
        data_watch_free(&r->data_watch);
        r->data_watch = t->data_watch = data_watch_new(t, r->dir.checkpoints);
        mem_free(&t->data_files);
        if (r->world->rank == 0) t->data_files = data_set_list_files(&t->train_set);
        log_info("epoch %lld: %d new file%s; the training set has %d files and %lld samples",
                 (long long)at.epoch + 1, added, added == 1 ? "" : "s",
                 data_set_files(&t->train_set), (long long)t->train_set.samples);
    }
    mem_free(&next);
    return st;
}
