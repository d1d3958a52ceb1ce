/* Time by phase, and the trace of it. Not collective. */
#ifndef WEFT_BASE_PHASE_H
#define WEFT_BASE_PHASE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* Time by phase: a span is closed by the next phase_enter. One set per process, one thread. */
#define PHASES(W)                                                                                  \
    W(PHASE_OTHER, "other")                                                                        \
    W(PHASE_DATA, "data")                                                                          \
    W(PHASE_FORWARD, "forward")                                                                    \
    W(PHASE_BACKWARD, "backward")                                                                  \
    W(PHASE_SUM, "sum")                                                                            \
    W(PHASE_MESSAGES, "messages")                                                                  \
    W(PHASE_UPDATE, "update")                                                                      \
    W(PHASE_EVAL, "eval")                                                                          \
    W(PHASE_CHECKPOINT, "checkpoint")
typedef enum Phase { PHASES(LIST_CONSTANT) PHASE_COUNT } Phase;
extern const char *const phase_names[PHASE_COUNT];
/* returns the phase before, for nesting */
Phase phase_enter(Phase phase);
/* Counts all time until phase_whole_end as this phase, even where others are entered meanwhile; the
 * trace and phase_watch still see those. Returns the phase before. Not nested. */
Phase phase_whole_begin(Phase phase);
void phase_whole_end(Phase before);
/* seconds so far */
double phase_s(Phase phase);
/* From now on `entered` is told every phase as it begins; NULL: nobody is. */
void phase_watch(void (*entered)(Phase phase));
/* With a trace on, every span goes to a ring of the newest `events`; trace_write makes a Chrome
 * trace (trace.json). */
void trace_start(int events);
Status trace_write(const char *path, int rank);
/* Could it be written there? ERR_IO, as trace_write's. What is there stays as it is. */
Status trace_check(const char *path);

#endif
