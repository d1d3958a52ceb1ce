/* The state of one rank, as watchdogs see it. All ranks run the same program, so watchdogs send it
 * between nodes as bytes. */
#ifndef WEFT_PARALLEL_RANK_STATE_H
#define WEFT_PARALLEL_RANK_STATE_H

#include "parallel.h"

typedef struct RankState {
    /* number of the rank in the job */
    int32_t rank;
    /* process id of the rank on its host */
    int32_t process;
    /* letter that process_state returned for the process */
    char process_state;
    /* true: the rank is in a step */
    bool stepping;
    /* true: the rank is a server */
    bool serves;
    /* seconds since the rank's current step began, or since NodeRanks.awake_s if that is later; 0
     * outside a step */
    double step_elapsed_s;
    /* seconds since the rank's newest mark, or since NodeRanks.awake_s if that is later */
    double still_s;
    /* seconds of a usual step; 0: unknown */
    double usual_s;
    /* bytes of the process's memory that are swapped out, read only while the rank makes no marks;
     * 0 or less: none, or not known */
    double swapped_bytes;
    /* the newest mark of the rank */
    BeatMark newest;
} RankState;

enum { RANK_TEXT = 640 };
/* Writes a description of the rank to `out` and returns it, for example "is at backward of chunk 1,
 * micro-batch 3, step 12, since 4.1 s" or "waits for a message (7) of rank 2, step 12, since 4.1
 * s". */
const char *rank_state_text(const RankState *state, char out[RANK_TEXT]);
/* Writes a description of a mark, without its age, to `out` and returns it. */
const char *mark_text(const BeatMark *mark, char out[RANK_TEXT]);

#endif
