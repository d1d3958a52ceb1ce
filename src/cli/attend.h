/* Ranks from their start to their end: the process that starts them (mpirun, srun, or a rank
 * alone), the signals that this one gets meanwhile, and who died. */
#ifndef WEFT_CLI_ATTEND_H
#define WEFT_CLI_ATTEND_H

#include "starting.h"

#include <signal.h>

typedef struct Attend {
    /* the file of signals, blocked since attend_init, and those blocked before */
    int signals;
    sigset_t before;
    /* Signals so far. first: the first one, 0: none; first_s: time of it; ends: number of requests
     * to end (SIGINT, SIGTERM); end_s: time of the last of these; ending_s: of the second. */
    int first, ends;
    double first_s, end_s, ending_s;
    /* has it been said that the process is stopped? */
    bool stopped_said;
    /* train.hang_s: seconds that a start may go on without progress; set by the caller */
    double hang_s;
    /* Set by the caller. alone: one rank without mpirun; here: mpirun starts all ranks on this
     * host. */
    bool alone, here;
    /* Is a start under way that SIGTSTP is passed on to? When this process last went on after one;
     * 0: never. */
    bool suspends;
    double woken_s;
    /* process: mpirun of the current or last start; lasts: it is a training, which a first signal
     * asks to save. */
    pid_t process;
    bool lasts;
    /* signal that ended the process; 0: none */
    int killed;
    /* owned: reason for which ranks were ended during their start; NULL: none were */
    char *why;
    Starting starting;
    /* its name */
    char starter[16];
    Watch watch;
} Attend;

/* From now on signals wait for attend_run and attend_rest. */
void attend_init(Attend *attend);
/* Starts the words as so many ranks and waits for their end. lasts: a first signal asks them to
 * save; else, and at a second one to end, they are ended. *code: the exit code as a shell gives it.
 * Release with attend_fini_run once nothing is asked about its ranks any more. ERR_IO: no process
 * can be made. */
Status attend_run(Attend *attend, char *const *words, int ranks, bool lasts, int *code);
void attend_fini_run(Attend *attend);
/* Waits without ranks; true: a signal has come. */
bool attend_rest(Attend *attend, double seconds);
/* Once they have ended: has any rank on this host begun? */
bool attend_begun(Attend *attend);
/* May the exit code mean that mpirun could not start the ranks, or MPI not connect them? False once
 * a known rank has come through MPI_Init, or something was killed (but by SIGBUS, which a full
 * /dev/shm causes). */
bool attend_may_be_refused(Attend *attend, int code);
/* Was the start, or a rank of it, asked to stop before the first step, as far as ranks of this host
 * tell? */
bool attend_stopped_early(Attend *attend);
/* "rank 1 (process 17) was killed by signal 9 (Killed)"; of weft's own exit codes, with which ranks
 * end by themselves while others are killed for it: "the ranks ended with exit code 74". Owner: the
 * caller. */
char *attend_loss(Attend *attend, int code);
/* Does the exit code stand for a signal that a program causes itself, such as SIGSEGV? False for
 * mpirun's own codes, which may be such a number where no rank has begun. */
bool attend_crashed(Attend *attend, int code);
/* Is it an exit code of weft's? */
bool attend_status(int code);
/* In a new process: out of reach of the terminal's Ctrl-C, and not outliving its parent. Nobody
 * reads stdin. */
void become_child(void);

#endif
