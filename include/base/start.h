/* The start of a process that trains: from its beginning to its first step. Nothing is computed yet
 * that could be saved, so a wish to stop (stop_wanted) ends it at once, whatever it is doing; and
 * whoever started it is told how far it is, for nobody else looks at ranks before their first
 * step (parallel.h, Watchdog). Not collective; from the thread that trains. */
#ifndef WEFT_BASE_START_H
#define WEFT_BASE_START_H

/* How far a rank is. MPI: MPI_Init is called; NODE: it has returned, and the ranks of a host find
 * each other; SET_UP: everything else before the first step; DONE: the first step begins. */
typedef enum StartStage {
    START_PROGRAM,
    START_MPI,
    START_NODE,
    START_SET_UP,
    START_DONE
} StartStage;

typedef struct StartCalls {
    /* hears of each stage that is reached */
    void (*reach)(StartStage stage);
    /* ends the process: a wish to stop has come. On a thread of its own. Does not return. */
    void (*stop)(void);
} StartCalls;

/* After stop_begin. calls: borrowed until start_end. Without it the other two do nothing. */
void start_begin(const StartCalls *calls);
void start_reach(StartStage stage);
/* The first step begins, or there is none: from now on wishes to stop are heard between steps. */
void start_end(void);

#endif
