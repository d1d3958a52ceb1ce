/* Passes signals on to ranks. A signal must not end a training at once: mpirun would kill its ranks
 * a second later and exit with 1. So signals are kept from mpirun and go to the ranks as SIGUSR1,
 * which mpirun and srun forward, and the ranks write a checkpoint. A second SIGINT or SIGTERM ends
 * mpirun: with SIGTERM, or with SIGHUP if all ranks are on this host, for such an mpirun blocks
 * SIGINT and SIGTERM: when systemd or PBS ends a whole job, each of its processes gets one.
 * Commands that do not last are ended by the first signal. Ctrl-Z (SIGTSTP) is also kept from
 * mpirun and passed on explicitly. */
#include "attend.h"
#include "../private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* One stop request often arrives twice at once: for the process and for its group (timeout,
 * shells). */
static const double SAME_REQUEST_S = 1;
/* After the first death mpirun needs a second or two to end its other ranks. */
static const double MPIRUN_ENDS_S = 10;
/* Seconds after a first signal in which ranks that have not made a step may end by themselves. */
static const double EARLY_S = 1;
/* Seconds for which SIGCONT is sent repeatedly: a delayed mpirun may find SIGTSTP and SIGCONT
 * together and pass them on in either order. */
static const double WAKES_S = 5;

