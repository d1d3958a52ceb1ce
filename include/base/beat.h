/* Records the current activity of this process in memory that a watchdog in another process may
 * read (parallel.h, Watchdog). Only the training thread writes to that memory. Not collective. */
#ifndef WEFT_BASE_BEAT_H
#define WEFT_BASE_BEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* BEAT_MARKS: number of marks that are kept. BEAT_TEXT: bytes of a mark's text with its zero byte.
 * BEAT_NONE: value of a field that is not set. */
enum { BEAT_MARKS = 64, BEAT_TEXT = 28, BEAT_NONE = -1 };

/* The start of an activity. */
typedef struct BeatMark {
    /* time by clock_s */
    double at_s;
    /* step in which the activity began; BEAT_NONE: between steps */
    int64_t step;
    /* number of a message on its channel, or of a sum on its communicator; 0: none */
    uint64_t number;
    /* peer: number in the job of the rank at the other end; chunk: number of the chunk of the
     * model; micro: number of the micro-batch in the step. Each may be BEAT_NONE. */
    int32_t peer, chunk, micro;
    /* true if the activity is a wait for other ranks */
    bool waits;
    /* name of the activity; always ends in a zero byte */
    char doing[BEAT_TEXT];
} BeatMark;

/* The activities of a process: its newest marks, and its steps. */
typedef struct Beat {
    /* number of marks so far; the newest is mark[(count - 1) % BEAT_MARKS] */
    _Atomic uint64_t count;
    /* number of the current step; BEAT_NONE: between steps */
    _Atomic int64_t step;
    /* time at which the newest step began, in microseconds of clock_s */
    _Atomic int64_t step_began_us;
    /* usual duration of a step in microseconds, a moving average; 0 before the third step ends */
    _Atomic int64_t usual_us;
    /* number of steps that have ended */
    int64_t steps;
    /* true: this process computes no steps, but serves requests of ranks that compute them */
    bool is_server;
    BeatMark mark[BEAT_MARKS];
} Beat;

/* Copies the Beat of this process, including earlier marks, to *beat. From then on the functions
 * below change *beat. If `beat` is NULL, the Beat moves back to the process's own memory. *beat is
 * borrowed until the next call. */
void beat_move(Beat *beat);
/* Adds a mark with the current time and step. doing: name of the activity, cut to BEAT_TEXT - 1
 * bytes; `of`: the other fields of the mark; of.doing, of.at_s and of.step are ignored. */
void beat_mark(const char *doing, BeatMark of);
/* Adds a mark that has only a text and the flag `waits`. */
void beat_mark_plain(const char *doing, bool waits);
/* Adds the mark that beat_mark_plain adds, but with the time at_s, which the caller has already
 * read with clock_s. */
void beat_mark_at(const char *doing, bool waits, double at_s);
/* Call this function after a wait whose mark is the newest. Adds a copy of the mark before the
 * wait's mark, with the current time and step. */
void beat_mark_previous(void);
/* Declares that this process computes no steps, but serves requests of ranks that compute them. */
void beat_set_server(void);
/* Call these two functions at the beginning and at the end of each step. */
void beat_step_begin(int64_t step);
void beat_step_end(void);

#endif
