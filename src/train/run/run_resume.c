/* Chooses the beginning of a run: step 0, its newest checkpoint, or the checkpoint that
 * checkpoint.resume names. Never deletes a file of an earlier start. */
#include "run.h"

#include "../state/resume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Status nothing_changed(Status st)
{
    return fail(st, "%s; no file was changed: run.fresh=true moves this run aside and begins anew",
                fail_message());
}

/* Sets *exists to whether the file exists. ERR_IO: this cannot be determined. */
static Status find_file(const char *path, bool *exists)
{
    *exists = access(path, F_OK) == 0;
    if (*exists || errno == ENOENT) return OK;
    return fail(ERR_IO, "%s: cannot be examined: %s", path, strerror(errno));
}

/* Returns true if Slurm has requeued this job, or weft run has started its ranks again, and an
 * earlier start has chosen the beginning. The files in the folder are then those of this run. */
static bool is_restarted(const Run *r)
{
    return lease_follows_same_run(r->dir.lease);
}

static bool refuses_earlier(const Run *r)
{
    return r->config->checkpoint.resume == RESUME_NO && !is_restarted(r);
}

/* On rank 0: chooses the beginning of a run that has no checkpoint. Sets *path to the file of
 * checkpoint.resume, or leaves it NULL for step 0. The folder may contain files of a run that died
 * before its first checkpoint; they are kept. An old best.h5 must have this run's configuration,
 * because a better one may replace it. */
static Status begin_without_checkpoint(const Run *r, char **path)
{
    const Config *c = r->config;
    char *earlier = NULL;
    bool best_exists;
    TRY(run_dir_earlier(&r->dir, &earlier));
    Status st = find_file(r->dir.best, &best_exists);
    if (st == OK && earlier && refuses_earlier(r))
        st = fail(ERR_CONFIG,
                  "%s already holds a run (%s): choose another run.name, or begin anew with "
                  "run.fresh=true",
                  r->dir.path, earlier);
    mem_free(&earlier);
    if (st == OK && best_exists) st = resume_check(r->trainer, r->dir.best);
    if (st == ERR_DATA) st = nothing_changed(st);
    if (st == OK && c->checkpoint.resume == RESUME_FILE)
        *path = mem_text(c->checkpoint.resume_path);
    return st;
}

/* On rank 0: chooses the checkpoint to resume from; *path is NULL for step 0. The run's own
 * checkpoints have precedence, so the same command continues after a stop even if the run began
 * from a file. newest_failed = true: the newest checkpoint could not be loaded, so each candidate
 * is verified before it is chosen. */
static Status choose_checkpoint(Run *r, bool newest_failed, char **path)
{
    Status st = OK;
    *path = newest_failed ? NULL : checkpoint_newest_unverified(r->dir.checkpoints);
    if (!*path) st = checkpoint_newest(r->dir.checkpoints, r->verified, path);
    if (st != OK) return nothing_changed(st);
    r->newest_by_this_run = *path != NULL;
    if (!*path) return begin_without_checkpoint(r, path);
    if (refuses_earlier(r)) {
        st = fail(ERR_CONFIG,
                  "%s already holds a run (%s): choose another run.name, or continue with "
                  "checkpoint.resume=auto",
                  r->dir.path, *path);
        mem_free(path);
        return st;
    }
    return resume_check(r->trainer, *path);
}

/* On rank 0: sets *metric to that of best.h5; NaN: there is no such file, or it is moved aside. A
 * file is moved aside if it is damaged, or if its metric cannot be compared with this run's. */
