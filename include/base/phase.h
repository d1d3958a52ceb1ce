/* Time spent in each phase, and a trace of it. Not collective. */
#ifndef WEFT_BASE_PHASE_H
#define WEFT_BASE_PHASE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* Phases of a run. A phase lasts until the next phase_enter. There is one set per process, used by
 * one thread. */
#define PHASES(W)                                                                                  \
    W(PHASE_OTHER, "other")                                                                        \
    W(PHASE_DATA, "data")                                                                          \
    W(PHASE_FORWARD, "forward")                                                                    \
    W(PHASE_BACKWARD, "backward")                                                                  \
    W(PHASE_SUM, "sum")                                                                            \
    W(PHASE_MESSAGES, "messages")                                                                  \
    W(PHASE_EXCHANGE, "exchange")                                                                  \
    W(PHASE_UPDATE, "update")                                                                      \
    W(PHASE_EVAL, "eval")                                                                          \
    W(PHASE_CHECKPOINT, "checkpoint")
typedef enum Phase { PHASES(LIST_CONSTANT) PHASE_COUNT } Phase;
extern const char *const phase_names[PHASE_COUNT];
/* Returns the phase before, for nesting. */
Phase phase_enter(Phase phase);
/* Counts all time until phase_whole_end as this phase, even where others are entered meanwhile; the
 * trace and phase_watch still see those. Returns the phase before. Not nested. */
Phase phase_whole_begin(Phase phase);
void phase_whole_end(Phase before);
/* Call around a wait for other ranks: counts it as PHASE_SUM if it interrupts PHASE_UPDATE or
 * PHASE_OTHER, as an agreement between two steps does. Pass the result of the first to the
 * second. */
Phase phase_wait_begin(void);
void phase_wait_end(Phase before);
/* Returns the seconds spent in a phase so far. */
double phase_s(Phase phase);
/* The same without the time since the last phase_enter, and without reading the clock. */
double phase_spent_s(Phase phase);
/* Calls `entered` at the beginning of every phase from now on; NULL: no longer. */
void phase_watch(void (*entered)(Phase phase));
/* trace_start records every span in a ring of the newest `events`; trace_write writes them as a
 * Chrome trace (trace.json). */
void trace_start(int events);
Status trace_write(const char *path, int rank);
/* Checks that trace_write could write to path, without changing an existing file. ERR_IO. */
Status trace_check(const char *path);

#endif
