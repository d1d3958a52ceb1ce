/* weft run: starts the ranks of a training. After a crash it starts them again; after the loss of a
 * host it starts them on the remaining hosts. The exit code of a start shows which of four cases it
 * is: the training has ended, its input is wrong, a stop was requested, or ranks were lost and
 * another start can help. Exit code 75 may mean either of the last two. Ranks have stopped as
 * requested if the rank that owns the run's folder ended normally (lease.h). */
#include "supervisor.h"

#include "train.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* number of consecutive starts without a newer checkpoint after which weft run gives up */
enum { FRUITLESS_STARTS_MAX = 3 };

static const Flag flags[] = {
    {"-n", FLAG_FIELD(RunFlags, ranks), .value = "N", .lo = 1, .hi = RANKS_MAX,
     .help = "number of ranks; by default that of the batch job or the host file, if grid.dp is "
             "not set"},
    {"--nnodes", FLAG_FIELD(RunFlags, nodes), .value = "N", .lo = 1, .hi = RANKS_MAX,
     .help = "number of hosts to use; remaining ones are spares that replace lost hosts"},
    {"--nproc-per-node", FLAG_FIELD(RunFlags, per_node), .value = "P", .lo = 1, .hi = RANKS_MAX,
     .help = "ranks on each host"},
    {"--hostfile", FLAG_FIELD(RunFlags, hostfile), .value = "FILE",
     .help = "file with one host per line, NAME or NAME slots=N, instead of the batch job's hosts"},
    {"--launcher", FLAG_FIELD(RunFlags, starter), .value = "mpirun|srun",
     .help = "program that starts ranks on hosts; by default srun in a Slurm job, else mpirun"},
    {"--log-dir", FLAG_FIELD(RunFlags, log_dir), .value = "DIR",
     .help = "write the output of each rank to DIR/start-K/rank-R.log"},
    {"--max-restarts", FLAG_FIELD(RunFlags, restarts), .value = "N", .lo = 0, .hi = 1e6,
     .default_text = "100", .help = "largest number of restarts"},
};

/* ---- one start ---- */

