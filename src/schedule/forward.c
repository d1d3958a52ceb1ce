/* Orders the forward passes of an evaluation, for any mapping of chunks to stages. Time is counted
 * in units of one pass. In each unit a stage runs at most one chunk: of its chunks that can run,
 * the one nearest to the loss. So a micro-batch in flight (begun and not finished) has priority
 * over a new one. At most `stages` micro-batches are in flight, and no channel has more than 2
 * messages.
 * If two consecutive chunks are on one stage, the second runs before the first runs again. */
#include "private.h"

#include <string.h>

enum { CHANNEL_SLOTS = 2 };

/* Returns true if the chunk can run in this unit of time. done: number of micro-batches that each
 * chunk has finished before this unit. */
static bool can_run(const Schedule *s, const int *done, int chunk)
{
    int last = schedule_chunks(s) - 1;
    if (done[chunk] == s->shape.micro_batches) return false;
    if (chunk == 0 && done[0] - done[last] >= s->shape.stages) return false;
    if (chunk > 0 && done[chunk] == done[chunk - 1]) return false;
    if (chunk == last) return true;
    return done[chunk] - done[chunk + 1] < (schedule_shares_stage(s, chunk) ? 1 : CHANNEL_SLOTS);
}

void order_forward(TaskList *list, const Schedule *s)
{
    int chunks = schedule_chunks(s);
    size_t bytes = (size_t)chunks * sizeof(int);
    int *done = mem_new(bytes), *next = mem_new(bytes);
    while (done[chunks - 1] < s->shape.micro_batches) {
        for (int stage = 0; stage < s->shape.stages; ++stage) {
            int local = s->shape.chunks_per_stage - 1;
            while (local >= 0 && !can_run(s, done, schedule_chunk(s, stage, local))) --local;
            if (local < 0) continue;
            int chunk = schedule_chunk(s, stage, local);
            list_add_work(&list[stage], s, TASK_FORWARD, chunk, next[chunk]++);
        }
        memcpy(done, next, bytes);
    }
    mem_free(&done);
    mem_free(&next);
}
