/* Describes the state of a rank, or one mark, in words for the watchdog's messages. */
#include "rank_state.h"

/* smallest number of swapped bytes that is reported */
static const double SWAPPED_BYTES = 1 << 20;

const char *mark_text(const BeatMark *mark, char out[RANK_TEXT])
{
    char peer[64] = "", number[32] = "", chunk[32] = "", micro[32] = "", step[32] = "";
    if (mark->peer != BEAT_NONE) snprintf(peer, sizeof peer, " of rank %d", mark->peer);
    if (mark->number > 0)
        snprintf(number, sizeof number, " (%llu)", (unsigned long long)mark->number);
    if (mark->chunk != BEAT_NONE) snprintf(chunk, sizeof chunk, " of chunk %d", mark->chunk);
    if (mark->micro != BEAT_NONE) snprintf(micro, sizeof micro, ", micro-batch %d", mark->micro);
    if (mark->step != BEAT_NONE) snprintf(step, sizeof step, ", step %lld", (long long)mark->step);
    snprintf(out, RANK_TEXT, "%s %.*s%s%s%s%s%s", mark->waits ? "waits for" : "is at",
             BEAT_TEXT - 1, mark->doing, number, peer, chunk, micro, step);
    return out;
}

const char *rank_state_text(const RankState *state, char out[RANK_TEXT])
{
    char what[RANK_TEXT], swapped[64] = "", bytes[16];
    if (state->swapped_bytes >= SWAPPED_BYTES)
        snprintf(swapped, sizeof swapped, "; %s of it is swapped out",
                 text_bytes(state->swapped_bytes, bytes));
    mark_text(&state->newest, what);
    snprintf(out, RANK_TEXT, "%.180s, since %.1f s%s", what, state->still_s, swapped);
    return out;
}
