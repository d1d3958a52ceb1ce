/* Runs ranks from their start to their end: handles the process that starts them (mpirun, srun, or
 * a single rank itself), the signals that arrive meanwhile, and the loss of ranks. */
#ifndef WEFT_CLI_ATTEND_H
#define WEFT_CLI_ATTEND_H

#include "starting.h"

#include <signal.h>

typedef struct Attend {
    /* signals: signalfd for the signals blocked since attend_init; before: signal mask before
     * that */
    int signals;
    sigset_t before;
    /* Signals so far. first: number of the first one, 0: none; first_s: its time; ends: number of
     * stop requests (SIGINT, SIGTERM); end_s: time of the last stop request; ending_s: time of the
     * second one. */
    int first, ends;
    double first_s, end_s, ending_s;
    /* a warning that the process is stopped has been printed */
    bool stopped_said;
    /* train.hang_s: seconds that a start may go on without progress; set by the caller */
    double hang_s;
    /* Set by the caller for a training whose output goes to a file. log: path, NULL: output is not
     * redirected, borrowed; threads: of each rank */
    const char *log;
    int threads;
    /* Set by the caller. alone: a single rank without mpirun; here: mpirun starts all ranks on this
     * host. */
    bool alone, local;
    /* set by the caller: ranks are on other hosts, or may be */
    bool elsewhere;
    /* suspends: a start is under way that SIGTSTP is passed on to; woken_s: time at which this
     * process last continued after SIGTSTP, 0: never */
    bool suspends;
    double woken_s;
    /* process: mpirun (srun, rank) of the current or last start; trains: the command is a training,
     * which saves at a first signal */
    pid_t process;
    bool trains;
    /* signal that ended the process; 0: none */
    int killed;
    /* reason for which ranks were killed during their start, NULL: they were not; owned */
    char *why;
    /* state of the watch over the start; the caller sets hosts and calls starting_name */
    Starting starting;
    /* name of the program that starts the ranks: words[0] of attend_run */
    char starter[16];
    Watch watch;
} Attend;

/* Initialises attend and blocks signals; from here on only attend_run and attend_rest receive
 * them. */
void attend_init(Attend *attend);
/* Starts the command `words`, which runs `ranks` ranks, and waits for its end. trains: a first
 * signal requests that the ranks save, a second SIGINT or SIGTERM ends them; otherwise the first
 * signal ends them. *code: the exit code as a shell reports it. Release with attend_fini_run after
 * the last query about these ranks. ERR_IO: no process could be made. */
Status attend_run(Attend *attend, char *const *words, int ranks, bool trains, int *code);
void attend_fini_run(Attend *attend);
/* Waits without running ranks; returns true if a signal has arrived. */
bool attend_rest(Attend *attend, double seconds);
/* Called after the ranks have ended: true if any rank on this host had begun. */
bool attend_begun(Attend *attend);
/* True if the exit code may mean that mpirun could not start the ranks or MPI could not connect
 * them. False once a known rank has passed MPI_Init, or anything was killed (except by SIGBUS,
 * which a full /dev/shm causes). */
bool attend_may_be_refused(Attend *attend, int code);
/* True if a stop of the start, or of a rank of this host, was requested before the first step. */
bool attend_stopped_early(Attend *attend);
/* Describes the loss: "rank 1 (process 17) was killed by signal 9 (Killed)", or, for an exit code
 * of weft's own, "the ranks ended with exit code 74": a rank with such a code has ended by itself,
 * although mpirun then kills the others. Owned by the caller. */
char *attend_loss(Attend *attend, int code);
/* True if the exit code stands for a signal that a program causes by itself, such as SIGSEGV. False
 * for mpirun's own codes, which may have the same number if no rank has begun. */
bool attend_crashed(Attend *attend, int code);
/* True if the exit code is one of weft's own. */
bool attend_status(int code);
/* Prepares a new process: it leaves the terminal's process group, so that Ctrl-C does not reach it,
 * is ended when its parent ends, and reads nothing from stdin. */
void become_child(void);

#endif
