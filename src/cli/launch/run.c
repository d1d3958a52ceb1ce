/* weft run: starts the ranks of a training, and starts them again after a crash or a lost host, on
 * the hosts that are left. The exit code of a start decides what follows: training has ended, its
 * input is wrong, a stop was requested, or ranks were lost and another start can help. Exit code 75
 * alone does not say whether ranks stopped as requested or lost a peer; they stopped as requested
 * if the owner of the run's folder ended in order (lease.h). */
#include "supervisor.h"

#include "train.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The run is given up after this number of consecutive starts without a newer checkpoint. */
enum { STUCK = 3 };

static const Flag flags[] = {
    {"-n", FLAG_FIELD(RunFlags, ranks), .value = "N", .lo = 1, .hi = RANKS_MAX,
     .help = "number of ranks; by default that of the batch job or the host file, if grid.dp is "
             "not set"},
    {"--nnodes", FLAG_FIELD(RunFlags, nodes), .value = "N", .lo = 1, .hi = RANKS_MAX,
     .help = "number of hosts to use; remaining ones are spares that replace lost hosts"},
    {"--nproc-per-node", FLAG_FIELD(RunFlags, each), .value = "P", .lo = 1, .hi = RANKS_MAX,
     .help = "ranks on each host"},
    {"--hostfile", FLAG_FIELD(RunFlags, hostfile), .value = "FILE",
     .help = "file with one host per line, NAME or NAME slots=N, instead of the batch job's hosts"},
    {"--launcher", FLAG_FIELD(RunFlags, starter), .value = "mpirun|srun",
     .help = "program that starts ranks on hosts; by default srun in a Slurm job, else mpirun"},
    {"--log-dir", FLAG_FIELD(RunFlags, logs), .value = "DIR",
     .help = "write the output of each rank to DIR/start-K/rank-R.log"},
    {"--max-restarts", FLAG_FIELD(RunFlags, restarts), .value = "N", .lo = 0, .hi = 1e6,
     .fallback = "100", .help = "largest number of restarts"},
};

/* ---- one start ---- */

