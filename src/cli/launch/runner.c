/* Runs ranks to their end and passes signals on to them.
 *
 * A signal must not end a training at once: mpirun would kill its ranks a second later and exit
 * with 1. Therefore mpirun does not get the signal itself. It gets SIGUSR1, which mpirun and srun
 * forward to the ranks, and the ranks write a checkpoint. A second SIGINT, SIGTERM or SIGQUIT to
 * this process ends mpirun: by SIGTERM, or by SIGHUP if mpirun blocks SIGTERM. The mpirun of a
 * training blocks SIGINT and SIGTERM if Runner.local is set, because systemd and PBS send these
 * signals to every process when they end a job. A single rank is ended by SIGKILL. Commands other
 * than trainings are ended by the first signal.
 *
 * mpirun does not get Ctrl-Z (SIGTSTP) from the terminal either. This process passes SIGTSTP on to
 * mpirun, or to a single rank, but not to srun. */
#include "runner.h"
#include "../private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* time after a stop request in which further signals count as the same request: shells and the
 * command `timeout` send a signal both to a process and to its group */
static const double SAME_REQUEST_S = 1;
/* time in which mpirun must end after a loss, a second stop request or the ends of all ranks;
 * normally it needs a second or two */
static const double MPIRUN_END_MAX_S = 10;
/* time after a first signal in which ranks may end by themselves if none has begun its first
 * step */
static const double EARLY_END_S = 1;
/* time for which SIGCONT is sent repeatedly, because a delayed mpirun may receive SIGTSTP and
 * SIGCONT together and pass them on in the wrong order */
static const double CONTINUE_S = 5;

