/* V-shaped schedules over many shapes: positions of chunks, complete lists, the bubbles and live
 * micro-batches of the papers, evaluation. Their bounds hold from 2p - 1 (zb-v) and 2p (dualpipe-v)
 * micro-batches on; with fewer they only run. */
#include "fixture.h"

#include <math.h>

enum { STAGES = 12 };
static const int kinds[] = {SCHEDULE_ZB_V, SCHEDULE_DUALPIPE_V};
static const double NEAR = 1e-9;

/* Prints once if a property does not hold, for one shape among hundreds. */
static void expect(bool holds, const Schedule *s, const char *what)
{
    if (!holds)
        printf("  %s, %d stages, %d micro-batches: %s\n", s->name, s->shape.stages,
               s->shape.micro_batches, what);
    CU_ASSERT(holds);
}

static int count_kind(const Schedule *s, int stage, TaskKind kind)
{
    int count = 0;
    for (int i = 0; i < s->count[stage]; ++i) count += s->task[stage][i].kind == kind;
    return count;
}

static void test_mapping(void)
{
    Schedule *s;
    CHECK_OK(schedule_new(&s, SCHEDULE_ZB_V, NULL, (ScheduleShape){3, 2, 1}));
    static const int stage[] = {0, 1, 2, 2, 1, 0};
    for (int c = 0; c < 6; ++c) {
        CU_ASSERT_EQUAL(schedule_stage(s, c), stage[c]);
        CU_ASSERT_EQUAL(schedule_index_on_stage(s, c), c / 3);
        CU_ASSERT_EQUAL(schedule_chunk(s, stage[c], c / 3), c);
        CU_ASSERT_EQUAL(schedule_shares_stage(s, c), c == 2);
        CU_ASSERT_EQUAL(schedule_crosses(s, c), c != 2 && c != 5);
    }
    CU_ASSERT(!schedule_shares_stage(s, -1) && !schedule_crosses(s, -1));
    schedule_free(&s);
    CHECK_FAILS(schedule_new(&s, SCHEDULE_ZB_V, NULL, (ScheduleShape){3, 1, 4}), ERR_CONFIG,
                "zb-v: has 2 chunks per stage, not 1");
    CHECK_FAILS(schedule_new(&s, SCHEDULE_DUALPIPE_V, NULL, (ScheduleShape){3, 3, 4}), ERR_CONFIG,
                "dualpipe-v: has 2 chunks per stage, not 3");
}

/* Checks completeness by counting, independently of the simulation's own check. At the turn and at
 * the ends of the V there are no messages. */
static void check_complete(const Schedule *s)
{
    int m = s->shape.micro_batches, last = s->shape.stages - 1;
    bool good = s->split;
    for (int i = 0; i <= last; ++i) {
        int messages = last == 0 ? 0 : i == 0 || i == last ? m : 2 * m;
        for (int kind = 0; kind < TASK_KINDS; ++kind)
            good =
                good && count_kind(s, i, (TaskKind)kind) == (kind == TASK_BACKWARD      ? 0
                                                             : kind < TASK_SEND_FORWARD ? 2 * m
                                                                                        : messages);
    }
    expect(good, s, "a list lacks a task or has one too many");
}

/* Returns the largest number of micro-batches of a stage's chunks with forward done and weight
 * gradients not done: those whose activations are kept. */
static int live_most(const Schedule *s, int stage)
{
    int now = 0, most = 0;
    for (int i = 0; i < s->count[stage]; ++i) {
        now += s->task[stage][i].kind == TASK_FORWARD;
        most = now > most ? now : most;
        now -= s->task[stage][i].kind == TASK_BACKWARD_WEIGHT;
    }
    return most;
}

/* Checks live micro-batches on every stage: the largest number at a time, and the sum of the
 * chunks' largest numbers, which is the number of slots. */
static void check_live(const Schedule *s, const ScheduleReport *r, int bound, bool reached)
{
    int p = s->shape.stages;
    for (int i = 0; i < p; ++i) {
        int slots = r->live[i] + r->live[2 * p - 1 - i], most = live_most(s, i);
        expect(most <= bound && slots <= bound, s, "more live micro-batches than the paper's");
        if (reached) expect(most == bound && slots == bound, s, "fewer than the paper's");
    }
}

