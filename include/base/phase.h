/* Time spent in each phase, and a trace of it. Not collective. */
#ifndef WEFT_BASE_PHASE_H
#define WEFT_BASE_PHASE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* Phases of a process. A phase lasts until the next phase_enter; a process is in one phase at a
 * time. Only one thread of a process may call the functions of this header. A new phase also needs
 * a part of the ledger: line_of in src/train/run/run_waits.c. sum: sums over replicas, and other
 * waits for all ranks; messages: messages between stages; exchange: exchanges in a tensor-parallel
 * group. */
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
/* Begins a phase. The first call also begins the counting of time. Returns the previous phase,
 * which the caller enters again after a nested phase. */
Phase phase_enter(Phase phase);
/* Counts all time until phase_count_as_end as time of this phase, even if other phases are entered
 * meanwhile; the trace and the function of phase_watch still get those phases. Returns the phase
 * before, for phase_count_as_end. Calls cannot be nested. */
Phase phase_count_as_begin(Phase phase);
void phase_count_as_end(Phase before);
/* Call these two functions before and after a wait for other ranks. A wait during PHASE_UPDATE or
 * PHASE_OTHER, such as an agreement between two steps, is counted as PHASE_SUM. before: the result
 * of phase_wait_begin. */
Phase phase_wait_begin(void);
void phase_wait_end(Phase before);
/* Returns the seconds spent in a phase so far, including the time since the last phase_enter. */
double phase_s(Phase phase);
/* Returns the seconds spent in a phase up to the last phase_enter. Does not read the clock. */
double phase_ended_s(Phase phase);
/* From now on, calls `entered` at the beginning of every phase. NULL ends these calls. */
void phase_watch(void (*entered)(Phase phase));
/* trace_start begins to record the beginning and the end of every phase, and keeps the newest
 * `events` phases. trace_write writes these phases, and the phase that has not ended, as a Chrome
 * trace (trace.json). rank: number of this process in the trace. ERR_IO: the file cannot be
 * written. */
void trace_start(int events);
Status trace_write(const char *path, int rank);
/* Checks that trace_write could write to `path`, without changing an existing file. ERR_IO: it
 * could not. */
Status trace_check(const char *path);

#endif
