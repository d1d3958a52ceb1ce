/* Writes a ring of marks in memory that another process may read at the same time. The reader may
 * get a mark that is half written; this does no harm, because the text of a mark always ends in a
 * zero byte. */
#include "base/beat.h"

#include "base.h"

#include <string.h>

/* weight of the newest step in the moving average of step times */
static const double NEW_SHARE = 0.2;
/* number of first steps that are left out of the average, because they allocate, measure, and fill
 * caches */
static const int64_t FIRST_STEPS = 2;

static Beat process_beat = {.step = BEAT_NONE}, *beat = &process_beat;

void beat_move(Beat *to)
{
    if (!to) to = &process_beat;
    if (to != beat) memcpy(to, beat, sizeof *to);
    beat = to;
}

/* Adds a mark with the time of.at_s. */
static void add(const char *doing, BeatMark of)
{
    uint64_t count = atomic_load_explicit(&beat->count, memory_order_relaxed);
    BeatMark *mark = &beat->mark[count % BEAT_MARKS];
    of.step = atomic_load_explicit(&beat->step, memory_order_relaxed);
    memset(of.doing, 0, sizeof of.doing);
    size_t length = strlen(doing);
    memcpy(of.doing, doing, length < BEAT_TEXT ? length : BEAT_TEXT - 1);
    *mark = of;
    atomic_store_explicit(&beat->count, count + 1, memory_order_release);
}

void beat_mark(const char *doing, BeatMark of)
{
    of.at_s = clock_s();
    add(doing, of);
}

void beat_mark_at(const char *doing, bool waits, double at_s)
{
    add(doing, (BeatMark){.peer = BEAT_NONE,
                          .chunk = BEAT_NONE,
                          .micro = BEAT_NONE,
                          .waits = waits,
                          .at_s = at_s});
}

void beat_mark_plain(const char *doing, bool waits)
{
    beat_mark_at(doing, waits, clock_s());
}

void beat_mark_previous(void)
{
    uint64_t count = atomic_load_explicit(&beat->count, memory_order_relaxed);
    BeatMark before = beat->mark[(count - 2) % BEAT_MARKS];
    if (count >= 2) beat_mark(before.doing, before);
}

void beat_set_server(void)
{
    beat->is_server = true;
}

void beat_step_begin(int64_t step)
{
    atomic_store(&beat->step_began_us, (int64_t)(clock_s() * 1e6));
    atomic_store(&beat->step, step);
}

void beat_step_end(void)
{
    int64_t spent_us = (int64_t)(clock_s() * 1e6) - atomic_load(&beat->step_began_us);
    int64_t usual_us = atomic_load(&beat->usual_us);
    atomic_store(&beat->step, BEAT_NONE);
    if (++beat->steps <= FIRST_STEPS) return;
    atomic_store(&beat->usual_us,
                 usual_us == 0 ? spent_us
                               : usual_us + (int64_t)(NEW_SHARE * (double)(spent_us - usual_us)));
}