/* Idle time of a stage between its first task and its last. */
static double idle_inside(const Schedule *s, const ScheduleReport *r, int stage)
{
    double first = r->makespan, last = 0;
    for (int i = 0; i < s->count[stage]; ++i) {
        if (s->task[stage][i].kind >= TASK_SEND_FORWARD) continue;
        first = fmin(first, r->span[stage][i].start);
        last = fmax(last, r->span[stage][i].end);
    }
    return last - first - 6.0 * s->shape.micro_batches;
}

static void check_shape(int kind, int p, int m)
{
    Schedule *s;
    ScheduleReport r;
    CHECK_OK(schedule_new(&s, kind, NULL, (ScheduleShape){p, 2, m}));
    Status st = schedule_simulate(s, NULL, &r);
    if (st != OK) printf("  %s\n", fail_message());
    expect(st == OK, s, "refused");
    if (st == OK) {
        bool zb = kind == SCHEDULE_ZB_V, enough = m >= (zb ? 2 * p - 1 : 2 * p);
        check_complete(s);
        check_live(s, &r, zb ? 2 * p : 2 * p + 1, enough && p > 1);
        expect(r.channel_depth == 2, s, "channels too deep");
        if (enough) {
            expect(fabs(r.makespan - (6 * m + p - 1)) < NEAR, s, "makespan");
            expect(fabs(r.bubble - (p - 1) / (6.0 * m + p - 1)) < NEAR, s, "bubble");
        }
        for (int i = 0; enough && i < p; ++i)
            expect(fabs(idle_inside(s, &r, i) - (zb ? 0 : p - 1 - i)) < NEAR, s, "idle inside");
        schedule_report_fini(&r);
    }
    schedule_free(&s);
}

static void test_formulas(void)
{
    for (int k = 0; k < 2; ++k) {
        for (int p = 1; p <= STAGES; ++p)
            for (int m = 1; m <= 4 * p + 3; ++m) check_shape(kinds[k], p, m);
        check_shape(kinds[k], 33, 100);
    }
}

/* DeepSeek's formula for a stage's bubble, (p - 1)(F&B + B - 3W) with B = B_data + W, where the
 * passes of a pair follow each other: F&B = F + B. Here gradients are sent before the weights'
 * half, so the bubble is never larger. */
static void test_costs(void)
{
    /* forward, backward_data, backward_weight */
    static const double costs[][3] = {{1, 1, 1}, {2, 2, 1}, {2, 3, 2}, {1, 2, 1},
                                      {2, 1, 1}, {1, 1, 2}, {3, 4, 3}, {4, 5, 3}};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; ++i)
        for (int p = 2; p <= 6; ++p)
            for (int m = 2 * p; m <= 3 * p; ++m) {
                TaskCost c = {.forward = costs[i][0],
                              .backward_data = costs[i][1],
                              .backward_weight = costs[i][2]},
                         all[2 * STAGES];
                Schedule *s;
                ScheduleReport r;
                for (int k = 0; k < 2 * p; ++k) all[k] = c;
                CHECK_OK(schedule_new(&s, SCHEDULE_DUALPIPE_V, NULL, (ScheduleShape){p, 2, m}));
                CHECK_OK(schedule_simulate(s, all, &r));
                double work = 2 * m * (c.forward + c.backward_data + c.backward_weight);
                double paper = (p - 1) * (c.forward + 2 * c.backward_data - c.backward_weight);
                expect(r.makespan - work < paper + NEAR, s, "more idle than the formula");
                schedule_report_fini(&r);
                schedule_free(&s);
            }
}

/* Compares a list; "F0.3" is micro-batch 0 through chunk 3, D and W its two halves of backward. */
static void check_list(int kind, int stage, const char *list)
{
    static const char letter[] = {
        [TASK_FORWARD] = 'F', [TASK_BACKWARD_DATA] = 'D', [TASK_BACKWARD_WEIGHT] = 'W'};
    char text[512] = "";
    size_t at = 0;
    Schedule *s;
    CHECK_OK(schedule_new(&s, kind, NULL, (ScheduleShape){2, 2, 4}));
    for (int i = 0; i < s->count[stage]; ++i) {
        Task t = s->task[stage][i];
        if (t.kind < TASK_SEND_FORWARD)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%d.%d", at ? " " : "",
                                   letter[t.kind], t.micro, t.chunk);
    }
    CU_ASSERT_STRING_EQUAL(text, list);
    if (strcmp(text, list) != 0) printf("  %s stage %d: %s\n", s->name, stage, text);
    schedule_free(&s);
}

