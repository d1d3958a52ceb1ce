/* What a watchdog knows of a rank. Sent between nodes as it is: all run one program. */
#ifndef WEFT_PARALLEL_RANK_STATE_H
#define WEFT_PARALLEL_RANK_STATE_H

#include "parallel.h"

typedef struct RankState {
    /* of the job; and its process on its host */
    int32_t rank, process;
    /* process_state */
    char process_state;
    /* in a step? does it serve those that are? */
    bool stepping, serves;
    /* seconds: in this step, since its newest mark, of a usual step (0: not known yet) */
    double late_s, still_s, usual_s;
    double swapped_bytes;
    BeatMark newest;
} RankState;

enum { RANK_TEXT = 640 };
/* "at backward of chunk 1, micro-batch 3, in step 12, for 4.1 s" or "waits for a message (7) of
 * rank 2 in step 12, for 4.1 s". Returns out. */
const char *rank_state_text(const RankState *state, char out[RANK_TEXT]);
/* A mark, without its age. Returns out. */
const char *mark_text(const BeatMark *mark, char out[RANK_TEXT]);

#endif
