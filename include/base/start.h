/* Start-up of a training process, from its beginning to its first step. In this time nothing has
 * been computed that could be saved, so a stop request (stop_wanted) ends the process at once. The
 * process reports its stages, because the watchdog observes ranks only from their first step on
 * (parallel.h, Watchdog). Not collective; called from the training thread. */
#ifndef WEFT_BASE_START_H
#define WEFT_BASE_START_H

#include <stdbool.h>

/* Stage of a rank's start. PROGRAM: before MPI_Init; MPI: in MPI_Init; NODE: after MPI_Init, while
 * the ranks of a host find each other; SET_UP: everything else before the first step; DONE: the
 * first step begins. */
typedef enum StartStage {
    START_PROGRAM,
    START_MPI,
    START_NODE,
    START_SET_UP,
    START_DONE
} StartStage;

typedef struct StartCalls {
    /* called with each stage that is reached */
    void (*reach)(StartStage stage);
    /* called on a separate thread when a stop request arrives; ends the process and does not
     * return. If it is set, stop_begin must be called before start_begin. NULL: stop_begin was not
     * called, and signals end the process as they end any program */
    void (*stop)(void);
    /* called on the thread of `stop`, at most ten times a second; stop requests wait for a call,
     * which may last a second or two. NULL: not called */
    void (*beat)(void);
} StartCalls;

/* Begins to report stages. calls: borrowed until start_end; its `reach` is not NULL. Without this
 * call start_reach and start_end do nothing. */
void start_begin(const StartCalls *calls);
/* Reports a stage: calls `reach`. */
void start_reach(StartStage stage);
/* Called when the first step begins, or when the run ends without a step. From then on, stop
 * requests are noticed between steps. A verb without steps need not call it. steps: true if the
 * first step begins; START_DONE is then reported. Only the first call has an effect. */
void start_end(bool steps);

#endif