void attend_init(Attend *a)
{
    sigset_t set;
    *a = (Attend){0};
    stop_signals(&set);
    sigaddset(&set, SIGCHLD);
    static const int others[] = {SIGTSTP, SIGQUIT};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        struct sigaction now;
        if (sigaction(others[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, others[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &a->before);
    a->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Handles Ctrl-Z: suspends the ranks, also those on other hosts, and then this process until it is
 * continued. mpirun itself keeps running. */
static void suspend(Attend *a)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    if (a->suspends) kill(a->process, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    a->woken_s = clock_s();
}

static bool is_waking(const Attend *a)
{
    return a->suspends && a->woken_s > 0 && clock_s() - a->woken_s < WAKES_S;
}

/* Reads all pending signals. Returns true if there was one other than SIGCHLD or SIGTSTP; *end: a
 * repeated stop request has arrived. */
static bool take_signals(Attend *a, bool *end)
{
    struct signalfd_siginfo info;
    bool any = false;
    *end = false;
    while (read(a->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        double now = clock_s();
        if (number == SIGTSTP) suspend(a);
        if (number == SIGCHLD || number == SIGTSTP) continue;
        any = true;
        if (!a->first) a->first_s = now;
        if (!a->first) a->first = number;
        if (number != SIGINT && number != SIGTERM && number != SIGQUIT) continue;
        if (a->ends > 0 && now - a->end_s <= SAME_REQUEST_S) continue;
        *end = ++a->ends > 1;
        a->end_s = now;
        if (a->ends == 2) a->ending_s = now;
    }
    return any;
}

/* True for an mpirun that blocks SIGINT and SIGTERM: ranks of a training, all on this host. */
static bool blocks_requests(const Attend *a)
{
    return a->trains && a->local && !a->alone;
}

static bool is_srun(const Attend *a)
{
    return strcmp(a->starter, "srun") == 0;
}

/* Continues the process if it is stopped (SIGSTOP): until then it receives no other signal. */
static void wake_stopped(Attend *a)
{
    if (process_state(a->process) != 'T') return;
    if (!a->stopped_said)
        log_warn("%s (process %d) is stopped by a signal: it is continued, so that it passes "
                 "signals on",
                 a->alone ? "the rank" : a->starter, (int)a->process);
    a->stopped_said = true;
    kill(a->process, SIGCONT);
}

static void send_signal(Attend *a, int number)
{
    kill(a->process, number);
    wake_stopped(a);
}

static void end_ranks(Attend *a)
{
    send_signal(a, a->alone ? SIGKILL : blocks_requests(a) ? SIGHUP : SIGTERM);
}

/* Kills the process, and the ranks on this host, which may be stopped. */
static void kill_all(const Attend *a)
{
    kill(a->process, SIGKILL);
    for (int i = 0; i < a->watch.connected; ++i)
        if (a->watch.rank[i].file >= 0 && !*a->watch.rank[i].host)
            kill(a->watch.rank[i].process, SIGKILL);
}

static void pass_on(Attend *a, bool end)
{
    /* a rank without mpirun would take SIGTERM as a request to save */
    if (end || (a->alone && !a->trains))
        end_ranks(a);
    else
        send_signal(a, a->trains ? SIGUSR1 : SIGTERM);
}

/* Watches ranks that have not all begun the first step of a training, for other commands until the
 * end: finds ranks that are stopped or hang, and ends those of a training after a stop request,
 * because there is nothing to save. */
static void attend_start(Attend *a)
{
    if (!a->why) {
        a->why = starting_check(&a->starting, &a->watch, a->process);
        /* ranks on other hosts, and unknown ones, can only be killed by mpirun */
        if (a->why && (a->elsewhere || a->starting.count == 0)) end_ranks(a);
    }
    bool requested = a->first && clock_s() - a->first_s > EARLY_S;
    if (requested && a->trains && a->watch.connected > 0 && !starting_has_stepped(&a->watch))
        end_ranks(a);
}

/* Ends an mpirun that does not end after a second stop request or the loss of a rank. */
static void end_late(Attend *a, double lost_s)
{
    double now = clock_s(), lost_for_s = lost_s > 0 ? now - lost_s : 0;
    if (lost_for_s > 2 * MPIRUN_ENDS_S || (a->ends > 1 && now - a->ending_s > MPIRUN_ENDS_S))
        kill_all(a);
    else if (lost_for_s > MPIRUN_ENDS_S)
        end_ranks(a);
}

/* Waits for the end of the process and returns the exit code. A stop request is sent repeatedly,
 * because mpirun and ranks that are still starting may miss it. */
static int wait_for(Attend *a)
{
    enum { AGAIN_MS = 1000, START_MS = 500 };
    double lost_s = 0;
    int state;
    while (waitpid(a->process, &state, WNOHANG) != a->process) {
        bool lost = a->watch.lost >= 0 || a->why, end;
        bool again = a->first || lost || is_waking(a);
        bool starts = !starting_is_over(&a->watch);
        bool signalled = watch_wait(&a->watch, starts ? START_MS : again ? AGAIN_MS : -1);
        if (take_signals(a, &end))
            pass_on(a, end);
        else if (!signalled && a->first && a->trains && a->ends <= 1)
            pass_on(a, false);
        else if (!signalled && a->first)
            /* a repeated signal would make mpirun leave ranks behind */
            wake_stopped(a);
        if (starts) attend_start(a);
        if (is_waking(a)) kill(a->process, SIGCONT);
        lost_s = !lost ? 0 : lost_s > 0 ? lost_s : clock_s();
        end_late(a, lost_s);
    }
    Status status;
    /* mpirun itself may fail after its ranks have ended well */
    if (watch_all_left(&a->watch, &status)) return (int)status;
    a->killed = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    /* the starter of ranks that were killed may end as if all were well */
    if (a->why && WIFEXITED(state) && WEXITSTATUS(state) == OK) return 128 + SIGKILL;
    return a->killed ? 128 + a->killed : WEXITSTATUS(state);
}

void become_child(void)
{
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing > 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDIN_FILENO) close(nothing);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Restores the signal mask that this process found, with exceptions for mpirun of a training.
 * mpirun has handlers that end the job; signals that are no reason to end (SIGPIPE: nobody reads
 * the output) are blocked for it, and it unblocks all signals for its ranks. At its end mpirun
 * restores the handler it found for the forwarded SIGUSR1; one that arrives then would kill it, so
 * SIGUSR1 is ignored here. While mpirun starts ranks its own handler is in place, so they do not
 * inherit this. */
static void restore_signals(const Attend *a)
{
    sigset_t unheard;
    sigprocmask(SIG_SETMASK, &a->before, NULL);
    stop_end();
    if (!a->trains || a->alone) return;
    sigemptyset(&unheard);
    sigaddset(&unheard, SIGPIPE);
    if (!is_srun(a)) signal(SIGUSR1, SIG_IGN);
    if (blocks_requests(a)) {
        sigaddset(&unheard, SIGTERM);
        sigaddset(&unheard, SIGINT);
        prctl(PR_SET_PDEATHSIG, SIGHUP);
    }
    sigprocmask(SIG_BLOCK, &unheard, NULL);
}

static _Noreturn void run_child(const Attend *a, char *const *words)
{
    become_child();
    restore_signals(a);
    if (a->log) {
        int log = file_create(a->log, O_WRONLY | O_TRUNC);
        if (log >= 0 && dup2(log, STDOUT_FILENO) >= 0) dup2(log, STDERR_FILENO);
        /* the log is shown if the ranks fail, so mpirun's own messages are kept */
        if (is_open_mpi()) open_mpi_settings(false);
        threads_export(a->watch.ranks, a->threads);
    }
    execvp(words[0], words);
    if (a->alone)
        log_error("%s cannot be run: %s", words[0], strerror(errno));
    else
        log_error("the ranks are started by %s, which cannot be run: %s; put your MPI's mpirun in "
                  "PATH, or start the ranks yourself (srun weft ...)",
                  words[0], strerror(errno));
    _exit(ERR_USAGE);
}

Status attend_run(Attend *a, char *const *words, int ranks, bool trains, int *code)
{
    a->trains = trains;
    a->killed = 0;
    a->stopped_said = false;
    mem_free(&a->why);
    snprintf(a->starter, sizeof a->starter, "%s", words[0]);
    fflush(NULL);
    watch_init(&a->watch, ranks, a->signals, a->elsewhere);
    starting_init(&a->starting, a->hang_s,
                  trains || a->log ? "while ranks start" : "while ranks run");
    a->starting.computes = !trains && !a->log;
    a->process = fork();
    if (a->process == 0) run_child(a, words);
    if (a->process < 0) {
        Status status = fail(ERR_IO, "a process cannot be started: %s", strerror(errno));
        attend_fini_run(a);
        return status;
    }
    /* srun would suspend itself while its ranks continue */
    a->suspends = !is_srun(a);
    *code = wait_for(a);
    a->suspends = false;
    return OK;
}

void attend_fini_run(Attend *a)
{
    starting_fini(&a->starting);
    watch_fini(&a->watch);
    mem_free(&a->why);
}

bool attend_rest(Attend *a, double seconds)
{
    double end_s = clock_s() + seconds;
    bool end;
    for (;;) {
        double left_s = end_s - clock_s();
        take_signals(a, &end);
        if (a->first || left_s <= 0) return a->first != 0;
        struct pollfd signals = {.fd = a->signals, .events = POLLIN};
        poll(&signals, 1, (int)(left_s * 1000) + 1);
    }
}

bool attend_begun(Attend *a)
{
    (void)watch_lost(&a->watch);
    return a->alone || a->watch.connected > 0;
}

bool attend_stopped_early(Attend *a)
{
    (void)watch_lost(&a->watch);
    return a->trains && !a->why && (a->first || a->watch.stops) && a->watch.connected > 0 &&
           !starting_has_stepped(&a->watch);
}

bool attend_may_be_refused(Attend *a, int code)
{
    (void)watch_lost(&a->watch);
    bool killed = code >= 128 && code != 128 + SIGBUS;
    if (attend_status(code) || (killed && a->watch.connected > 0)) return false;
    for (int i = 0; i < a->watch.connected; ++i)
        if (a->watch.rank[i].stage > START_MPI) return false;
    return !a->first && !a->alone && !a->killed && !a->why;
}

/* Returns the signal in an exit code of 128 + signal, as a shell and mpirun report it; 0: none.
 * Greater codes are mpirun's own. */
static int signal_of(int code)
{
    return code > 128 && code < 128 + NSIG ? code - 128 : 0;
}

char *attend_loss(Attend *a, int code)
{
    const WatchedRank *rank = watch_lost(&a->watch);
    char subject[64] = "a rank";
    int number = signal_of(code);
    if (a->why) return mem_text(a->why);
    if (!number && (a->alone || attend_status(code)))
        return mem_format("the rank%s ended with exit code %d", a->alone ? "" : "s", code);
    if (a->killed && !a->alone)
        snprintf(subject, sizeof subject, "%s (process %d)", a->starter, (int)a->process);
    else if (rank && rank->number >= 0)
        snprintf(subject, sizeof subject, "rank %d (process %d)", rank->number, (int)rank->process);
    if (number)
        return mem_format("%s was killed by signal %d (%s)%s", subject, number, strsignal(number),
                          number == SIGKILL ? ": was memory short? The system's log says" : "");
    return mem_format("%s was lost (%s's exit code is %d)", subject, a->starter, code);
}

bool attend_crashed(Attend *a, int code)
{
    int number = signal_of(code);
    if (a->why || !attend_begun(a) || (a->killed && !a->alone)) return false;
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
           number == SIGABRT || number == SIGTRAP || number == SIGSYS;
}

bool attend_status(int code)
{
    return code == OK || (code >= ERR_USAGE && code <= ERR_CONFIG);
}