/* Makes the folder DIR/start-K for the ranks' output, with the first K that is free. */
static Status make_log_folder(Supervisor *s)
{
    char root[PATH_MAX], path[PATH_MAX + 32];
    if (!s->flags->logs) return OK;
    if (!*s->flags->logs) return fail(ERR_USAGE, "--log-dir: the folder's name is empty");
    if (file_make_folders(s->flags->logs) != OK)
        return fail(ERR_IO, "--log-dir: %s", fail_message());
    if (!realpath(s->flags->logs, root))
        return fail(ERR_IO, "--log-dir %s: %s", s->flags->logs, strerror(errno));
    for (int k = s->log_number + 1;; ++k) {
        snprintf(path, sizeof path, "%s/start-%d", root, k);
        s->log_number = k;
        if (mkdir(path, 0777) == 0) break;
        if (errno != EEXIST) return fail(ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
    }
    setenv("WEFT_LOG_DIR", path, 1);
    return OK;
}

/* Returns the command that starts the ranks: through the hosts, by mpirun on this host, or the bare
 * command for a single rank. */
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

static void announce(const Supervisor *s)
{
    char *hosts = s->hosts.count > 0 ? hosts_text(&s->hosts) : NULL, from[64] = "";
    const char *logs = s->flags->logs ? getenv("WEFT_LOG_DIR") : NULL;
    if (s->step >= 0) snprintf(from, sizeof from, ", from step %lld", (long long)s->step);
    if (s->start > 1 || hosts || logs)
        log_info("weft run: start %d: %d rank%s%s%s%s%s%s", s->start, s->ranks,
                 s->ranks == 1 ? "" : "s", hosts ? " on " : "", hosts ? hosts : "", from,
                 logs ? "; what they print is in " : "", logs ? logs : "");
    mem_free(&hosts);
}

static Status start_once(Supervisor *s, int *code)
{
    starting_name(&s->attend.starting, s->folder, s->id, ++s->start);
    TRY(make_log_folder(s));
    announce(s);
    char **words = start_words(s);
    s->attend.local = s->hosts.count == 0 || hosts_are_local(&s->hosts);
    s->attend.alone = s->ranks == 1 && s->hosts.count == 0;
    s->attend.elsewhere = !s->attend.local;
    s->attend.starting.hosts = s->hosts.count > 0 ? &s->hosts : NULL;
    Status status = attend_run(&s->attend, words, s->ranks, true, code);
    words_free(words);
    return status;
}

/* ---- after a start has ended ---- */

/* True for errors that every further start would repeat: in the command line, the data or the
 * configuration. */
static bool is_final(int code)
{
    return code == ERR_USAGE || code == ERR_DATA || code == ERR_NOINPUT || code == ERR_MEMORY ||
           code == ERR_CONFIG;
}

/* True if the ranks ended in order, not because one was lost. */
static bool in_order(const Supervisor *s)
{
    return lease_start_state(s->folder, s->id, s->start) == LEASE_START_ENDED;
}

/* Gives the run up. The message does not suggest another start. */
static Status give_up(Supervisor *s, int code, const char *why)
{
    bool crash = code == ERR_BUG || attend_crashed(&s->attend, code);
    return fail(crash ? ERR_BUG : ERR_IO, "weft run: not started again: %s%s", why,
                s->any ? "; its checkpoints stay" : "");
}

/* Looks for a checkpoint that the last start has left (progress), or that existed before the first
 * start. Older files may be damaged or stem from another run. */
static Status find_checkpoints(Supervisor *s, bool *progress)
{
    int64_t step;
    TRY(checkpoint_new_step(s->checkpoints, s->seen, &step));
    *progress = step >= 0;
    s->any |= *progress;
    if (*progress && s->start > 0) s->step = step;
    return OK;
}

/* Returns the part of the message that says what was lost when a stop was requested. */
static const char *unsaved(Supervisor *s, int code)
{
    bool progress;
    LeaseStart lease = lease_start_state(s->folder, s->id, s->start);
    if (attend_stopped_early(&s->attend) || lease == LEASE_START_NOT_OWNER ||
        (lease == LEASE_START_ENDED && code == ERR_STOPPED))
        return "";
    if (find_checkpoints(s, &progress) == OK && !s->any)
        return "; there is no checkpoint, so all that was computed is lost";
    return "; what came after the newest checkpoint is lost";
}

/* Returns the status of a start that ended after a signal. */
static Status stopped(Supervisor *s, int code)
{
    if (code == OK) return OK;
    const char *lost = unsaved(s, code);
    if (s->attend.ends > 1)
        return fail(s->any ? ERR_STOPPED : ERR_IO, "weft run: ended at once, as requested twice%s",
                    lost);
    if (is_final(code)) return fail((Status)code, "weft run: ended with exit code %d", code);
    return fail(ERR_STOPPED,
                "weft run: stopped as requested%s: start the same command again%s to continue",
                lost, train_leave_out(s->config));
}

/* Decides after a loss whether to start again, and prepares it. The first new start has no
 * delay. */
static Status prepare_again(Supervisor *s, int code)
{
    bool progress;
    if (starting_has_stepped(&s->attend.watch) &&
        lease_start_state(s->folder, s->id, s->start) == LEASE_START_NOT_OWNER)
        return give_up(s, code,
                       "the run's folder has been renamed or removed, or is another run's");
    TRY(find_checkpoints(s, &progress));
    s->fruitless = progress ? 0 : s->fruitless + 1;
    if (s->fruitless >= STUCK)
        return give_up(s, code, "three starts in turn brought no newer checkpoint");
    if (s->start > s->flags->restarts) return give_up(s, code, "--max-restarts is reached");
    if (s->fruitless > 1) TRY(supervisor_backoff(s, s->fruitless - 1));
    return supervisor_choose_ranks(s, true);
}

/* Reports why mpirun could not start ranks on this host (*why is owned and freed). Fails if it was
 * the first start, because another one would fail in the same way. */
static Status not_started(const Supervisor *s, char **why)
{
    Status status = OK;
    if (s->start == 1)
        status = fail(ERR_USAGE, "weft run: %s", *why);
    else
        log_error("weft run: start %d: %s", s->start, *why);
    mem_free(why);
    return status;
}

/* Reports how the ranks were lost. If no rank has begun, perhaps none could be started: on this
 * host mpirun is tested for the reason; for other hosts mpirun or srun has already printed it. */
static Status say_loss(Supervisor *s, int code)
{
    bool begun = attend_begun(&s->attend) || attend_status(code), local = s->hosts.count == 0;
    char *why = local && attend_may_be_refused(&s->attend, code)
                    ? mpirun_refusal(s->ranks, s->command[0])
                    : NULL;
    if (why) return not_started(s, &why);
    char *loss = attend_loss(&s->attend, code);
    if (local || begun)
        log_error("weft run: start %d: %s", s->start, loss);
    else
        log_error("weft run: start %d: %s, or none could be started: %s's words above say which",
                  s->start, loss, s->attend.starter);
    mem_free(&loss);
    return OK;
}

/* Decides what follows from an exit code. OK: *again is set to start once more, else the training
 * is done. */
static Status judge(Supervisor *s, int code, bool *again)
{
    *again = false;
    if (s->attend.first) return stopped(s, code);
    if (code == OK) return OK;
    if (code == ERR_STOPPED && attend_stopped_early(&s->attend)) return stopped(s, code);
    if (code == ERR_STOPPED && in_order(s))
        return fail(ERR_STOPPED,
                    "weft run: the training stopped by itself, saved: start the same command "
                    "again%s to continue",
                    train_leave_out(s->config));
    if (is_final(code))
        return fail((Status)code, "weft run: not started again: exit code %d would come again",
                    code);
    TRY(say_loss(s, code));
    TRY(prepare_again(s, code));
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
        Status status = judge(s, code, &again);
        attend_fini_run(&s->attend);
        if (status != OK) return status;
    }
    return OK;
}

/* ---- the verb ---- */

static Status run(int argc, char **argv, const void *options)
{
    if (launched())
        return fail(ERR_USAGE, "weft run starts ranks itself: run it without mpirun or srun");
    Supervisor s = {.flags = options, .step = -1};
    Status status = supervisor_init(&s, argc, argv);
    if (status == OK) {
        attend_init(&s.attend);
        s.attend.hang_s = s.config->train.hang_s;
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
            "--hostfile; elsewhere ranks start on this host, in the number given by grid or -n. "
            "After a crash, a killed rank or a lost host the ranks start again from the newest "
            "checkpoint. If hosts are lost and no spare is left, they start with fewer replicas "
            "(grid.dp), and a message says whether bits differ. Exit codes 64, 65, 66, 71 and 78 "
            "are final, and so are three consecutive starts without a newer checkpoint. Signals "
            "are forwarded: the ranks save a checkpoint, and weft run ends with 75.",
    VERB_FLAGS(RunFlags, flags),
    .traits = VERB_LASTS | VERB_STARTS,
    .run = run,
};