void runner_init(Runner *r)
{
    sigset_t set;
    *r = (Runner){0};
    stop_signals(&set);
    sigaddset(&set, SIGCHLD);
    static const int others[] = {SIGTSTP, SIGQUIT};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        struct sigaction now;
        if (sigaction(others[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, others[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &r->former_mask);
    getrlimit(RLIMIT_NOFILE, &r->former_files);
    r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Handles Ctrl-Z. Suspends the ranks, also those on other hosts, but no ranks of srun. Then
 * suspends this process until it is continued. mpirun itself keeps running. */
static void suspend(Runner *r)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    if (r->passes_suspend) kill(r->process, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r->continued_s = clock_s();
}

/* Returns whether SIGCONT must be sent again. */
static bool is_continuing(const Runner *r)
{
    return r->passes_suspend && r->continued_s > 0 && clock_s() - r->continued_s < CONTINUE_S;
}

/* Reads all pending signals. Returns whether there was a signal other than SIGCHLD and SIGTSTP.
 * *end: whether a second or later stop request was among them. */
static bool take_signals(Runner *r, bool *end)
{
    struct signalfd_siginfo info;
    bool any = false;
    *end = false;
    while (read(r->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        double now = clock_s();
        if (number == SIGTSTP) suspend(r);
        if (number == SIGCHLD || number == SIGTSTP) continue;
        any = true;
        if (!r->first_signal) r->first_signal_s = now;
        if (!r->first_signal) r->first_signal = number;
        if (number != SIGINT && number != SIGTERM && number != SIGQUIT) continue;
        if (r->stop_requests > 0 && now - r->last_request_s <= SAME_REQUEST_S) continue;
        *end = ++r->stop_requests > 1;
        r->last_request_s = now;
        if (r->stop_requests == 2) r->second_request_s = now;
    }
    return any;
}

/* Returns whether the mpirun that was started blocks SIGINT and SIGTERM. It does if the command is
 * a training and the caller has set `local`. */
static bool blocks_requests(const Runner *r)
{
    return r->trains && r->local && !r->single;
}

static bool is_srun(const Runner *r)
{
    return strcmp(r->starter, "srun") == 0;
}

/* Continues the process if it is stopped (SIGSTOP), because a stopped process handles no other
 * signal. Warns the first time. */
static void continue_stopped(Runner *r)
{
    if (process_state(r->process) != 'T') return;
    if (!r->stopped_reported)
        log_warn("%s (process %d) is stopped by a signal; weft continues it, so that it passes "
                 "signals on",
                 r->single ? "the rank" : r->starter, (int)r->process);
    r->stopped_reported = true;
    kill(r->process, SIGCONT);
}

static void send_signal(Runner *r, int number)
{
    kill(r->process, number);
    continue_stopped(r);
}

static void end_ranks(Runner *r)
{
    send_signal(r, r->single ? SIGKILL : blocks_requests(r) ? SIGHUP : SIGTERM);
}

/* Kills the connected ranks on this host. SIGKILL also ends ranks that are stopped. */
static void kill_local_ranks(const Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].fd >= 0 && !*watch->rank[i].host) kill(watch->rank[i].process, SIGKILL);
}

/* Kills mpirun, srun or the single rank, and the connected ranks on this host. */
static void kill_all(const Runner *r)
{
    kill(r->process, SIGKILL);
    kill_local_ranks(&r->watch);
}

/* Passes a stop request on to the ranks. end: true: ends them. */
static void pass_on(Runner *r, bool end)
{
    /* a single rank is killed, because it would interpret SIGTERM as a request to save */
    if (end || (r->single && !r->trains))
        end_ranks(r);
    else
        send_signal(r, r->trains ? SIGUSR1 : SIGTERM);
}

/* Ends ranks that are stopped or hang: those of a training before their first step, those of other
 * commands at any time. Also ends a training for which a signal arrived before its first step,
 * because there is nothing to save. */
static void check_start(Runner *r)
{
    if (!r->problem) {
        r->problem = start_watch_check(&r->start_watch, &r->watch, r->process);
        /* only mpirun can kill ranks on other hosts and ranks that are not known */
        if (r->problem && (r->may_be_remote || r->start_watch.count == 0)) end_ranks(r);
    }
    bool requested = r->first_signal && clock_s() - r->first_signal_s > EARLY_END_S;
    if (requested && r->trains && r->watch.connected > 0 && !start_any_stepped(&r->watch))
        end_ranks(r);
}

/* Returns whether stdout and stderr, which mpirun shares with this process, accept more output. */
static bool output_flows(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && poll(&err, 1, 0) == 1;
}

/* Returns whether mpirun has no reason to run on: all ranks have announced their ends, and output
 * that it still passes on has a reader. mpirun then waits for other processes that have inherited
 * the output of a rank, such as a background process of run.hook. srun ends such processes. */
static bool has_nothing_left(const Runner *r)
{
    if (r->single || is_srun(r) || r->watch.connected < r->watch.ranks) return false;
    for (int i = 0; i < r->watch.connected; ++i)
        if (!r->watch.rank[i].ended) return false;
    return output_flows();
}

/* Ends mpirun, srun or the single rank if it has not ended in time. After the loss of a rank, or
 * the ends of all, it is asked to end after MPIRUN_END_MAX_S, and killed after twice this time.
 * After a second stop request, it is killed after MPIRUN_END_MAX_S. over_s: time of the loss or of
 * the ends; 0: ranks are running. */
static void end_late(Runner *r, double over_s)
{
    double now = clock_s(), over_for_s = over_s > 0 ? now - over_s : 0;
    if (over_for_s > 2 * MPIRUN_END_MAX_S ||
        (r->stop_requests > 1 && now - r->second_request_s > MPIRUN_END_MAX_S))
        kill_all(r);
    else if (over_for_s > MPIRUN_END_MAX_S)
        end_ranks(r);
}

static bool any_local_rank(const Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].fd >= 0 && !*watch->rank[i].host) return true;
    return false;
}

/* Kills the ranks on this host that have outlived mpirun or srun, which happens if that was killed,
 * and waits for their ends: another start could meet them in the run's folder. */
static void end_remaining(Runner *r)
{
    enum { POLL_MS = 50 };
    double end_s = clock_s() + MPIRUN_END_MAX_S;
    bool end;
    /* receives the messages that ranks sent before they ended */
    (void)watch_lost_rank(&r->watch);
    int lost_index = r->watch.lost_index;
    kill_local_ranks(&r->watch);
    while (any_local_rank(&r->watch) && clock_s() < end_s)
        if (watch_wait(&r->watch, POLL_MS)) take_signals(r, &end);
    /* a rank that was killed here is not the cause of the loss */
    r->watch.lost_index = lost_index;
}

/* Waits for the end of the process and returns *code of runner_run. The stop request to a training
 * is sent repeatedly, because mpirun and ranks may miss it while they are starting. */
static int wait_for_end(Runner *r)
{
    /* Longest waits in ms. REPEAT_MS: while a signal is sent repeatedly; START_MS: while ranks
     * start. */
    enum { REPEAT_MS = 1000, START_MS = 500 };
    double over_s = 0;
    int state;
    pid_t ended;
    while ((ended = waitpid(r->process, &state, WNOHANG)) == 0) {
        bool over = r->watch.lost_index >= 0 || r->problem || has_nothing_left(r), end;
        bool repeats = r->first_signal || over || is_continuing(r);
        bool starts = !start_is_over(&r->watch);
        bool signalled = watch_wait(&r->watch, starts ? START_MS : repeats ? REPEAT_MS : -1);
        if (take_signals(r, &end))
            pass_on(r, end);
        else if (!signalled && r->first_signal && r->trains && r->stop_requests <= 1)
            pass_on(r, false);
        else if (!signalled && r->first_signal)
            /* the signal is not repeated, because mpirun would then end without its ranks */
            continue_stopped(r);
        if (starts) check_start(r);
        if (is_continuing(r)) kill(r->process, SIGCONT);
        over_s = !over ? 0 : over_s > 0 ? over_s : clock_s();
        end_late(r, over_s);
    }
    r->passes_suspend = false;
    end_remaining(r);
    Status status;
    /* mpirun itself may fail after its ranks have ended normally */
    if (watch_all_ended(&r->watch, &status)) return (int)status;
    if (ended < 0) return ERR_IO;
    r->killed_by = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    /* mpirun or srun may report success after its ranks were killed */
    if (r->problem && WIFEXITED(state) && WEXITSTATUS(state) == OK) return 128 + SIGKILL;
    return r->killed_by ? 128 + r->killed_by : WEXITSTATUS(state);
}

void become_child(void)
{
    int fd = open("/dev/null", O_RDONLY);
    if (fd > 0) dup2(fd, STDIN_FILENO);
    if (fd > STDIN_FILENO) close(fd);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Raises the soft limit of open files, if the hard limit permits it, so that each rank can have a
 * connection. It is not raised further, because mpirun closes as many descriptors in each process
 * that it starts. */
static void permit_connections(const Runner *r, int ranks)
{
    enum { OTHERS = 256 };
    const rlim_t needed = (rlim_t)ranks + OTHERS;
    struct rlimit files = r->former_files;
    if (files.rlim_cur >= needed) return;
    files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Restores the signal mask from before runner_init in the new process, with exceptions for the
 * mpirun or srun of a training. SIGPIPE is blocked, because mpirun or srun would end the job if
 * nobody reads its output; mpirun unblocks all signals for its ranks. mpirun ignores SIGUSR1 until
 * it sets the handler that forwards the signal. At its end mpirun ignores SIGUSR1 again, so that a
 * late SIGUSR1 does not kill it. The ranks do not ignore SIGUSR1: mpirun starts them while its
 * handler is set, and exec replaces a handler by the default. */
static void restore_signals(const Runner *r)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, &r->former_mask, NULL);
    stop_end();
    if (!r->trains || r->single) return;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    if (!is_srun(r)) signal(SIGUSR1, SIG_IGN);
    if (blocks_requests(r)) {
        sigaddset(&blocked, SIGTERM);
        sigaddset(&blocked, SIGINT);
        prctl(PR_SET_PDEATHSIG, SIGHUP);
    }
    sigprocmask(SIG_BLOCK, &blocked, NULL);
}

static _Noreturn void run_child(const Runner *r, char *const *words)
{
    become_child();
    restore_signals(r);
    setrlimit(RLIMIT_NOFILE, &r->former_files);
    if (r->log) {
        int log_fd = file_create(r->log, O_WRONLY | O_TRUNC);
        if (log_fd >= 0 && dup2(log_fd, STDOUT_FILENO) >= 0) dup2(log_fd, STDERR_FILENO);
        /* mpirun's own messages are not suppressed, because the log is shown if the ranks fail */
        if (is_open_mpi()) open_mpi_set_env(false);
        threads_export(r->watch.ranks, r->threads);
    }
    execvp(words[0], words);
    if (r->single)
        log_error("%s cannot be run: %s", words[0], strerror(errno));
    else
        log_error("the ranks are started by %s, which cannot be run: %s; put your MPI's mpirun in "
                  "PATH, or start the ranks yourself (srun weft ...)",
                  words[0], strerror(errno));
    _exit(ERR_USAGE);
}

Status runner_run(Runner *r, char *const *words, int ranks, bool trains, int *code)
{
    r->trains = trains;
    r->killed_by = 0;
    r->stopped_reported = false;
    mem_free(&r->problem);
    snprintf(r->starter, sizeof r->starter, "%s", words[0]);
    fflush(NULL);
    permit_connections(r, ranks);
    watch_init(&r->watch, ranks, r->signal_fd, r->may_be_remote);
    start_watch_init(&r->start_watch, r->hang_s,
                     trains || r->log ? "while ranks start" : "while ranks run");
    r->start_watch.computes = !trains && !r->log;
    r->process = fork();
    if (r->process == 0) run_child(r, words);
    if (r->process < 0) {
        Status status = fail(ERR_IO, "a process cannot be started: %s", strerror(errno));
        runner_fini_run(r);
        return status;
    }
    /* srun would suspend itself, but not its ranks */
    r->passes_suspend = !is_srun(r);
    *code = wait_for_end(r);
    return OK;
}

void runner_fini_run(Runner *r)
{
    start_watch_fini(&r->start_watch);
    watch_fini(&r->watch);
    mem_free(&r->problem);
}

bool runner_pause(Runner *r, double seconds)
{
    double end_s = clock_s() + seconds;
    bool end;
    for (;;) {
        double left_s = end_s - clock_s();
        take_signals(r, &end);
        if (r->first_signal || left_s <= 0) return r->first_signal != 0;
        struct pollfd signals = {.fd = r->signal_fd, .events = POLLIN};
        poll(&signals, 1, (int)(left_s * 1000) + 1);
    }
}

bool runner_any_began(Runner *r)
{
    /* receives the messages that ranks sent before they ended */
    (void)watch_lost_rank(&r->watch);
    return r->single || r->watch.connected > 0;
}

bool runner_stopped_early(Runner *r)
{
    /* receives the messages that ranks sent before they ended */
    (void)watch_lost_rank(&r->watch);
    return r->trains && !r->problem && (r->first_signal || r->watch.stop_reported) &&
           r->watch.connected > 0 && !start_any_stepped(&r->watch);
}

bool runner_may_have_failed_to_start(Runner *r, int code)
{
    /* receives the messages that ranks sent before they ended */
    (void)watch_lost_rank(&r->watch);
    bool killed = code >= 128 && code != 128 + SIGBUS;
    if (is_weft_status(code) || (killed && r->watch.connected > 0)) return false;
    for (int i = 0; i < r->watch.connected; ++i)
        if (r->watch.rank[i].stage > START_MPI) return false;
    return !r->first_signal && !r->single && !r->killed_by && !r->problem;
}

/* Returns the signal in an exit code of 128 + signal, as a shell and mpirun report it, or 0 if
 * there is none. Larger codes are mpirun's own. */
static int signal_of(int code)
{
    return code > 128 && code < 128 + NSIG ? code - 128 : 0;
}

char *runner_describe_loss(Runner *r, int code)
{
    const WatchedRank *rank = watch_lost_rank(&r->watch);
    char subject[64] = "a rank";
    int number = signal_of(code);
    if (r->problem) return mem_text(r->problem);
    if (!number && (r->single || is_weft_status(code)))
        return mem_format("the rank%s ended with exit code %d", r->single ? "" : "s", code);
    if (r->killed_by && !r->single)
        snprintf(subject, sizeof subject, "%s (process %d)", r->starter, (int)r->process);
    else if (rank && rank->number >= 0)
        snprintf(subject, sizeof subject, "rank %d (process %d)", rank->number, (int)rank->process);
    if (number)
        return mem_format("%s was killed by signal %d (%s)%s", subject, number, strsignal(number),
                          number == SIGKILL ? ": was memory short? See the system's log" : "");
    return mem_format("%s was lost (%s's exit code is %d)", subject, r->starter, code);
}

bool runner_rank_crashed(Runner *r, int code)
{
    int number = signal_of(code);
    if (r->problem || !runner_any_began(r) || (r->killed_by && !r->single)) return false;
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
           number == SIGABRT || number == SIGTRAP || number == SIGSYS;
}

bool is_weft_status(int code)
{
    return code == OK || (code >= ERR_USAGE && code <= ERR_CONFIG);
}
