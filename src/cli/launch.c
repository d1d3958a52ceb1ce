/* Starting ranks: `weft VERB -n N ...` runs `mpirun -n N weft VERB ...` and takes over its exit
 * code. Inside a batch job the scheduler's slots count; at a desk the cores do, and more ranks than
 * cores are allowed with a warning. */
#include "attend.h"
#include "private.h"

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

bool launched(void)
{
    int local = 1;
    return world_launched(&local);
}

int launch_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    if (!launched()) return 0;
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

/* Through the environment, for mpirun's own options for these are not the same in Open MPI 4 and
 * 5. */
void open_mpi_settings(bool quiet)
{
    /* its own words on a rank that failed add nothing */
    if (quiet) {
        setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
        setenv("PRTE_MCA_prte_execute_quiet", "1", 0);
    }
    /* containers run as root; Open MPI wants to be told twice */
    if (geteuid() != 0) return;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
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
    for (int i = 0; command[i]; ++i) words_add(&w, mem_text(command[i]));
    return w.word;
}

/* Does the question end by itself, with a code that is not weft's own? One that somebody has killed
 * says nothing. mpirun's own codes may be beyond 128, too. */
static bool is_refusal(int code)
{
    bool killed = code == 128 + SIGKILL || code == 128 + SIGTERM;
    return code != COMMAND_SILENT && !killed && !attend_status(code);
}

/* "; /dev/shm on this host has 1.0 MB free, ..." where that is little, else "". Owned. */
static char *shm_advice(int ranks)
{
    static const double RANK_BYTES = 8 << 20;
    struct statvfs fs;
    char free_bytes[16], need[16];
    if (statvfs("/dev/shm", &fs) != 0) return mem_text("");
    double left = (double)fs.f_bavail * (double)fs.f_frsize;
    if (left >= ranks * RANK_BYTES) return mem_text("");
    return mem_format("\n/dev/shm, through which ranks of a host talk, has %s free here, and %d "
                      "ranks want %s: docker run --shm-size=1g, or mount -o remount,size=1g "
                      "/dev/shm; `weft doctor` checks it",
                      text_bytes(left, free_bytes), ranks, text_bytes(ranks * RANK_BYTES, need));
}

/* The question is a training without a CONFIG: it comes through MPI_Init, says what is missing, and
 * ends with a code of weft's own. */
