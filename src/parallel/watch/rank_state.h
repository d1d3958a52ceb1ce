/* The state of one rank, as watchdogs see it. Nodes send it to each other as bytes, since all run
 * the same program. */
#ifndef WEFT_PARALLEL_RANK_STATE_H
#define WEFT_PARALLEL_RANK_STATE_H

#include "parallel.h"

typedef struct RankState {
    /* number in the job, and process id on its host */
    int32_t rank, process;
    /* letter as returned by process_state */
    char process_state;
    /* stepping: the rank is in a step; serves: the rank is a server */
    bool stepping, serves;
    /* seconds since the rank's current step began, or since NodeRanks.awake_s if that is later; 0
     * outside a step */
    double late_s;
    /* seconds since the newest mark, or since NodeRanks.awake_s if that is later */
    double still_s;
    /* seconds of a usual step; 0: unknown */
    double usual_s;
    /* bytes of the process's memory that are swapped out; no code sets it yet: always 0 */
    double swapped_bytes;
    /* the rank's last mark */
    BeatMark newest;
} RankState;

enum { RANK_TEXT = 640 };
/* Describes the rank: "is at backward of chunk 1, micro-batch 3, step 12, since 4.1 s" or "waits
 * for a message (7) of rank 2, step 12, since 4.1 s". Returns out. */
const char *rank_state_text(const RankState *state, char out[RANK_TEXT]);
/* Describes a mark, without its age. Returns out. */
const char *mark_text(const BeatMark *mark, char out[RANK_TEXT]);

#endif
