/* The start of a training process, from its beginning to its first step. In this time nothing is
 * computed that could be saved, so a stop request (stop_wanted) ends the process at once. The
 * process reports its stages, because the watchdog observes ranks only from their first step on
 * (parallel.h, Watchdog). Call these functions from the training thread. Not collective. */
#ifndef WEFT_BASE_START_H
#define WEFT_BASE_START_H

#include <stdbool.h>

/* Stage of a rank's start. PROGRAM: before MPI_Init; MPI: in MPI_Init; NODE: after MPI_Init, while
 * the ranks of a host find each other; SET_UP: everything after that, before the first step; DONE:
 * the first step begins. */
typedef enum StartStage {
    START_PROGRAM,
    START_MPI,
    START_NODE,
    START_SET_UP,
    START_DONE
} StartStage;

/* Functions of the caller. */
typedef struct StartCalls {
    /* Called with each stage that is reached. The member must not be NULL. */
    void (*reach)(StartStage stage);
    /* Called on a separate thread when a stop request arrives. It ends the process and does not
     * return. If the member is set, stop_begin must be called before start_begin. The member is
     * NULL if stop_begin was not called; signals then end the process as they end any program. */
    void (*stop)(void);
    /* Called on the same separate thread, at most ten times a second. A call may last a second or
     * two; stop requests wait for its end. The member may be NULL. */
    void (*check)(void);
} StartCalls;

/* Begins to report stages. calls: borrowed until start_end. If start_begin is never called,
 * start_reach and start_end do nothing. */
void start_begin(const StartCalls *calls);
/* Reports a stage: calls StartCalls.reach. */
void start_reach(StartStage stage);
/* Call it when the first step begins, or when the run ends without a step. From then on, stop
 * requests are noticed between steps. A verb without steps need not call it. steps: true if the
 * first step begins; START_DONE is then reported. Only the first call has an effect. */
void start_end(bool steps);

#endif