/* Makes the folder DIR/start-K of --log-dir for the ranks' output, with the next unused K. */
static Status make_log_folder(Supervisor *s)
{
    char root[PATH_MAX], path[PATH_MAX + 32];
    const char *log_dir = s->flags->log_dir;
    if (!log_dir) return OK;
    if (!*log_dir) return fail(ERR_USAGE, "--log-dir: the folder's name is empty");
    if (file_make_folders(log_dir) != OK) return fail(ERR_IO, "--log-dir: %s", fail_message());
    if (!realpath(log_dir, root)) return fail(ERR_IO, "--log-dir %s: %s", log_dir, strerror(errno));
    for (int k = s->log_number + 1;; ++k) {
        snprintf(path, sizeof path, "%s/start-%d", root, k);
        s->log_number = k;
        if (mkdir(path, 0777) == 0) break;
        if (errno != EEXIST) return fail(ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
    }
    setenv("WEFT_LOG_DIR", path, 1);
    return OK;
}

/* Returns the command that starts the ranks: by srun or mpirun on the listed hosts, by mpirun on
 * this host, or as a single rank without mpirun. Release with words_free. */
static char **start_words(const Supervisor *s)
{
    if (s->hosts.count > 0) return hosts_words(&s->hosts, s->command);
    if (s->ranks > 1) return mpirun_words(s->ranks, s->command);
    int count = 0;
    while (s->command[count]) ++count;
    char **words = mem_new((size_t)(count + 1) * sizeof *words);
    for (int i = 0; i < count; ++i) words[i] = mem_text(s->command[i]);
    return words;
}

static void log_start(const Supervisor *s)
{
    char *hosts = s->hosts.count > 0 ? hosts_text(&s->hosts) : NULL, from[64] = "";
    const char *logs = s->flags->log_dir ? getenv("WEFT_LOG_DIR") : NULL;
    if (s->checkpoint_step >= 0)
        snprintf(from, sizeof from, ", from step %lld", (long long)s->checkpoint_step);
    if (s->start_number > 1 || hosts || logs)
        log_info("weft run: start %d: %d rank%s%s%s%s%s%s", s->start_number, s->ranks,
                 s->ranks == 1 ? "" : "s", hosts ? " on " : "", hosts ? hosts : "", from,
                 logs ? "; their output is in " : "", logs ? logs : "");
    mem_free(&hosts);
}

static Status start_once(Supervisor *s, int *code)
{
    start_watch_set_id(&s->runner.start_watch, s->folder, s->id, ++s->start_number);
    TRY(make_log_folder(s));
    log_start(s);
    char **words = start_words(s);
    s->runner.local = s->hosts.count == 0 || hosts_are_local(&s->hosts);
    s->runner.single = s->ranks == 1 && s->hosts.count == 0;
    s->runner.may_be_remote = !s->runner.local;
    s->runner.start_watch.hosts = s->hosts.count > 0 ? &s->hosts : NULL;
    Status status = runner_run(&s->runner, words, s->ranks, true, code);
    words_free(words);
    return status;
}

/* ---- after a start has ended ---- */

/* Returns whether the exit code is that of an error that would occur in every further start, too.
 * Such errors are in the command line, the data or the configuration, or mean that the run needs
 * more memory than it may use. */
static bool is_final(int code)
{
    return code == ERR_USAGE || code == ERR_DATA || code == ERR_NOINPUT || code == ERR_MEMORY ||
           code == ERR_CONFIG;
}

/* Returns whether the ranks of the last start ended normally, and not because a rank was lost. */
static bool ended_normally(const Supervisor *s)
{
    return lease_start_state(s->folder, s->id, s->start_number) == LEASE_START_ENDED;
}

/* Gives the run up: fails with ERR_BUG after a crash of a rank, else with ERR_IO. The message does
 * not suggest another start. why: the reason, for the message. */
static Status give_up(Supervisor *s, int code, const char *why)
{
    bool crash = code == ERR_BUG || runner_rank_crashed(&s->runner, code);
    return fail(crash ? ERR_BUG : ERR_IO, "weft run: not started again: %s%s", why,
                s->has_checkpoint ? "; its checkpoints are kept" : "");
}

/* Looks for checkpoints that are not in s->known_checkpoints, and adds them to it. *progress:
 * whether there are any. Before the first start this means that the run has a checkpoint;
 * afterwards it means that the last start has written one. */
static Status find_checkpoints(Supervisor *s, bool *progress)
{
    int64_t step;
    TRY(checkpoint_find_unseen(s->checkpoints, s->known_checkpoints, &step));
    *progress = step >= 0;
    s->has_checkpoint |= *progress;
    if (*progress && s->start_number > 0) s->checkpoint_step = step;
    return OK;
}

/* Returns the part of a message that says which results a requested stop has lost; "" if none. */
static const char *lost_results(Supervisor *s, int code)
{
    bool progress;
    LeaseStart lease = lease_start_state(s->folder, s->id, s->start_number);
    if (runner_stopped_early(&s->runner) || lease == LEASE_START_NOT_OWNER ||
        (lease == LEASE_START_ENDED && code == ERR_STOPPED))
        return "";
    if (find_checkpoints(s, &progress) == OK && !s->has_checkpoint)
        return "; there is no checkpoint, so all results are lost";
    return "; results after the newest checkpoint are lost";
}

/* Reports a start that ended after a stop request, and returns the status of weft run. */
static Status report_stop(Supervisor *s, int code)
{
    if (code == OK) return OK;
    const char *lost = lost_results(s, code);
    if (s->runner.stop_requests > 1)
        return fail(s->has_checkpoint ? ERR_STOPPED : ERR_IO,
                    "weft run: ended at once, as requested twice%s", lost);
    if (is_final(code)) return fail((Status)code, "weft run: ended with exit code %d", code);
    return fail(ERR_STOPPED,
                "weft run: stopped as requested%s: start the same command again%s to continue",
                lost, train_continue_hint(s->config));
}

/* Prepares another start after a loss, or fails if there must be no other start. If two or more
 * consecutive starts have left no newer checkpoint, it waits. */
static Status prepare_restart(Supervisor *s, int code)
{
    bool progress;
    if (start_any_stepped(&s->runner.watch) &&
        lease_start_state(s->folder, s->id, s->start_number) == LEASE_START_NOT_OWNER)
        return give_up(s, code,
                       "the run's folder has been renamed or removed, or is another run's");
    TRY(find_checkpoints(s, &progress));
    s->fruitless_starts = progress ? 0 : s->fruitless_starts + 1;
    if (s->fruitless_starts >= FRUITLESS_STARTS_MAX)
        return give_up(s, code, "three consecutive starts left no newer checkpoint");
    if (s->start_number > s->flags->restarts) return give_up(s, code, "--max-restarts is reached");
    if (s->fruitless_starts > 1) TRY(supervisor_backoff(s, s->fruitless_starts - 1));
    return supervisor_choose_ranks(s, true);
}

/* Reports why mpirun could not start ranks on this host, and frees *why. Fails if this was the
 * first start, because another start would fail in the same way; otherwise returns OK. */
static Status report_failed_start(const Supervisor *s, char **why)
{
    Status status = OK;
    if (s->start_number == 1)
        status = fail(ERR_USAGE, "weft run: %s", *why);
    else
        log_error("weft run: start %d: %s", s->start_number, *why);
    mem_free(why);
    return status;
}

/* Reports how the ranks were lost. If no rank has begun, perhaps no rank could be started. On this
 * host, mpirun is then tested to find the reason, and report_failed_start's status is returned. For
 * other hosts, mpirun or srun has already printed the reason. */
static Status report_loss(Supervisor *s, int code)
{
    bool begun = runner_any_began(&s->runner) || is_weft_status(code), local = s->hosts.count == 0;
    char *why = local && runner_may_have_failed_to_start(&s->runner, code)
                    ? mpirun_refusal(s->ranks, s->command[0])
                    : NULL;
    if (why) return report_failed_start(s, &why);
    char *loss = runner_describe_loss(&s->runner, code);
    if (local || begun)
        log_error("weft run: start %d: %s", s->start_number, loss);
    else
        log_error("weft run: start %d: %s, or none could be started: see %s's messages above",
                  s->start_number, loss, s->runner.starter);
    mem_free(&loss);
    return OK;
}

/* Handles the exit code of a start. Returns OK if the training is done, or if another start has
 * been prepared; *again is true in the second case. */
static Status handle_end(Supervisor *s, int code, bool *again)
{
    *again = false;
    if (s->runner.first_signal) return report_stop(s, code);
    if (code == OK) return OK;
    if (code == ERR_STOPPED && runner_stopped_early(&s->runner)) return report_stop(s, code);
    if (code == ERR_STOPPED && ended_normally(s))
        return fail(ERR_STOPPED,
                    "weft run: the training stopped by itself and has saved a checkpoint: start "
                    "the same command again%s to continue",
                    train_continue_hint(s->config));
    if (is_final(code))
        return fail((Status)code,
                    "weft run: not started again: another start would end with exit code %d too",
                    code);
    TRY(report_loss(s, code));
    TRY(prepare_restart(s, code));
    *again = true;
    return OK;
}

static Status supervise(Supervisor *s)
{
    bool again = true, progress;
    TRY(supervisor_choose_ranks(s, false));
    TRY(find_checkpoints(s, &progress));
    while (again) {
        int code = 0;
        TRY(start_once(s, &code));
        Status status = handle_end(s, code, &again);
        runner_fini_run(&s->runner);
        if (status != OK) return status;
    }
    return OK;
}

/* ---- the verb ---- */

static Status run(int argc, char **argv, const void *options)
{
    if (is_launched())
        return fail(ERR_USAGE, "weft run starts ranks itself: run it without mpirun or srun");
    Supervisor s = {.flags = options, .checkpoint_step = -1};
    Status status = supervisor_init(&s, argc, argv);
    if (status == OK) {
        runner_init(&s.runner);
        s.runner.hang_s = s.config->train.hang_s;
        status = supervise(&s);
    }
    supervisor_fini(&s);
    return status;
}

const Verb verb_run = {
    .name = "run",
    .words = "-- weft train CONFIG [key=value ...]",
    .help = "starts the ranks of a training run, and restarts them after a crash or without lost "
            "hosts",
    .more = "Hosts and numbers of ranks are those of the Slurm, PBS or LSF job, or of "
            "--hostfile; without these, ranks start on this host, as many as grid or -n says. "
            "After a crash, a killed rank or a lost host the ranks start again from the newest "
            "checkpoint. If hosts are lost and no spare is left, they start with fewer replicas "
            "(grid.dp), and a message says whether bits differ. Exit codes 64, 65, 66, 71 and 78 "
            "are final, and so are three consecutive starts without a newer checkpoint. Signals "
            "are forwarded: the ranks save a checkpoint, and weft run ends with 75.",
    VERB_FLAGS(RunFlags, flags),
    .traits = VERB_LONG_RUNNING | VERB_STARTS_RANKS,
    .run = run,
};
