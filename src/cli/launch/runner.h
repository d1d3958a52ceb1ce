/* Runs ranks from their start to their end. Handles the process that this process starts (mpirun,
 * srun, or a single rank without either), the signals that arrive meanwhile, and the loss of
 * ranks. */
#ifndef WEFT_CLI_RUNNER_H
#define WEFT_CLI_RUNNER_H

#include "start_watch.h"

#include <signal.h>
#include <sys/resource.h>

typedef struct Runner {
    /* ---- signals to this process; times are values of clock_s ---- */
    /* signalfd for the signals that runner_init has blocked */
    int signal_fd;
    /* signal mask before runner_init */
    sigset_t former_mask;
    /* limit of open files before runner_init */
    struct rlimit former_files;
    /* number of the first signal that arrived; 0: none */
    int first_signal;
    /* time at which the first signal arrived */
    double first_signal_s;
    /* number of stop requests (SIGINT, SIGTERM, SIGQUIT); requests within a second of the last
     * counted one are not counted */
    int stop_requests;
    /* time of the last counted stop request */
    double last_request_s;
    /* time of the second counted stop request */
    double second_request_s;
    /* true: the warning that `process` is stopped by a signal has been printed */
    bool stopped_reported;
    /* ---- set by the caller ---- */
    /* train.hang_s: seconds that a start may last without progress */
    double hang_s;
    /* path of the file for the output of the process, borrowed; NULL: output is not redirected */
    const char *log;
    /* number of threads of each rank; only used if `log` is set */
    int threads;
    /* true: a single rank is started without mpirun or srun */
    bool single;
    /* true: mpirun runs on this host and can be ended with SIGHUP */
    bool local;
    /* true: ranks may be on other hosts */
    bool may_be_remote;
    /* ---- state of the current or last start ---- */
    /* true: ranks are running, and their starter passes SIGTSTP on to them, which srun does not */
    bool passes_suspend;
    /* time at which this process last continued after SIGTSTP; 0: never */
    double continued_s;
    /* id of the process that was started: mpirun, srun or the single rank */
    pid_t process;
    /* true: the command is a training, which saves a checkpoint at a first signal */
    bool trains;
    /* signal that killed `process`; 0: none */
    int killed_by;
    /* why this process killed ranks that were stopped or hung; NULL: it did not kill any; owned */
    char *problem;
    /* observes the start of ranks; the caller sets `hosts` in it and calls start_watch_set_id */
    StartWatch start_watch;
    /* first word of the command, such as "mpirun" */
    char starter[16];
    /* connections of the ranks to this process */
    Watch watch;
} Runner;

/* Initialises the runner and blocks signals. Afterwards only runner_run and runner_pause receive
 * signals. */
void runner_init(Runner *runner);
/* Starts the command `words`, which runs `ranks` ranks, and waits for its end. trains: the command
 * is a training. A first signal then asks the ranks to save a checkpoint, or ends them if none has
 * begun its first step; a second SIGINT, SIGTERM or SIGQUIT ends them. For other commands the first
 * signal ends the ranks. *code: if all ranks have announced their end, the worst status among them.
 * Otherwise it is the exit code of the process as a shell reports it, or 137 if the process reports
 * success although this process has killed ranks. Release with runner_fini_run after the last query
 * about the ranks. ERR_IO: no process could be made. */
Status runner_run(Runner *runner, char *const *words, int ranks, bool trains, int *code);
void runner_fini_run(Runner *runner);
/* Waits for `seconds`; called while no ranks run. Returns true as soon as a signal arrives, and at
 * once if one has arrived before. Returns false if the time has passed without a signal. */
bool runner_pause(Runner *runner, double seconds);

/* The next five functions are called after the ranks have ended. code: result of runner_run. */

/* Returns whether any rank had connected to this process, or a single rank was started. */
bool runner_any_began(Runner *runner);
/* Returns whether the exit code may mean that mpirun could not start the ranks, or that MPI could
 * not connect them. The result is false in the following cases. The code is one of weft's own. A
 * rank is known to have passed MPI_Init. A single rank was started without mpirun. mpirun or srun
 * was killed. This process received a signal, or has killed ranks. A rank had connected, and the
 * code is that of a signal other than SIGBUS, which a full /dev/shm causes. */
bool runner_may_have_failed_to_start(Runner *runner, int code);
/* Returns whether a stop of a training was requested before its first step, by a signal to this
 * process or to a rank that has reported the signal. */
bool runner_stopped_early(Runner *runner);
/* Describes the loss of ranks, for example "rank 1 (process 17) was killed by signal 9 (Killed)".
 * For one of weft's own exit codes the text is "the ranks ended with exit code 74". A rank with
 * such a code has ended by itself; mpirun may have killed the other ranks afterwards. The caller
 * owns the text. */
char *runner_describe_loss(Runner *runner, int code);
/* Returns whether the exit code is that of a signal that a program causes by itself, such as
 * SIGSEGV. If no rank has begun, the result is false, because the number may then be a code of
 * mpirun's own. */
bool runner_rank_crashed(Runner *runner, int code);
/* Returns whether the exit code is one of weft's own (Status). */
bool is_weft_status(int code);
/* Called in a new process before it executes a program. The process leaves the terminal's process
 * group, so that Ctrl-C does not reach it. Its stdin becomes empty, and it receives SIGTERM when
 * its parent ends. */
void become_child(void);

#endif
