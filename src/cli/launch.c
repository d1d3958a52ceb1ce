/* Starting ranks: `weft VERB -n N ...` runs `mpirun -n N weft VERB ...` and takes over its exit
 * code. Inside a batch job the scheduler's slots count; at a desk the cores do, and more ranks than
 * cores are allowed with a warning. A signal must not end training: mpirun would kill its ranks a
 * second later and exit 1. It is kept from mpirun and goes to the ranks as SIGUSR1, which mpirun
 * passes on, so that they can write their checkpoint. A second SIGINT or SIGTERM ends mpirun; so
 * does the first of any signal to another verb. */
#include "private.h"

#include "checkpoint.h"
#include "tensor.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
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

static bool in_batch_job(void)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; ++i)
        if (getenv(variables[i])) return true;
    return false;
}

static bool is_open_mpi(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    return strstr(version, "Open MPI") != NULL;
}

/* Through the environment, for mpirun's own options for these are not the same in Open MPI 4 and
 * 5. */
static void open_mpi_settings(void)
{
    /* its own words on a rank that failed add nothing */
    if (!in_batch_job()) {
        setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
        setenv("PRTE_MCA_prte_execute_quiet", "1", 0);
    }
    /* containers run as root; Open MPI wants to be told twice */
    if (geteuid() != 0) return;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

/* mpirun with its own options, the program, the words of main without -n. */
static char **mpirun_words(int ranks, char *const *words)
{
    int count = 0, n = 0;
    while (words[count]) ++count;
    char **out = mem_new((size_t)(count + 16) * sizeof *out), program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    out[n++] = mem_text("mpirun");
    if (is_open_mpi() && !in_batch_job()) out[n++] = mem_text("--oversubscribe");
    out[n++] = mem_text("--bind-to");
    out[n++] = mem_text("none");
    out[n++] = mem_text("-n");
    out[n++] = mem_format("%d", ranks);
    out[n++] = mem_text(length > 0 ? program : words[0]);
    for (int i = 1; i < count; ++i) {
        if (!strcmp(words[i], "-n"))
            ++i;
        else if (strncmp(words[i], "-n=", 3) != 0)
            out[n++] = mem_text(words[i]);
    }
    return out;
}

static void words_free(char **words)
{
    for (int i = 0; words[i]; ++i) mem_free(&words[i]);
    mem_free(&words);
}

/* ---- until mpirun has ended ---- */

/* What mpirun is told of a signal to this process. */
typedef struct Passing {
    pid_t mpirun;
    bool lasts;
    /* by this signal mpirun itself ended; 0: by none */
    int killed;
    /* signal; 0: none has come */
    int first;
    /* of SIGINT and SIGTERM; a second one ends mpirun */
    int ends;
    double end_s;
} Passing;

/* One and the same wish often comes twice at once, to the process and to its group (timeout,
 * shells): that is one. */
static const double SAME_WISH_S = 1;

static void pass_on(Passing *p, int number)
{
    double now = clock_s();
    if (!p->first) p->first = number;
    bool end = number == SIGINT || number == SIGTERM;
    if (end && (p->ends == 0 || now - p->end_s > SAME_WISH_S)) {
        ++p->ends;
        p->end_s = now;
    }
    kill(p->mpirun, p->lasts && p->ends < 2 ? SIGUSR1 : SIGTERM);
}

/* Returns mpirun's exit code as a shell gives it. A wish to stop is passed on again and again:
 * mpirun and ranks that are only starting may miss it. */
static int attend(Passing *p, Watch *watch)
{
    enum { AGAIN_MS = 1000 };
    struct signalfd_siginfo info;
    int state;
    for (;;) {
        bool stopping = p->lasts && p->first;
        if (!watch_wait(watch, stopping ? AGAIN_MS : -1) && stopping) kill(p->mpirun, SIGUSR1);
        while (read(watch->signals, &info, sizeof info) == (ssize_t)sizeof info)
            if (info.ssi_signo != SIGCHLD) pass_on(p, (int)info.ssi_signo);
        if (waitpid(p->mpirun, &state, WNOHANG) == p->mpirun) break;
    }
    p->killed = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    return p->killed ? 128 + p->killed : WEXITSTATUS(state);
}

/* Signals that a program brings upon itself. */
static bool is_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
           number == SIGABRT || number == SIGTRAP || number == SIGSYS;
}

/* A run whose rank was killed, or whose link broke, loses what came after its newest checkpoint:
 * ERR_STOPPED where there is one. Without: ERR_IO, for whoever killed it, it was not the program;
 * but a crash of a rank is a fault of ours. */