static void test_lists(void)
{
    check_list(SCHEDULE_ZB_V, 0,
               "F0.0 F1.0 F2.0 F0.3 D0.3 W0.3 F1.3 D1.3 W1.3 D0.0 W0.0 F3.0 F2.3 D2.3 W2.3 D1.0 "
               "W1.0 F3.3 D3.3 W3.3 D2.0 W2.0 D3.0 W3.0");
    check_list(SCHEDULE_ZB_V, 1,
               "F0.1 F0.2 F1.1 F1.2 D0.2 W0.2 D0.1 W0.1 F2.1 F2.2 D1.2 W1.2 D1.1 W1.1 F3.1 F3.2 "
               "D2.2 W2.2 D2.1 D3.2 D3.1 W2.1 W3.2 W3.1");
    check_list(SCHEDULE_DUALPIPE_V, 0,
               "F0.0 F1.0 F2.0 F0.3 D0.3 W0.3 F1.3 F3.0 D1.3 W1.3 F2.3 D0.0 W0.0 D2.3 W2.3 F3.3 "
               "D1.0 W1.0 D3.3 W3.3 D2.0 W2.0 D3.0 W3.0");
    check_list(SCHEDULE_DUALPIPE_V, 1,
               "F0.1 F0.2 F1.1 F1.2 F2.1 D0.2 W0.2 F2.2 D0.1 W0.1 F3.1 D1.2 W1.2 F3.2 D1.1 W1.1 "
               "D2.2 W2.2 D2.1 W2.1 D3.2 D3.1 W3.2 W3.1");
}

/* A list with changed tasks is refused like those of other schedules; at the turn there is no
 * message. */
static void test_broken(void)
{
    static const struct {
        /* put in place of stage 1's first task; the second is the forward through chunk 1 */
        Task task;
        const char *why;
    } bad[] = {{{TASK_SEND_FORWARD, 1, 0}, "there is no such message"},
               {{TASK_RECEIVE_FORWARD, 2, 0}, "there is no such message"},
               {{TASK_FORWARD, 2, 0}, "before its inputs"},
               {{TASK_FORWARD, 3, 0}, "on another stage"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        Schedule *s;
        CHECK_OK(schedule_new(&s, SCHEDULE_ZB_V, NULL, (ScheduleShape){2, 2, 4}));
        s->task[1][0] = bad[i].task;
        CHECK_FAILS(schedule_simulate(s, NULL, NULL), ERR_CONFIG, bad[i].why);
        schedule_free(&s);
    }
}

/* The stage at the turn works without a gap, so no order is shorter. */
static void test_forward(void)
{
    for (int p = 1; p <= STAGES; ++p)
        for (int m = 1; m <= 3 * p + 1; ++m) {
            Schedule *s, *of;
            ScheduleReport r;
            ScheduleShape shape = {p, 2, m};
            CHECK_OK(schedule_new(&of, SCHEDULE_ZB_V, NULL, shape));
            CHECK_OK(schedule_forward(&s, shape, of->stage_of));
            CHECK_OK(schedule_simulate(s, NULL, &r));
            expect(r.channel_depth == 2, s, "depth");
            expect(fabs(r.makespan - (2 * m + 2 * p - 2)) < NEAR, s, "makespan");
            for (int c = 0; c < 2 * p; ++c) expect(r.live[c] == 1, s, "live");
            schedule_report_fini(&r);
            schedule_free(&s);
            schedule_free(&of);
        }
}

TEST_MAIN("V-shaped schedules", {"where chunks are", test_mapping},
          {"bubble and live micro-batches", test_formulas}, {"other costs", test_costs},
          {"lists", test_lists}, {"refused lists", test_broken}, {"evaluation", test_forward})
