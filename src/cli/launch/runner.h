/* Runs ranks from their start to their end: handles the process that starts them (mpirun, srun, or
 * a single rank itself), the signals that arrive meanwhile, and the loss of ranks. */
#ifndef WEFT_CLI_RUNNER_H
#define WEFT_CLI_RUNNER_H

#include "start_watch.h"

#include <signal.h>

typedef struct Runner {
    /* signalfd for the signals that runner_init has blocked */
    int signal_fd;
    /* signal mask before runner_init */
    sigset_t former_mask;
    /* number of the first signal, 0: none; time at which it arrived */
    int first_signal;
    double first_signal_s;
    /* number of stop requests: SIGINT, SIGTERM, SIGQUIT, of which those within a second count as
     * one; times of the last and of the second request */
    int stop_requests;
    double last_request_s, second_request_s;
    /* true: a warning that the process is stopped has been printed */
    bool stopped_reported;
    /* train.hang_s: seconds that a start may last without progress; set by the caller */
    double hang_s;
    /* Set by the caller for a training whose output goes to a file. log: its path, borrowed; NULL:
     * output is not redirected. threads: of each rank */
    const char *log;
    int threads;
    /* The next three are set by the caller. */
    /* true: a single rank is started without mpirun */
    bool single;
    /* true: mpirun runs on this host and can be ended with SIGHUP */
    bool local;
    /* true: ranks may be on other hosts */
    bool may_be_remote;
    /* true: ranks are running, and SIGTSTP is passed on to them (not by srun) */
    bool passes_suspend;
    /* time at which this process last continued after SIGTSTP; 0: never */
    double continued_s;
    /* mpirun, srun or the single rank of the current or last start */
    pid_t process;
    /* true: the command is a training, which saves a checkpoint at a first signal */
    bool trains;
    /* signal that killed the process; 0: none */
    int killed_by;
    /* why this process killed ranks that were stopped or hung; NULL: it did not kill any; owned */
    char *problem;
    /* observes the start of ranks; the caller sets hosts and calls start_watch_set_id */
    StartWatch start_watch;
    /* name of the program that starts the ranks: words[0] of runner_run */
    char starter[16];
    Watch watch;
} Runner;

/* Initialises the runner and blocks signals. From then on only runner_run and runner_pause receive
 * signals. */
void runner_init(Runner *runner);
/* Starts the command `words`, which runs `ranks` ranks, and waits for its end. trains: a first
 * signal asks the ranks to save a checkpoint, or ends them if none has begun its first step, and a
 * second SIGINT, SIGTERM or SIGQUIT ends them; without trains, the first signal ends them. *code:
 * the worst status of the ranks if all have announced their end, else the exit code of the process
 * as a shell reports it (137 if it reports success although this process has killed ranks). Release
 * with runner_fini_run after the last query about these ranks. ERR_IO: no process could be made. */
Status runner_run(Runner *runner, char *const *words, int ranks, bool trains, int *code);
void runner_fini_run(Runner *runner);
/* Waits for these seconds, without running ranks. Returns true at once if a signal arrives or has
 * arrived before; false after the whole time. */
bool runner_pause(Runner *runner, double seconds);
/* Called after the ranks have ended: true if any rank had connected to this process, or if a single
 * rank was started. */
bool runner_any_began(Runner *runner);
/* True if the exit code may mean that mpirun could not start the ranks or that MPI could not
 * connect them. False if the code is one of weft's, if a known rank has passed MPI_Init, if this
 * process received a signal or has killed ranks, or if a rank was known and a process was killed by
 * a signal other than SIGBUS, which a full /dev/shm causes. */
bool runner_may_have_failed_to_start(Runner *runner, int code);
/* True if a stop of a training was requested before its first step, by a signal to this process or
 * to a rank that has reported the signal. */
bool runner_stopped_early(Runner *runner);
/* Describes the loss: "rank 1 (process 17) was killed by signal 9 (Killed)"; for one of weft's own
 * exit codes "the ranks ended with exit code 74", because a rank with such a code has ended by
 * itself, even if mpirun has then killed the others. Owned by the caller. */
char *runner_describe_loss(Runner *runner, int code);
/* True if the exit code is that of a signal that a program causes by itself, such as SIGSEGV. False
 * for mpirun's own codes, which may have the same number if no rank has begun. */
bool runner_rank_crashed(Runner *runner, int code);
/* True if the exit code is one of weft's own. */
bool is_weft_status(int code);
/* Called in a new process. The process leaves the terminal's process group, so that Ctrl-C does not
 * reach it; it is ended when its parent ends; and its stdin is empty. */
void become_child(void);

#endif
