/* Saves checkpoints and best.h5 during a run, and removes old checkpoints. Training continues if a
 * file system is full or unreachable. */
#include "run.h"

#include <string.h>

/* Replaces ERR_IO by OK, so that training continues and the caller tries again later. Logs the
 * first failure, and the first success after failures. Returns other errors unchanged. */
static Status tolerate(Status st, bool *failing, const char *what)
{
    if (st == ERR_IO && !*failing)
        log_warn("%s; training continues, and this is tried again", fail_message());
    if (st == OK && *failing) log_info("%s works again", what);
    if (st == OK || st == ERR_IO) *failing = st != OK;
    return st == ERR_IO ? OK : st;
}

/* Prepares the creation or renaming of a file. Called on rank 0, perhaps in the thread of a save.
 * Ends the job if the run's folder now belongs to another run. Syncs the metrics, because their
 * lines up to the checkpoint's step must be on disk before the checkpoint. */
static void before_file(void *user)
{
    Run *r = user;
    lease_require(r->dir.lease);
    (void)tolerate(observer_sync(r->observer), &r->sync_failing, "syncing metrics");
}

/* Removes old checkpoints if the save has written a checkpoint. Called on rank 0, perhaps in the
 * thread of a save, when the save's files have their final names. */
static void after_checkpoint(void *user)
{
    Run *r = user;
    if (r->saving_best) return;
    known_files_add(r->verified, r->saving_path);
    lease_require(r->dir.lease);
    Status st = checkpoint_prune(r->dir.checkpoints, r->config->checkpoint.keep, r->verified,
                                 r->saving_path);
    (void)tolerate(st, &r->prune_failing, "removing old checkpoints");
}

/* ---- the running save ---- */

static Status save_begin(Run *r, char *path, bool best, bool last);

/* Does for a save what tolerate does. best: true if the save was of best.h5, false if it was of a
 * checkpoint. */
static Status tolerate_save(Run *r, Status st, bool best)
{
    return best ? tolerate(st, &r->best_failing, "saving best.h5")
                : tolerate(st, &r->save_failing, "saving checkpoints");
}

/* Adds the advice to keep fewer checkpoints to the message of a full disk. */
static Status room_advice(const Run *r, Status st)
{
    int64_t keep = r->config->checkpoint.keep;
    if (keep == 1 || !r->newest_path || !strstr(fail_message(), CHECKPOINT_MAKE_ROOM)) return st;
    if (keep == 0)
        return fail(st, "%s, and set checkpoint.keep: all checkpoints are kept", fail_message());
    return fail(st, "%s, and set checkpoint.keep lower: %lld are kept", fail_message(),
                (long long)keep);
}

/* Handles the end of a save, whose status is st: reports a failure, or records the checkpoint.
 * last: true if it was the last save of the run. */
static Status save_ended(Run *r, Status st, bool last)
{
    bool written = st == OK, both = r->saving_both;
    run_time_save(r, train_save_seconds(r->save));
    if (st == ERR_DATA)
        st = run_bad_advice(fail(st, "%s at step %lld", fail_message(), (long long)r->saving_step));
    if (st == ERR_IO) st = room_advice(r, st);
    if ((r->saving_best || both) && !written) r->best_saved = r->best_before;
    r->saving_both = false;
    /* the message of the checkpoint module names the file that failed */
    bool best_failed = r->saving_best || (both && !written && strstr(fail_message(), r->dir.best));
    if (both && last && st == ERR_IO) {
        /* the run's last save could not create both names: saves again at once, only under the
         * checkpoint's name */
        char *path = r->saving_path;
        (void)tolerate_save(r, st, true);
        r->saving_path = NULL;
        train_save_free(&r->save);
        return save_begin(r, path, false, true);
    }
    if (!last) st = tolerate_save(r, st, best_failed);
    if (both && written) (void)tolerate_save(r, OK, true);
    /* the next attempt saves best.h5 alone */
    if (both && !written) r->best_failing = true;
    train_save_free(&r->save);
    if (written && !r->saving_best) {
        run_set_newest(r, r->saving_path, r->saving_step);
        r->newest_by_this_run = true;
        r->saving_path = NULL;
        run_hook_notify(r, HOOK_CHECKPOINT);
    }
    mem_free(&r->saving_path);
    return st;
}

/* Continues the running save by one stage. */
static Status save_continue(Run *r, bool last)
{
    bool done;
    Status st = train_save_next(r->save, &done);
    r->stage_step = r->trainer->step;
    return done ? save_ended(r, st, last) : OK;
}

/* Continues the running save until it ends. last: true if it is the last save of the run. */
static Status save_wait(Run *r, bool last)
{
    Status st = OK;
    while (r->save && st == OK) st = save_continue(r, last);
    return st;
}

Status run_save_wait(Run *r)
{
    return save_wait(r, false);
}

/* A stage of the save in which ranks collect tensors continues after each step. Any other stage
 * continues when a step that began after the stage has reported that no rank is busy with it. */
Status run_save_continue(Run *r, const StepResult *result)
{
    bool all_idle = r->trainer->stats_step > r->stage_step && !result->was_saving;
    return r->save && (all_idle || train_save_collects(r->save)) ? save_continue(r, false) : OK;
}

/* Begins a save to `path`, and takes ownership of `path`. best: true if the file is best.h5. Waits
 * for the save if it is the last of the run, or if saves are not made in the background. */
static Status save_begin(Run *r, char *path, bool best, bool last)
{
    const CheckpointHooks hooks = {r, before_file, after_checkpoint};
    r->saving_path = path;
    r->saving_best = best;
    r->saving_step = r->stage_step = r->trainer->step;
    /* The metrics are written here, because before_file only syncs them. If this fails, the next
     * flush after a step or an evaluation reports it. */
    (void)observer_flush(r->observer);
    lease_require(r->dir.lease);
    if (r->dir.lease) run_dir_mend(&r->dir);
    r->save = train_save_begin(
        r->trainer, &(TrainSaveTo){path, r->saving_both ? r->dir.best : NULL, &hooks, false});
    return last || !r->trainer->saves_in_background ? save_wait(r, last) : OK;
}

Status run_save(Run *r, bool last)
{
    char *path = run_dir_checkpoint(&r->dir, r->trainer->step);
    Status st = save_wait(r, last && r->saving_path && strcmp(path, r->saving_path) == 0);
    bool written = r->newest_path && strcmp(path, r->newest_path) == 0 && !r->save_again;
    r->save_again = false;
    if (st != OK || written) {
        mem_free(&path);
        return st;
    }
    observer_end_line(r->observer);
    r->saved_s = clock_s();
    r->saving_both = r->best_in_next;
    r->best_in_next = false;
    return save_begin(r, path, false, last);
}

/* best.h5 gets its own metric, even if there was a better evaluation that could not be saved. */
Status run_save_best(Run *r, double metric, bool checkpoint_due)
{
    Trainer *t = r->trainer;
    TRY(save_wait(r, false));
    double best = t->best_metric;
    observer_end_line(r->observer);
    r->best_before = r->best_saved;
    r->best_saved = metric;
    r->best_in_next = checkpoint_due && !r->best_failing && metric == best;
    if (r->best_in_next) return OK;
    t->best_metric = metric;
    Status st = save_begin(r, mem_text(r->dir.best), true, false);
    t->best_metric = best;
    return st;
}
