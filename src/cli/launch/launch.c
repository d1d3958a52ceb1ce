/* Starts ranks: `weft VERB -n N ...` runs `mpirun -n N weft VERB ...`, or a single rank without
 * mpirun, and derives its own exit code from that of the command. In a batch job mpirun limits the
 * number of ranks to the scheduler's slots. Elsewhere more ranks than cores are allowed, with a
 * warning. */
#include "runner.h"
#include "../private.h"

#include "checkpoint.h"
#include "tensor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

bool is_launched(void)
{
    int local = 1;
    return world_launched(&local);
}

int launch_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    if (!is_launched()) return 0;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; ++i) {
        const char *text = getenv(variables[i]);
        int64_t rank;
        if (text && whole_read(&text, 0, INT32_MAX, &rank)) return (int)rank;
    }
    return 0;
}

bool in_batch_job(void)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; ++i)
        if (getenv(variables[i])) return true;
    return false;
}

bool is_open_mpi(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    return strstr(version, "Open MPI") != NULL;
}

/* Sets environment variables instead of options of mpirun, because the options differ between Open
 * MPI 4 and 5. */
void open_mpi_set_env(bool quiet)
{
    /* mpirun's message about a failed rank adds nothing to the rank's own */
    if (quiet) {
        setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
        setenv("PRTE_MCA_prte_execute_quiet", "1", 0);
    }
    /* containers run as root, which Open MPI only allows if both variables are set */
    if (geteuid() != 0) return;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

void mpirun_add_env(Words *w)
{
    static const char *const passed_on[] = {WATCH_VARIABLE, LEASE_RUN, "WEFT_LOG_DIR", "WEFT_CPU"};
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; ++i) {
        /* WATCH_VARIABLE is always passed on, because watch_init sets it later, when the ranks are
         * started */
        if (i > 0 && !getenv(passed_on[i])) continue;
        words_add(w, mem_text("-x"));
        words_add(w, mem_text(passed_on[i]));
    }
}

char **mpirun_words(int ranks, char *const *command)
{
    Words w = {0};
    words_add(&w, mem_text("mpirun"));
    if (is_open_mpi() && !in_batch_job()) words_add(&w, mem_text("--oversubscribe"));
    words_add(&w, mem_text("--bind-to"));
    words_add(&w, mem_text("none"));
    words_add(&w, mem_text("-n"));
    words_add(&w, mem_format("%d", ranks));
    if (is_open_mpi() && in_batch_job()) mpirun_add_env(&w);
    for (int i = 0; command[i]; ++i) words_add(&w, mem_text(command[i]));
    return w.word;
}

/* Returns whether an mpirun that was started as a test could not start ranks. The result is true if
 * mpirun ended by itself, with a code that is not one of weft's. If mpirun was killed, nothing is
 * known, and the result is false. mpirun's own codes may exceed 128, so only the codes of SIGKILL
 * and SIGTERM are taken to mean that it was killed. */
static bool is_refusal(int code)
{
    bool killed = code == 128 + SIGKILL || code == 128 + SIGTERM;
    return code != COMMAND_TIMED_OUT && !killed && !is_weft_status(code);
}

/* Returns a line of advice if /dev/shm has too little space for the ranks, else "". The caller owns
 * the text. */
static char *shm_advice(int ranks)
{
    /* estimated space in /dev/shm that each rank needs */
    static const double RANK_BYTES = 8 << 20;
    struct statvfs fs;
    char free_bytes[16], need[16];
    if (statvfs("/dev/shm", &fs) != 0) return mem_text("");
    double left = (double)fs.f_bavail * (double)fs.f_frsize;
    if (left >= ranks * RANK_BYTES) return mem_text("");
    return mem_format("\n/dev/shm, which ranks of a host use for messages, has %s free here, and "
                      "%d ranks need %s: docker run --shm-size=1g, or mount -o remount,size=1g "
                      "/dev/shm; `weft doctor` checks it",
                      text_bytes(left, free_bytes), ranks, text_bytes(ranks * RANK_BYTES, need));
}

/* Starts `weft train` without CONFIG as a test. Its ranks pass MPI_Init, report that CONFIG is
 * missing, and end with one of weft's own codes. */
char *mpirun_refusal(int ranks, char *program)
{
    static const char *const before[] = {"env", WATCH_VARIABLE "=0",
                                         "OMPI_MCA_orte_execute_quiet=0",
                                         "PRTE_MCA_prte_execute_quiet=0"};
    static const double TEST_MAX_S = 60;
    char *command[] = {program, "train", NULL}, **mpirun = mpirun_words(ranks, command);
    char text[4096];
    Words w = {0};
    for (size_t i = 0; i < sizeof before / sizeof *before; ++i) words_add(&w, mem_text(before[i]));
    for (int i = 0; mpirun[i]; ++i) words_add(&w, mem_text(mpirun[i]));
    int code = command_output(w.word, TEST_MAX_S, text, sizeof text);
    words_free(w.word);
    words_free(mpirun);
    if (!is_refusal(code)) return NULL;
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n') text[--length] = 0;
    static const char says[] = "the ranks could not be started; mpirun says:";
    char *advice = shm_advice(ranks),
         *why = length > 0 ? mem_format("%s\n%s%s", says, text, advice)
                           : mem_format("%s\nnothing (its exit code is %d)%s", says, code, advice);
    mem_free(&advice);
    return why;
}