char *mpirun_refusal(int ranks, char *program)
{
    static const char *const before[] = {"env", "-u", WATCH_VARIABLE,
                                         "OMPI_MCA_orte_execute_quiet=0",
                                         "PRTE_MCA_prte_execute_quiet=0"};
    static const double LIMIT_S = 60;
    char *command[] = {program, "train", NULL}, **mpirun = mpirun_words(ranks, command);
    /* a message's length */
    char text[4096];
    Words w = {0};
    for (size_t i = 0; i < sizeof before / sizeof *before; ++i) words_add(&w, mem_text(before[i]));
    for (int i = 0; mpirun[i]; ++i) words_add(&w, mem_text(mpirun[i]));
    int code = command_ask(w.word, LIMIT_S, text, sizeof text);
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

/* This program with the words of main but -n, under mpirun. */
static char **own_words(int ranks, char *const *words)
{
    char path[4096];
    const char *program = program_path(path, sizeof path) ? path : words[0];
    Words own = {0};
    words_add(&own, mem_text(program));
    for (int i = 1; words[i]; ++i) {
        if (!strcmp(words[i], "-n") && words[i + 1])
            ++i;
        else if (strncmp(words[i], "-n=", 3) != 0)
            words_add(&own, mem_text(words[i]));
    }
    char **out = mpirun_words(ranks, own.word);
    words_free(own.word);
    return out;
}

/* A run whose rank was killed, or whose link broke, loses what came after its newest checkpoint:
 * ERR_STOPPED where there is one. Without: ERR_IO, for whoever killed it, it was not the program;
 * but a crash of a rank is a fault of ours. */
static Status lost(const Ranks *ranks, Attend *a, int code)
{
    bool asked = a->ends > 1;
    char *newest = NULL,
         *loss = asked ? mem_text("ended at once, as asked twice") : attend_loss(a, code);
    if (checkpoint_newest(ranks->checkpoints, NULL, &newest) != OK) log_warn("%s", fail_message());
    Status status = attend_crashed(a, code) && !asked ? ERR_BUG : newest ? ERR_STOPPED : ERR_IO;
    log_error("%s; %s%s: start the same command again%s %s", loss,
              newest ? "the newest checkpoint is " : "there is no checkpoint yet",
              newest ? newest : "", newest ? ranks->leave_out : "",
              newest ? "to continue" : "to begin anew");
    mem_free(&newest);
    mem_free(&loss);
    return status;
}

/* Where mpirun cannot start them: says why. */
static bool cannot_start(const Ranks *ranks)
{
    char path[4096];
    bool found = program_path(path, sizeof path);
    char *why = mpirun_refusal(ranks->count, found ? path : ranks->words[0]);
    if (why) log_error("%s", why);
    bool cannot = why != NULL;
    mem_free(&why);
    return cannot;
}

/* The exit code of a command whose mpirun has ended with `code`. */
static int judge(const Ranks *ranks, Attend *a, int code)
{
    /* end as this signal ends a program */
    if (!a->lasts && a->first) {
        signal(a->first, SIG_DFL);
        raise(a->first);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
    }
    if (attend_may_be_refused(a, code) && cannot_start(ranks)) return ERR_IO;
    if (!a->lasts || (attend_status(code) && code != ERR_STOPPED)) return code;
    if (a->ends <= 1 && (a->first || code == ERR_STOPPED) && attend_stopped_early(a)) {
        log_info("%s", STOPPED_BEFORE_STEPS);
        return ERR_STOPPED;
    }
    if (attend_status(code)) return code;
    if (a->ends > 1) return lost(ranks, a, code);
    /* so early that the signal was not caught yet */
    bool early = code == 128 + SIGTERM || code == 128 + SIGINT;
    if (a->first && (code == 128 + SIGUSR1 || (early && !attend_begun(a)))) {
        log_info("%s", STOPPED_BEFORE_STEPS);
        return ERR_STOPPED;
    }
    if (attend_begun(a) || code >= 128) return lost(ranks, a, code);
    return code;
}

void launch_prepare(int ranks, int threads)
{
    int cores = threads_share(1);
    if (ranks > cores && !in_batch_job())
        log_warn("%d ranks on %d core%s: they will take turns", ranks, cores,
                 cores == 1 ? "" : "s");
    if (is_open_mpi()) open_mpi_settings(!in_batch_job());
    if (!in_batch_job()) threads_export(ranks, threads);
}

Status launch_ranks(const Ranks *ranks)
{
    Attend a;
    int code = 0;
    launch_prepare(ranks->count, ranks->threads);
    char **out = own_words(ranks->count, ranks->words);
    attend_init(&a);
    a.hang_s = ranks->hang_s;
    /* in a batch job mpirun may take some elsewhere; it ends them by SIGHUP, too */
    a.here = true;
    Status status = attend_run(&a, out, ranks->count, ranks->checkpoints != NULL, &code);
    words_free(out);
    if (status == OK) _exit(judge(ranks, &a, code));
    return status;
}

/* ---- a command that is waited for ---- */

static sigset_t watched_set(void)
{
    static const int number[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i) sigaddset(&set, number[i]);
    return set;
}

void launch_block(sigset_t *before)
{
    sigset_t watched = watched_set();
    sigprocmask(SIG_BLOCK, &watched, before);
}

/* In the new process; what fails here is in the log. One rank needs no mpirun. */
static _Noreturn void run_child(const Launch *l)
{
    sigset_t none;
    become_child();
    int log = file_create(l->log, O_WRONLY | O_TRUNC);
    if (log >= 0 && dup2(log, STDOUT_FILENO) >= 0) dup2(log, STDERR_FILENO);
    /* The log is shown where the ranks fail, with mpirun's own words. */
    if (is_open_mpi()) open_mpi_settings(false);
    threads_export(l->ranks, l->threads);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (l->ranks > 1)
        execvp("mpirun", own_words(l->ranks, l->words));
    else
        execv("/proc/self/exe", (char **)l->words);
    fprintf(stderr, "weft: error: %s cannot be run: %s\n", l->ranks > 1 ? "mpirun" : l->words[0],
            strerror(errno));
    _exit(ERR_USAGE);
}

Status launch_wait(const Launch *l, int *code, int *stopped)
{
    sigset_t watched = watched_set();
    int number, state;
    *code = *stopped = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return fail(ERR_IO, "a process cannot be started: %s", strerror(errno));
    if (child == 0) run_child(l);
    while (waitpid(child, &state, WNOHANG) != child) {
        if (sigwait(&watched, &number) != 0 || number == SIGCHLD) continue;
        /* mpirun ends its ranks on SIGTERM; a rank alone would save first */
        kill(child, l->ranks > 1 && !*stopped ? SIGTERM : SIGKILL);
        /* one that is stopped by a signal takes no other before */
        kill(child, SIGCONT);
        *stopped = number;
    }
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return OK;
}
