/* A signal must not end training: mpirun would kill its ranks a second later and exit 1. It is kept
 * from mpirun and goes to the ranks as SIGUSR1, which mpirun and srun pass on, so that they can
 * write their checkpoint. A second SIGINT or SIGTERM ends mpirun; where all ranks are here by
 * SIGHUP, for it is deaf to both there: where a whole job is told to end (systemd, PBS) each of its
 * processes gets one. The first signal ends ranks that do not last. Ctrl-Z (SIGTSTP) is kept from
 * mpirun, too, and passed on to it. */
#include "attend.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* One and the same wish often comes twice at once, to the process and to its group (timeout,
 * shells): that is one. */
static const double SAME_WISH_S = 1;
/* mpirun ends its other ranks within a second or two of the first death. */
static const double MPIRUN_ENDS_S = 10;
/* Seconds that ranks which have not made a step get to end by themselves after a first signal. */
static const double EARLY_S = 1;
/* Seconds for which SIGCONT is sent again: an mpirun that is late may find SIGTSTP and SIGCONT
 * together, and pass them on in either order. */
static const double WAKES_S = 5;

void attend_init(Attend *a)
{
    sigset_t set;
    *a = (Attend){0};
    stop_signals(&set);
    sigaddset(&set, SIGCHLD);
    struct sigaction now;
    if (sigaction(SIGTSTP, NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, &a->before);
    a->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Ctrl-Z: the ranks sleep, on other hosts, too, then this process, until it is told to go on.
 * mpirun itself stays awake. */
static void suspend(Attend *a)
{
    sigset_t wish;
    sigemptyset(&wish);
    sigaddset(&wish, SIGTSTP);
    if (a->suspends) kill(a->process, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &wish, NULL);
    sigprocmask(SIG_BLOCK, &wish, NULL);
    a->woken_s = clock_s();
}

static bool is_waking(const Attend *a)
{
    return a->suspends && a->woken_s > 0 && clock_s() - a->woken_s < WAKES_S;
}

/* True where one has come that is a wish to stop. */
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
        if (number != SIGINT && number != SIGTERM) continue;
        if (a->ends > 0 && now - a->end_s <= SAME_WISH_S) continue;
        *end = ++a->ends > 1;
        a->end_s = now;
    }
    return any;
}

/* mpirun of ranks that last, all of them on this host */
static bool is_deaf(const Attend *a)
{
    return a->lasts && a->here && !a->alone;
}

static bool is_srun(const Attend *a)
{
    return strcmp(a->starter, "srun") == 0;
}

static void end_ranks(const Attend *a)
{
    kill(a->process, a->alone ? SIGKILL : is_deaf(a) ? SIGHUP : SIGTERM);
}

static void pass_on(const Attend *a, bool end)
{
    if (end)
        end_ranks(a);
    else
        kill(a->process, a->lasts ? SIGUSR1 : SIGTERM);
}

/* Ranks of a training that have not all begun their first step: one that is stopped, or hangs, is
 * found, and a stop request needs no save. */
static void attend_start(Attend *a)
{
    if (!a->why) a->why = starting_look(&a->starting, &a->watch, a->process);
    bool asked = a->first && clock_s() - a->first_s > EARLY_S;
    if (asked && a->watch.met > 0 && !starting_has_stepped(&a->watch)) end_ranks(a);
}

/* A wish to stop is passed on again and again: mpirun and ranks that are only starting may miss it.
 * An mpirun that has lost a rank and does not end is ended. */