char **launch_words(int ranks, char *const *words)
{
    char path[4096];
    const char *program = program_path(path, sizeof path) ? path : words[0];
    Words command = {0};
    words_add(&command, mem_text(program));
    for (int i = 1; words[i]; ++i) {
        if (!strcmp(words[i], "-n") && words[i + 1])
            ++i;
        else if (strncmp(words[i], "-n=", 3) != 0)
            words_add(&command, mem_text(words[i]));
    }
    if (ranks == 1) return command.word;
    char **out = mpirun_words(ranks, command.word);
    words_free(command.word);
    return out;
}

/* Reports how the ranks were lost, and the newest checkpoint. Returns ERR_BUG if a rank crashed by
 * itself and the user had not requested a stop twice. Otherwise returns ERR_STOPPED if there is a
 * checkpoint, or ERR_IO if there is none. */
static Status report_loss(const Ranks *ranks, Runner *r, int code)
{
    bool requested = r->stop_requests > 1;
    char *newest = NULL, *checkpoints = mem_format("%s/checkpoints", ranks->folder),
         *loss = requested ? mem_text("ended at once, as requested twice")
                           : runner_describe_loss(r, code);
    if (checkpoint_newest(checkpoints, NULL, &newest) != OK) log_warn("%s", fail_message());
    Status status = runner_rank_crashed(r, code) && !requested ? ERR_BUG
                    : newest                                   ? ERR_STOPPED
                                                               : ERR_IO;
    log_error("%s; %s%s: start the same command again%s %s", loss,
              newest ? "the newest checkpoint is " : "there is no checkpoint yet",
              newest ? newest : "", newest ? ranks->leave_out : "",
              newest ? "to continue" : "to begin anew");
    mem_free(&newest);
    mem_free(&checkpoints);
    mem_free(&loss);
    return status;
}

/* Returns the exit code of this process. Reports why the ranks have ended, if they have not
 * reported it themselves. code, why: results of launch_run. */
static int exit_code(const Ranks *ranks, Runner *r, int code, const char *why)
{
    /* ends this process by the signal that ended the ranks */
    if (!r->trains && r->first_signal) {
        signal(r->first_signal, SIG_DFL);
        raise(r->first_signal);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
    }
    if (!r->trains && r->problem) {
        log_error("%s", r->problem);
        return ERR_IO;
    }
    if (why) {
        log_error("%s", why);
        return ERR_IO;
    }
    if (!r->trains || (is_weft_status(code) && code != ERR_STOPPED)) return code;
    if (r->stop_requests <= 1 && (r->first_signal || code == ERR_STOPPED) &&
        runner_stopped_early(r)) {
        log_info("%s", STOPPED_BEFORE_STEPS);
        return ERR_STOPPED;
    }
    if (is_weft_status(code)) return code;
    if (r->stop_requests > 1) return report_loss(ranks, r, code);
    /* a signal kills a rank, or mpirun, that has not set its handler yet */
    bool rank_killed = code == 128 + SIGUSR1;
    bool mpirun_killed = (code == 128 + SIGTERM || code == 128 + SIGINT) && !runner_any_began(r);
    if (r->first_signal && (rank_killed || mpirun_killed)) {
        log_info("%s", STOPPED_BEFORE_STEPS);
        return ERR_STOPPED;
    }
    if (r->problem || runner_any_began(r) || code >= 128) return report_loss(ranks, r, code);
    return code;
}

void launch_prepare(int ranks, int threads)
{
    int cores = threads_share(1);
    if (ranks > cores && !in_batch_job())
        log_warn("%d ranks on %d core%s: they will take turns", ranks, cores,
                 cores == 1 ? "" : "s");
    if (is_open_mpi()) open_mpi_set_env(!in_batch_job());
    if (!in_batch_job()) threads_export(ranks, threads);
}

Status launch_run(Runner *r, int ranks, char *const *words, bool trains, int *code, char **why)
{
    /* number of starts */
    enum { STARTS_MAX = 3 };
    char path[4096], **command = launch_words(ranks, words),
                     *program = program_path(path, sizeof path) ? path : words[0];
    Status status = OK;
    *why = NULL;
    for (int start = 1;; ++start) {
        status = runner_run(r, command, ranks, trains, code);
        if (status != OK || !runner_may_have_failed_to_start(r, *code)) break;
        *why = mpirun_refusal(ranks, program);
        /* larger codes may be those of a signal, by which a user has ended mpirun */
        if (*why || *code >= 128 || start == STARTS_MAX) break;
        runner_fini_run(r);
        log_warn(
            "mpirun has failed to start the ranks (its exit code is %d), but can start others: "
            "starting the ranks again",
            *code);
    }
    words_free(command);
    return status;
}

Status launch_ranks(const Ranks *ranks)
{
    Runner r;
    char id[RANDOM_ID_BYTES], *why;
    int code = 0;
    launch_prepare(ranks->count, ranks->threads);
    runner_init(&r);
    random_id(id);
    if (ranks->folder) start_watch_set_id(&r.start_watch, ranks->folder, id, 1);
    r.hang_s = ranks->hang_s;
    /* In a batch job mpirun may place ranks on other hosts. SIGHUP to mpirun ends those ranks,
     * too. */
    r.local = true;
    r.may_be_remote = in_batch_job();
    Status status = launch_run(&r, ranks->count, ranks->words, ranks->folder != NULL, &code, &why);
    if (status == OK) _exit(exit_code(ranks, &r, code, why));
    return status;
}
