/* Moves of messages on all stages, played by the strictest rules: moving a message blocks both
 * sides until both have reached it, one message after the other. Nobody waits forever; what moves
 * has been sent and has space; what is received has moved. */
#include "schedule.h"

#include "fixture.h"
#include "harness.h"

enum { STAGES = 8, CHANNELS = 2 * STAGES * 4 };

typedef struct Side {
    const Schedule *schedule;
    Moves moves;
    /* at: next task; move: next move */
    int stage, at, move;
} Side;

typedef struct Count {
    int sent[CHANNELS], moved[CHANNELS], taken[CHANNELS];
} Count;

static int channel_of(const Schedule *s, Task t)
{
    bool up = t.kind == TASK_SEND_FORWARD || t.kind == TASK_RECEIVE_BACKWARD;
    int boundary = 0;
    for (int c = 0; c < (up ? t.chunk : t.chunk - 1); ++c) boundary += schedule_crosses(s, c);
    bool values = t.kind == TASK_SEND_FORWARD || t.kind == TASK_RECEIVE_FORWARD;
    return 2 * boundary + !values;
}

/* Returns the channel whose move this side waits for, or -1. */
static int waits_for(const Side *s)
{
    bool waits = s->move < s->moves.count && s->moves.move[s->move].task == s->at;
    return waits ? s->moves.move[s->move].channel : -1;
}

/* Runs tasks up to the next move. */
static bool run_tasks(Side *s, Count *n, int depth, bool *good)
{
    bool moved = false;
    for (; waits_for(s) < 0 && s->at < s->schedule->count[s->stage]; ++s->at, moved = true) {
        Task t = s->schedule->task[s->stage][s->at];
        if (t.kind < TASK_SEND_FORWARD) continue;
        int c = channel_of(s->schedule, t);
        bool sends = t.kind == TASK_SEND_FORWARD || t.kind == TASK_SEND_BACKWARD;
        if (sends)
            *good = *good && ++n->sent[c] - n->moved[c] <= depth;
        else
            *good = *good && ++n->taken[c] <= n->moved[c];
    }
    return moved;
}

static bool exchange(Side *a, Side *b, Count *n, int depth, bool *good)
{
    int c = waits_for(a);
    if (c < 0 || c != waits_for(b)) return false;
    *good = *good && ++n->moved[c] <= n->sent[c] && n->moved[c] - n->taken[c] <= depth;
    ++a->move;
    ++b->move;
    return true;
}

static bool play(const Schedule *s, int depth)
{
    Side side[STAGES];
    Count n = {0};
    bool good = true, moved = true;
    int stages = s->shape.stages;
    for (int i = 0; i < stages; ++i) {
        side[i] = (Side){.schedule = s, .stage = i};
        good = good && schedule_moves(&side[i].moves, s, depth, i) == OK;
    }
    while (moved) {
        moved = false;
        for (int i = 0; i < stages; ++i) moved = run_tasks(&side[i], &n, depth, &good) || moved;
        for (int a = 0; a < stages; ++a)
            for (int b = a + 1; b < stages; ++b)
                moved = exchange(&side[a], &side[b], &n, depth, &good) || moved;
    }
    for (int i = 0; i < stages; ++i) {
        good = good && side[i].at == s->count[i] && side[i].move == side[i].moves.count;
        mem_free(&side[i].moves.move);
    }
    for (int c = 0; c < CHANNELS; ++c) good = good && n.taken[c] == n.sent[c];
    return good;
}

static void check(Schedule *s)
{
    ScheduleReport report = {.channel_depth = 2};
    bool forward = strcmp(s->name, "forward") == 0;
    if (!forward) CHECK_OK(schedule_simulate(s, NULL, &report));
    for (int depth = report.channel_depth; depth < report.channel_depth + 2; ++depth) {
        bool good = play(s, depth);
        if (!good)
            printf("  %s, %d stages of %d chunks, %d micro-batches, depth %d\n", s->name,
                   s->shape.stages, s->shape.chunks_per_stage, s->shape.micro_batches, depth);
        CU_ASSERT(good);
    }
    if (!forward) schedule_report_fini(&report);
    schedule_free(&s);
}

static void moves_of_every_schedule(void)
{
    static const int kinds[] = {SCHEDULE_1F1B,        SCHEDULE_GPIPE, SCHEDULE_INTERLEAVED,
                                SCHEDULE_ZERO_BUBBLE, SCHEDULE_ZB_V,  SCHEDULE_DUALPIPE_V};
    for (int stages = 2; stages <= STAGES; ++stages)
        for (int chunks = 1; chunks <= 3; ++chunks)
            for (int micro_batches = 1; micro_batches <= 18;
                 micro_batches += micro_batches < 6 ? 1 : 4) {
                ScheduleShape shape = {stages, chunks, micro_batches};
                for (int k = 0; k < 6; ++k) {
                    Schedule *s = NULL, *forward = NULL;
                    bool v = kinds[k] == SCHEDULE_ZB_V || kinds[k] == SCHEDULE_DUALPIPE_V;
                    if (v ? chunks != 2 : chunks > 1 && kinds[k] != SCHEDULE_INTERLEAVED) continue;
                    CHECK_OK(schedule_new(&s, kinds[k], NULL, shape));
                    CHECK_OK(schedule_forward(&forward, shape, s->stage_of));
                    check(s);
                    check(forward);
                }
                Schedule *s = NULL;
                CHECK_OK(schedule_forward(&s, shape, NULL));
                check(s);
            }
}

static void a_file_that_sends_late(void)
{
    Schedule *s = NULL;
    CHECK_OK(from_text(&s, (ScheduleShape){2, 1, 2},
                       "stage,task,chunk,micro\n"
                       "0,forward,0,0\n0,forward,0,1\n0,send_forward,0,0\n0,send_forward,0,1\n"
                       "0,receive_backward,0,0\n0,backward,0,0\n0,receive_backward,0,1\n"
                       "0,backward,0,1\n"
                       "1,receive_forward,1,0\n1,forward,1,0\n1,backward,1,0\n"
                       "1,receive_forward,1,1\n1,send_backward,1,0\n1,forward,1,1\n"
                       "1,backward,1,1\n1,send_backward,1,1\n"));
    check(s);
}

TEST_MAIN("moves", {"every schedule", moves_of_every_schedule},
          {"a file that sends late", a_file_that_sends_late})