static Status read_best(const Run *r, double *metric)
{
    CheckpointMeta meta = {0};
    char *aside = NULL;
    bool exists;
    *metric = NAN;
    TRY(find_file(r->dir.best, &exists));
    if (!exists) return OK;
    /* best.h5 may be another name of the checkpoint that has just been loaded */
    bool known = known_files_have(r->verified, r->dir.best);
    Status st =
        known ? checkpoint_read_meta(r->dir.best, &meta) : checkpoint_verify(r->dir.best, &meta);
    bool same_test = st == OK && resume_same_test(r->trainer, &meta);
    bool same = same_test && resume_same_best(r->trainer, &meta);
    if (same) *metric = meta.best_metric;
    checkpoint_meta_fini(&meta);
    if (same || (st != OK && st != ERR_DATA)) return st;
    char *why = mem_text(st != OK    ? fail_message()
                         : same_test ? "best.h5 was chosen by another checkpoint.best_metric"
                                     : "best.h5 was found with other test data");
    st = file_move_aside(r->dir.best, &aside);
    if (aside) log_warn("%s; it is kept as %s", why, aside);
    mem_free(&aside);
    mem_free(&why);
    return st;
}

/* Chooses and loads a checkpoint; tensors are verified as they are loaded. *path: the checkpoint;
 * NULL if the run begins at step 0. newest_failed: as in choose_checkpoint. */
static Status load(Run *r, bool newest_failed, char **path)
{
    Status st = r->world->rank == 0 ? choose_checkpoint(r, newest_failed, path) : OK;
    st = status_agree(r->world, st);
    if (st != OK) {
        mem_free(path);
        return st;
    }
    *path = world_bcast_text(r->world, *path);
    world_bcast(r->world, &r->newest_by_this_run, sizeof r->newest_by_this_run, 0);
    return *path ? run_load(r, *path) : OK;
}

void run_set_newest(Run *r, char *path, int64_t step)
{
    mem_free(&r->newest_path);
    r->newest_path = path;
    r->newest_step = step;
    if (path) die_lost_set_code(ERR_STOPPED);
}

Status run_load(Run *r, const char *path)
{
    TRY(train_load(r->trainer, path, LOAD_RUN));
    if (!r->newest_by_this_run) train_forget_end(r->trainer);
    return OK;
}

/* On rank 0: refuses run.fresh if a file from which the run begins does not exist, or is in the
 * folder that would be moved aside. */
static Status check_beginning(const Run *r)
{
    const Config *c = r->config;
    const char *const from[] = {
        c->checkpoint.resume == RESUME_FILE ? c->checkpoint.resume_path : "", c->model.init_from};
    Status st = OK;
    char *folder = realpath(r->dir.path, NULL);
    size_t n = folder ? strlen(folder) : 0;
    for (int i = 0; st == OK && i < 2; ++i) {
        if (!from[i] || !*from[i]) continue;
        char *path = realpath(from[i], NULL);
        if (!path)
            st = fail(ERR_NOINPUT, "%s: cannot be opened: %s", from[i], strerror(errno));
        else if (folder && !strncmp(path, folder, n) && path[n] == '/')
            st = fail(ERR_CONFIG,
                      "%s is in the folder that run.fresh=true moves aside: choose another "
                      "run.name, or copy the file to another place",
                      from[i]);
        free(path);
    }
    free(folder);
    return st;
}

Status run_resume(Run *r)
{
    char *path = NULL;
    const bool is_rank_0 = r->world->rank == 0;
    TRY(resume_know_data(r->trainer));
    bool aside = is_rank_0 && r->config->run.fresh && !is_restarted(r);
    Status st = aside ? check_beginning(r) : OK;
    if (st == OK && is_rank_0) st = aside ? run_dir_set_aside(&r->dir) : run_dir_take_back(&r->dir);
    TRY(status_agree(r->world, st));
    st = load(r, false, &path);
    if (st == ERR_DATA && path) {
        mem_free(&path);
        st = load(r, true, &path);
    }
    if (st == OK && path) {
        if (is_rank_0) known_files_add(r->verified, path);
        log_info("resuming from %s", path);
    }
    if (st == OK && !path) st = train_init_params(r->trainer);
    if (st == OK) st = status_agree(r->world, is_rank_0 ? read_best(r, &r->best_saved) : OK);
    if (st == OK) world_bcast(r->world, &r->best_saved, sizeof r->best_saved, 0);
    run_set_newest(r, path, r->trainer->step);
    if (st == OK && is_rank_0) lease_begun(r->dir.lease);
    return st;
}