static int wait_for(Attend *a)
{
    enum { AGAIN_MS = 1000, START_MS = 500 };
    double lost_s = 0;
    int state;
    while (waitpid(a->process, &state, WNOHANG) != a->process) {
        bool stopping = a->lasts && a->first, lost = a->watch.lost >= 0 || a->why, end;
        bool again = stopping || lost || is_waking(a);
        bool starts = a->lasts && !starting_is_over(&a->watch);
        bool signalled = watch_wait(&a->watch, starts ? START_MS : again ? AGAIN_MS : -1);
        if (take_signals(a, &end))
            pass_on(a, end);
        else if (!signalled && stopping)
            pass_on(a, false);
        if (starts) attend_start(a);
        if (is_waking(a)) kill(a->process, SIGCONT);
        double now = clock_s();
        if (!lost) lost_s = 0;
        if (lost && lost_s <= 0) lost_s = now;
        if (lost && now - lost_s > 2 * MPIRUN_ENDS_S)
            kill(a->process, SIGKILL);
        else if (lost && now - lost_s > MPIRUN_ENDS_S)
            end_ranks(a);
    }
    Status status;
    /* mpirun itself may fail once its ranks are done */
    if (watch_all_left(&a->watch, &status)) return (int)status;
    a->killed = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
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

/* Signals as this process found them. But what is no reason to end, as output that nobody reads,
 * mpirun must not hear of: it has handlers that end the job, and unblocks all signals for its
 * ranks. At its end it puts back what it found for the signal that it passes on, which may come
 * once more then, and would kill it; while ranks are started it has a handler, so that they do not
 * inherit this. */
static void restore_signals(const Attend *a)
{
    sigset_t unheard;
    sigprocmask(SIG_SETMASK, &a->before, NULL);
    stop_end();
    if (!a->lasts || a->alone) return;
    sigemptyset(&unheard);
    sigaddset(&unheard, SIGPIPE);
    if (!is_srun(a)) signal(SIGUSR1, SIG_IGN);
    if (is_deaf(a)) {
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
    execvp(words[0], words);
    if (a->alone)
        log_error("%s cannot be run: %s", words[0], strerror(errno));
    else
        log_error("the ranks are started by %s, which cannot be run: %s; put your MPI's mpirun in "
                  "PATH, or start the ranks yourself (srun weft ...)",
                  words[0], strerror(errno));
    _exit(ERR_USAGE);
}

Status attend_run(Attend *a, char *const *words, int ranks, bool lasts, int *code)
{
    a->lasts = lasts;
    a->killed = 0;
    mem_free(&a->why);
    snprintf(a->starter, sizeof a->starter, "%s", words[0]);
    fflush(NULL);
    watch_init(&a->watch, ranks, a->signals);
    starting_init(&a->starting, a->hang_s);
    a->process = fork();
    if (a->process == 0) run_child(a, words);
    if (a->process < 0) {
        Status status = fail(ERR_IO, "a process cannot be started: %s", strerror(errno));
        attend_fini_run(a);
        return status;
    }
    /* srun would sleep itself, and its ranks go on */
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
        struct pollfd look = {.fd = a->signals, .events = POLLIN};
        poll(&look, 1, (int)(left_s * 1000) + 1);
    }
}

bool attend_begun(Attend *a)
{
    (void)watch_lost(&a->watch);
    return a->alone || a->watch.met > 0;
}

bool attend_stopped_early(Attend *a)
{
    (void)watch_lost(&a->watch);
    return a->lasts && !a->why && (a->first || a->watch.stops) && a->watch.met > 0 &&
           !starting_has_stepped(&a->watch);
}

bool attend_may_be_refused(Attend *a, int code)
{
    (void)watch_lost(&a->watch);
    bool killed = code >= 128 && code != 128 + SIGBUS;
    if (attend_status(code) || (killed && a->watch.met > 0)) return false;
    for (int i = 0; i < a->watch.met; ++i)
        if (a->watch.rank[i].stage > START_MPI) return false;
    return !a->first && !a->alone && !a->killed && !a->why;
}

/* 128 and a signal, as a shell gives it, and mpirun; numbers beyond are its own. 0: no signal. */
static int signal_of(int code)
{
    return code > 128 && code < 128 + NSIG ? code - 128 : 0;
}

char *attend_loss(Attend *a, int code)
{
    const WatchedRank *rank = watch_lost(&a->watch);
    char who[64] = "a rank";
    int number = signal_of(code);
    if (a->why) return mem_text(a->why);
    if (!number && (a->alone || attend_status(code)))
        return mem_format("the rank%s ended with exit code %d", a->alone ? "" : "s", code);
    if (a->killed && !a->alone)
        snprintf(who, sizeof who, "%s (process %d)", a->starter, (int)a->process);
    else if (rank && rank->number >= 0)
        snprintf(who, sizeof who, "rank %d (process %d)", rank->number, (int)rank->process);
    if (number)
        return mem_format("%s was killed by signal %d (%s)%s", who, number, strsignal(number),
                          number == SIGKILL ? ": was memory short? The system's log says" : "");
    return mem_format("%s was lost (%s's exit code is %d)", who, a->starter, code);
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
