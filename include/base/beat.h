/* What this process is at, in memory that a watchdog of another process may read (parallel.h,
 * Watchdog). One thread writes, the one that trains. Not collective. */
#ifndef WEFT_BASE_BEAT_H
#define WEFT_BASE_BEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BEAT_MARKS = 64, BEAT_TEXT = 28, BEAT_NONE = -1 };

/* Something that was begun. */
typedef struct BeatMark {
    /* clock_s */
    double at_s;
    int64_t step;
    /* of a message on its channel, of a sum on its communicator; 0: none */
    uint64_t number;
    /* whom it is with, as a rank of the job; of the model; of the step: or BEAT_NONE */
    int32_t peer, chunk, micro;
    /* for other ranks? */
    bool waits;
    char doing[BEAT_TEXT];
} BeatMark;

typedef struct Beat {
    /* marks so far: the newest is mark[(count - 1) % BEAT_MARKS] */
    _Atomic uint64_t count;
    /* the step under way, or BEAT_NONE between two; when it began, in microseconds of clock_s; what
     * steps take, 0 before the third */
    _Atomic int64_t step, since_us, usual_us;
    int64_t steps;
    /* it makes no steps, but does what those who make them ask */
    bool serves;
    BeatMark mark[BEAT_MARKS];
} Beat;

/* Marks go to this memory from now on, what was marked before included; NULL: to the process's
 * own. Borrowed. */
void beat_move(Beat *beat);
/* doing: cut to BEAT_TEXT - 1. of: with everything but at_s, step and doing. */
void beat_mark(const char *doing, BeatMark of);
/* Nothing but a name. */
void beat_mark_plain(const char *doing, bool waits);
/* Behind a wait: what was marked before it, again. */
void beat_mark_again(void);
/* This process makes no steps, but serves those who do. */
void beat_serve(void);
/* A step, from its beginning to its end. */
void beat_step_begin(int64_t step);
void beat_step_end(void);

#endif
