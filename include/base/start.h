/* The start of a process that trains: from its beginning to its first step. Nothing is computed yet
 * that could be saved, so a stop request (stop_wanted) ends it at once, whatever it is doing; and
 * whoever started it is told how far it is, for nobody else looks at ranks before their first
 * step (parallel.h, Watchdog). Not collective; from the thread that trains. */
#ifndef WEFT_BASE_START_H
#define WEFT_BASE_START_H

/* Stage of a rank's start. MPI: MPI_Init is called; NODE: it has returned, and the ranks of a host
 * find each other; SET_UP: everything else before the first step; DONE: the first step begins. */
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
    /* called on a thread of its own when a request to stop arrives; ends the process and does not
     * return */
    void (*stop)(void);
} StartCalls;

/* Called after stop_begin. calls: borrowed until start_end. start_reach and start_end do nothing
 * without it. */
void start_begin(const StartCalls *calls);
void start_reach(StartStage stage);
/* Called when the first step begins, or where there is none: requests to stop are noticed between
 * steps from then on. */
void start_end(void);

#endif