static Status lost(const Ranks *ranks, const WatchedRank *rank, const Passing *p, int code)
{
    char *newest = NULL, who[64] = "a rank", how[128];
    int number = code > 128 ? code - 128 : 0;
    if (p->killed)
        snprintf(who, sizeof who, "mpirun (process %d)", (int)p->mpirun);
    else if (rank && rank->number >= 0)
        snprintf(who, sizeof who, "rank %d (process %d)", rank->number, (int)rank->process);
    if (number)
        snprintf(how, sizeof how, "was killed by signal %d (%s)%s", number, strsignal(number),
                 number == SIGKILL ? ": was memory short? The system's log says" : "");
    else
        snprintf(how, sizeof how, "was lost (mpirun's exit code is %d)", code);
    if (checkpoint_newest(ranks->checkpoints, NULL, &newest) != OK) log_warn("%s", fail_message());
    Status status = is_crash(number) && !p->killed ? ERR_BUG : newest ? ERR_STOPPED : ERR_IO;
    log_error("%s %s; %s%s: start the same command again%s %s", who, how,
              newest ? "the newest checkpoint is " : "there is no checkpoint yet",
              newest ? newest : "", newest && ranks->fresh ? ", but without run.fresh," : "",
              newest ? "to continue" : "to begin anew");
    mem_free(&newest);
    return status;
}

static bool is_status(int code)
{
    return code == OK || (code >= ERR_USAGE && code <= ERR_CONFIG);
}

/* The exit code of a command whose mpirun has ended with `code`. */
static int judge(const Ranks *ranks, const Passing *p, Watch *watch, int code)
{
    /* end as this signal ends a program */
    if (!p->lasts && p->first) {
        signal(p->first, SIG_DFL);
        raise(p->first);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
    }
    if (!p->lasts || is_status(code) || p->ends > 1) return code;
    /* so early that the signal was not caught yet */
    if (p->first && code == 128 + SIGUSR1) {
        log_info("stopped before the first step, so nothing is lost: start the same command again");
        return ERR_STOPPED;
    }
    const WatchedRank *rank = watch_lost(watch);
    if (code < 128 && watch->met == 0)
        return code; /* mpirun could not start them, and has said why */
    return lost(ranks, rank, p, code);
}

/* In the new process: out of reach of the terminal's Ctrl-C, and not outliving its parent. Nobody
 * reads stdin. */
static void become_child(void)
{
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing > 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDIN_FILENO) close(nothing);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Signals as this process found them. But where output that nobody reads is no reason to stop,
 * mpirun must not hear of it either: it has a handler that ends the job, and unblocks all signals
 * for its ranks. */
static void restore_signals(const sigset_t *before, bool lasts)
{
    sigset_t pipe;
    sigprocmask(SIG_SETMASK, before, NULL);
    stop_end();
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (lasts) sigprocmask(SIG_BLOCK, &pipe, NULL);
}

static sigset_t launcher_signals(void)
{
    sigset_t set;
    stop_signals(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

Status launch_ranks(const Ranks *ranks)
{
    int cores = threads_share(1);
    if (ranks->count > cores && !in_batch_job())
        log_warn("%d ranks on %d core%s: they will take turns", ranks->count, cores,
                 cores == 1 ? "" : "s");
    if (is_open_mpi()) open_mpi_settings();
    if (!in_batch_job()) threads_export(ranks->count, ranks->threads);
    char **out = mpirun_words(ranks->count, ranks->words);
    fflush(NULL);
    sigset_t watched = launcher_signals(), before;
    sigprocmask(SIG_BLOCK, &watched, &before);
    Watch watch;
    watch_init(&watch, ranks->count, signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC));
    Passing passing = {.mpirun = fork(), .lasts = ranks->checkpoints != NULL};
    if (passing.mpirun > 0) _exit(judge(ranks, &passing, &watch, attend(&passing, &watch)));
    /* where there is no fork, mpirun takes our place */
    if (passing.mpirun == 0) become_child();
    restore_signals(&before, passing.lasts);
    execvp(out[0], out);
    Status status =
        fail(ERR_USAGE,
             "-n starts mpirun, which cannot be run: %s; put your MPI's mpirun in PATH, "
             "or start the ranks yourself (srun weft ...)",
             strerror(errno));
    words_free(out);
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
    if (is_open_mpi()) open_mpi_settings();
    threads_export(l->ranks, l->threads);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (l->ranks > 1)
        execvp("mpirun", mpirun_words(l->ranks, l->words));
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
        *stopped = number;
    }
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return OK;
}
