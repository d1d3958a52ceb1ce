/* Starting ranks: `weft VERB -n N ...` runs `mpirun -n N weft VERB ...` and takes over its exit code. Inside a batch job
 * the scheduler's slots count; at a desk the cores do, and more ranks than cores are allowed with a warning.
 * A signal must not end mpirun, which would kill its ranks a second later and exit 1: it is kept from mpirun and goes to
 * the ranks as SIGUSR1, which mpirun passes on, so that they can write their checkpoint. A second one ends mpirun. */
#include "private.h"

#include "tensor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
        if (text && *text) return atoi(text);
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

/* Through the environment, for mpirun's own options for these are not the same in Open MPI 4 and 5. */
static void open_mpi_settings(void)
{
    if (!in_batch_job()) { /* its own words on a rank that failed add nothing */
        setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
        setenv("PRTE_MCA_prte_execute_quiet", "1", 0);
    }
    if (geteuid() != 0) return; /* containers run as root; Open MPI wants to be told twice */
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

static const int watched_signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1};

static sigset_t watched_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched_signals / sizeof *watched_signals; ++i)
        sigaddset(&set, watched_signals[i]);
    return set;
}

/* Until mpirun has ended; passes the signals in `watched` on. */
static _Noreturn void attend(pid_t mpirun, const sigset_t *watched)
{
    int number, state, asked = 0;
    for (;;) {
        if (sigwait(watched, &number) != 0) continue;
        if (number != SIGCHLD)
            kill(mpirun, asked++ == 0 ? SIGUSR1 : SIGTERM);
        else if (waitpid(mpirun, &state, WNOHANG) == mpirun)
            _exit(WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state));
    }
}

/* In the new process: out of reach of the terminal's Ctrl-C, and not outliving its parent. Nobody reads stdin. */
static void become_child(void)
{
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing > 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDIN_FILENO) close(nothing);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

Status launch_ranks(int ranks, int threads, char **words)
{
    int cores = threads_share(1);
    if (ranks > cores && !in_batch_job())
        log_warn("%d ranks on %d core%s: they will take turns", ranks, cores,
                 cores == 1 ? "" : "s");
    if (is_open_mpi()) open_mpi_settings();
    if (!in_batch_job()) threads_export(ranks, threads);
    char **out = mpirun_words(ranks, words);
    fflush(NULL);
    sigset_t watched = watched_set(), before;
    sigprocmask(SIG_BLOCK, &watched, &before);
    pid_t child = fork();
    if (child > 0) attend(child, &watched);
    if (child == 0) become_child(); /* where there is no fork, mpirun takes our place */
    sigprocmask(SIG_SETMASK, &before, NULL);
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

void launch_block(sigset_t *before)
{
    sigset_t watched = watched_set();
    sigaddset(&watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &watched, before);
}

/* In the new process; what fails here is in the log. One rank needs no mpirun. */
static _Noreturn void run_child(const Launch *l)
{
    sigset_t none;
    become_child();
    int log = open(l->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
    sigaddset(&watched, SIGHUP);
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
