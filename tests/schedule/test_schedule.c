/* The built-in schedules over thousands of shapes: complete, free of deadlocks, with the small
 * numbers of live micro-batches and the small bubbles that the papers promise; times of the
 * simulation under uneven costs; evaluation; size. */
#include "schedule.h"
#include "schedules.def"

#include "harness.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const int kinds[] = {SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_INTERLEAVED,
                            SCHEDULE_ZERO_BUBBLE};
enum { KINDS = sizeof kinds / sizeof kinds[0] };
static const double NEAR = 1e-9;

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

/* Prints once if a property does not hold, for one shape among thousands. */
static void expect(bool holds, const Schedule *s, const char *what)
{
    if (!holds)
        printf("  %s, %d stages of %d chunks, %d micro-batches: %s\n", s->name, s->shape.stages,
               s->shape.chunks_per_stage, s->shape.micro_batches, what);
    CU_ASSERT(holds);
}

static int count_kind(const Schedule *s, int stage, TaskKind kind)
{
    int count = 0;
    for (int i = 0; i < s->count[stage]; ++i) count += s->task[stage][i].kind == kind;
    return count;
}

/* Checks completeness by counting, independently of the simulation's own check. */
static void check_complete(const Schedule *s)
{
    bool good = true;
    int passes = s->shape.chunks_per_stage * s->shape.micro_batches, last = s->shape.stages - 1;
    for (int i = 0; i <= last; ++i) {
        int halves = s->split ? passes : 0, whole = passes - halves;
        int in = last == 0 ? 0 : passes - (i == 0 ? s->shape.micro_batches : 0);
        int out = last == 0 ? 0 : passes - (i == last ? s->shape.micro_batches : 0);
        good = good && count_kind(s, i, TASK_FORWARD) == passes &&
               count_kind(s, i, TASK_BACKWARD) == whole &&
               count_kind(s, i, TASK_BACKWARD_DATA) == halves &&
               count_kind(s, i, TASK_BACKWARD_WEIGHT) == halves &&
               count_kind(s, i, TASK_RECEIVE_FORWARD) == in &&
               count_kind(s, i, TASK_SEND_BACKWARD) == in &&
               count_kind(s, i, TASK_SEND_FORWARD) == out &&
               count_kind(s, i, TASK_RECEIVE_BACKWARD) == out;
    }
    expect(good, s, "a list lacks a task or has one too many");
}

/* Returns the largest number of micro-batches of a stage with forward done and backward (data) not
 * done, the bound that 1f1b and ZB-H1 share. */
static int waiting_most(const Schedule *s, int stage)
{
    int now = 0, most = 0;
    for (int i = 0; i < s->count[stage]; ++i) {
        TaskKind kind = s->task[stage][i].kind;
        now += kind == TASK_FORWARD;
        most = now > most ? now : most;
        now -= kind == TASK_BACKWARD || kind == TASK_BACKWARD_DATA;
    }
    return most;
}

static void check_live(const Schedule *s, const ScheduleReport *r, int kind)
{
    int p = s->shape.stages, m = s->shape.micro_batches;
    for (int i = 0; i < p; ++i) {
        if (kind == SCHEDULE_GPIPE) expect(r->live[i] == m, s, "live, gpipe");
        if (kind == SCHEDULE_1F1B) expect(r->live[i] == at_most(m, p - i), s, "live, 1f1b");
        if (kind != SCHEDULE_ZERO_BUBBLE) continue;
        expect(waiting_most(s, i) == at_most(m, p - i), s, "waits for backward as in 1f1b");
        expect(r->live[i] <= at_most(m, p), s, "live at most as on 1f1b's first stage");
    }
    for (int c = 0; c < p * s->shape.chunks_per_stage; ++c)
        expect(r->live[c] >= 1 && r->live[c] <= m, s, "live is 1 to m");
}

/* Unit costs: a chunk's forward takes 1, its backward 2. */
static void check_bubble(const Schedule *s, const ScheduleReport *r, int kind)
{
    int p = s->shape.stages, v = s->shape.chunks_per_stage, m = s->shape.micro_batches;
    double span = 3.0 * (v * m + p - 1), plain = 3.0 * v * (m + p - 1);
    double theory = (p - 1) / ((double)v * m + p - 1);
    if (kind == SCHEDULE_GPIPE || kind == SCHEDULE_1F1B || m % p == 0) {
        if (kind != SCHEDULE_ZERO_BUBBLE) {
            expect(fabs(r->bubble - theory) < NEAR, s, "the bubble is not the theory's");
            expect(fabs(r->makespan - span) < NEAR, s, "the makespan is not the theory's");
        }
    }
    expect(r->makespan < plain + NEAR, s, "slower than 1f1b");
    if (kind == SCHEDULE_ZERO_BUBBLE && p > 1) expect(r->bubble < theory, s, "bubble not smaller");
    if (kind == SCHEDULE_ZERO_BUBBLE && m >= 2 * p)
        expect(fabs(r->makespan - (3.0 * m + p - 1)) < NEAR, s, "not ZB-H1's makespan");
}

/* Returns 2, or more if groups are larger than `stages`. */
static int depth_wanted(ScheduleShape shape)
{
    int groups = shape.micro_batches / shape.stages, most;
    if (groups == 0 || shape.chunks_per_stage == 1 || shape.stages == 1) return 2;
    most = (shape.micro_batches + groups - 1) / groups - shape.stages + 1;
    return most > 2 ? most : 2;
}

static void check_shape(int kind, ScheduleShape shape)
{
    Schedule *s;
    ScheduleReport r;
    CHECK_OK(schedule_new(&s, kind, NULL, shape));
    Status st = schedule_simulate(s, NULL, &r);
    if (st != OK) printf("  %s\n", fail_message());
    expect(st == OK, s, "refused");
    if (st == OK) {
        check_complete(s);
        check_live(s, &r, kind);
        check_bubble(s, &r, kind);
        expect(r.channel_depth >= 2 && r.channel_depth <= depth_wanted(shape), s,
               "channels too deep");
        expect(s->split == (kind == SCHEDULE_ZERO_BUBBLE), s, "split");
        schedule_report_fini(&r);
    }
    schedule_free(&s);
}

static void test_properties(void)
{
    for (int k = 0; k < KINDS; ++k)
        for (int p = 1; p <= 12; ++p)
            for (int v = 1; v <= (kinds[k] == SCHEDULE_INTERLEAVED ? 4 : 1); ++v)
                for (int m = 1; m <= 4 * p + 3; ++m)
                    check_shape(kinds[k], (ScheduleShape){p, v, m});
    check_shape(SCHEDULE_1F1B, (ScheduleShape){33, 1, 100});
    check_shape(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){33, 1, 100});
    check_shape(SCHEDULE_INTERLEAVED, (ScheduleShape){17, 7, 34});
    check_shape(SCHEDULE_INTERLEAVED, (ScheduleShape){16, 3, 31});
}

/* Returns the list of a stage as text: "F0 B0 " without messages, "rf0 F0 sf0 " with them. */
static const char *list_text(const Schedule *s, int stage, bool messages)
{
    static const char *const name[TASK_KINDS] = {"F", "B", "D", "W", "sf", "rf", "sb", "rb"};
    static char text[1024];
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < s->count[stage]; ++i) {
        Task t = s->task[stage][i];
        if (t.kind >= TASK_SEND_FORWARD && !messages) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%d", at ? " " : "", name[t.kind],
                               t.micro);
        if (s->shape.chunks_per_stage > 1)
            at += (size_t)snprintf(text + at, sizeof text - at, ".%d", t.chunk);
    }
    return text;
}

static void check_list(int kind, ScheduleShape shape, int stage, bool messages, const char *list)
{
    Schedule *s;
    CHECK_OK(schedule_new(&s, kind, NULL, shape));
    const char *is = list_text(s, stage, messages);
    if (strcmp(is, list) != 0)
        printf("  %s stage %d: %s\n  wanted: %s\n", s->name, stage, is, list);
    CU_ASSERT_STRING_EQUAL(is, list);
    schedule_free(&s);
}

/* Lists as drawn in the papers. */
static void test_lists(void)
{
    check_list(SCHEDULE_1F1B, (ScheduleShape){1, 1, 2}, 0, true, "F0 B0 F1 B1");
    check_list(SCHEDULE_GPIPE, (ScheduleShape){1, 1, 2}, 0, true, "F0 F1 B0 B1");
    check_list(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){1, 1, 2}, 0, true, "F0 D0 W0 F1 D1 W1");
    check_list(SCHEDULE_1F1B, (ScheduleShape){3, 1, 2}, 1, true,
               "rf0 F0 sf0 rf1 F1 sf1 rb0 B0 sb0 rb1 B1 sb1");
    check_list(SCHEDULE_1F1B, (ScheduleShape){4, 1, 5}, 2, false, "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
    check_list(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){4, 1, 5}, 3, false,
               "F0 D0 F1 D1 F2 D2 F3 D3 W0 F4 D4 W1 W2 W3 W4");
    check_list(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){2, 1, 2}, 1, true,
               "rf0 F0 D0 sb0 rf1 F1 D1 sb1 W0 W1");
    check_list(SCHEDULE_INTERLEAVED, (ScheduleShape){2, 2, 4}, 0, false,
               "F0.0 F1.0 F0.2 F1.2 F2.0 B0.2 F3.0 B1.2 F2.2 B0.0 F3.2 B1.0 B2.2 B3.2 B2.0 B3.0");
    check_list(SCHEDULE_INTERLEAVED, (ScheduleShape){1, 2, 1}, 0, true, "F0.0 F0.1 B0.1 B0.0");
}

static void test_refused(void)
{
    Schedule *s;
    CHECK_FAILS(schedule_new(&s, SCHEDULE_1F1B, NULL, (ScheduleShape){4, 2, 8}), ERR_CONFIG,
                "1f1b: has one chunk per stage, not 2");
    CU_ASSERT_PTR_NULL(s);
    CHECK_FAILS(schedule_new(&s, SCHEDULE_GPIPE, NULL, (ScheduleShape){4, 1, 0}), ERR_CONFIG,
                "at least 1");
    CHECK_FAILS(schedule_forward(&s, (ScheduleShape){0, 1, 1}, NULL), ERR_CONFIG, "at least 1");
    CHECK_FAILS(schedule_new(&s, SCHEDULE_INTERLEAVED, NULL, (ScheduleShape){2, 1 << 20, 1 << 20}),
                ERR_CONFIG, "too many");
    CHECK_FAILS(schedule_new(&s, 99, NULL, (ScheduleShape){1, 1, 1}), ERR_BUG, "99");
}

/* Two stages and one micro-batch, computed by hand: every part of the cost has an effect. */
static void test_costs(void)
{
    const TaskCost cost[] = {{2, 3, 5, {.wire = 0.5}, {.wire = 0.5}},
                             {.forward = 7, .backward_data = 11, .backward_weight = 13}};
    Schedule *s;
    ScheduleReport r;
    CHECK_OK(schedule_new(&s, SCHEDULE_1F1B, NULL, (ScheduleShape){2, 1, 1}));
    CHECK_OK(schedule_simulate(s, cost, &r));
    double end = 2 + 0.5 + 7 + (11 + 13) + 0.5 + (3 + 5);
    CU_ASSERT_DOUBLE_EQUAL(r.makespan, end, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.bubble, 1 - 41 / (2 * end), NEAR);
    /* includes waiting for the message */
    CU_ASSERT_DOUBLE_EQUAL(r.span[1][0].start, 0, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.span[1][0].end, 2.5, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.span[1][1].end, 9.5, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.span[0][0].end, 2, NEAR);
    schedule_report_fini(&r);
    schedule_free(&s);

    /* Both ends copy a message, in addition to its time on the wire. */
    const TaskCost copied[] = {{2, 3, 5, {.copy = 0.25, .wire = 0.5}, {.copy = 0.125}},
                               {.forward = 7, .backward_data = 11, .backward_weight = 13}};
    CHECK_OK(schedule_new(&s, SCHEDULE_1F1B, NULL, (ScheduleShape){2, 1, 1}));
    CHECK_OK(schedule_simulate(s, copied, &r));
    CU_ASSERT_DOUBLE_EQUAL(r.makespan, 2 + 2 * 0.25 + 0.5 + 7 + (11 + 13) + 2 * 0.125 + (3 + 5),
                           NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.span[0][1].end, 2.25, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.span[1][0].end, 3, NEAR);
    schedule_report_fini(&r);
    schedule_free(&s);

    /* With halves the first stage need not wait for the second stage's weight gradients. */
    CHECK_OK(schedule_new(&s, SCHEDULE_ZERO_BUBBLE, NULL, (ScheduleShape){2, 1, 1}));
    CHECK_OK(schedule_simulate(s, cost, &r));
    CU_ASSERT_DOUBLE_EQUAL(r.makespan, 2 + 0.5 + 7 + 11 + 13, NEAR);
    schedule_report_fini(&r);
    schedule_free(&s);
}

/* gpipe with two micro-batches on two stages: forwards end at 2 and 2 + 6, backwards of the second
 * stage, 6 each, at 20, of the first at 22. */
static void test_waits(void)
{
    const TaskCost cost[] = {{.forward = 1, .backward_data = 1},
                             {.forward = 3, .backward_data = 6}};
    TaskCost far[2];
    Schedule *s;
    ScheduleWaits waits;
    CHECK_OK(schedule_new(&s, SCHEDULE_GPIPE, NULL, (ScheduleShape){2, 1, 2}));
    CHECK_OK(schedule_waits(s, cost, NULL, &waits));
    CU_ASSERT_DOUBLE_EQUAL(waits.work, (2 * 2 + 2 * 9) / 2.0, NEAR);
    /* three times a forward of 2 and a backward of 3.5, of which two are work */
    CU_ASSERT_DOUBLE_EQUAL(waits.bubble, 3 * 5.5 - 11, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(waits.imbalance, (1 + 6 + 12 + 1) - 3 * 5.5, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(waits.messages, 0, NEAR);
    memcpy(far, cost, sizeof far);
    far[0].activations = (MessageCost){.copy = 0.25, .wire = 1};
    far[0].gradients = (MessageCost){.wire = 2};
    CHECK_OK(schedule_waits(s, far, NULL, &waits));
    CU_ASSERT_DOUBLE_EQUAL(waits.bubble, 3 * 5.5 - 11, NEAR);
    CU_ASSERT(waits.messages > 3);
    schedule_free(&s);
}

/* Parts of the longest chain add up to the makespan, for every kind and unequal costs. */
static void test_path(void)
{
    const TaskCost cost[] = {{.forward = 1, .backward_data = 1, .backward_weight = 1},
                             {.forward = 2, .backward_data = 2, .backward_weight = 2}};
    Schedule *s;
    CriticalPath path;
    CHECK_OK(schedule_new(&s, SCHEDULE_GPIPE, NULL, (ScheduleShape){2, 1, 4}));
    CHECK_OK(schedule_critical_path(s, cost, &path));
    /* the first forward and the last backward of stage 0, and all of stage 1 in between */
    CU_ASSERT_DOUBLE_EQUAL(path.work[0], 1 + 2, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(path.work[1], 4 * 6, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(path.messages, 0, NEAR);
    schedule_path_fini(&path);
    schedule_free(&s);
    for (int kind = 0; kind < SCHEDULE_FILE; ++kind)
        for (int stages = 1; stages <= 4; ++stages) {
            TaskCost mixed[16];
            int chunks = kind == SCHEDULE_ZB_V || kind == SCHEDULE_DUALPIPE_V ? 2
                         : kind == SCHEDULE_INTERLEAVED                       ? 3
                                                                              : 1;
            for (int k = 0; k < 16; ++k)
                mixed[k] = (TaskCost){.forward = 1 + k * 5 % 7,
                                      .backward_data = 1 + k % 3,
                                      .backward_weight = 2,
                                      .activations = {.copy = 0.25, .wire = k % 2 * 3},
                                      .gradients = {.copy = 0.5, .wire = 1}};
            CHECK_OK(schedule_new(&s, kind, NULL, (ScheduleShape){stages, chunks, 8}));
            CU_ASSERT_EQUAL(schedule_kind(s->name), kind);
            CHECK_OK(schedule_critical_path(s, mixed, &path));
            double sum = path.messages;
            for (int i = 0; i < stages; ++i) sum += path.work[i];
            expect(fabs(sum - path.makespan) < NEAR * path.makespan, s, "path");
            expect((path.messages > 0) == (stages > 1), s, "messages on the path");
            schedule_path_fini(&path);
            schedule_free(&s);
        }
}

/* A slow receiver holds the sender back: the third message waits until the first one's entry is
 * free. */
static void test_full_channel(void)
{
    const TaskCost cost[] = {{.forward = 1, .backward_data = 1},
                             {.forward = 10, .backward_data = 1}};
    Schedule *s;
    ScheduleReport r;
    CHECK_OK(schedule_new(&s, SCHEDULE_GPIPE, NULL, (ScheduleShape){2, 1, 4}));
    CHECK_OK(schedule_simulate(s, cost, &r));
    CU_ASSERT_EQUAL(r.channel_depth, 2);
    CU_ASSERT_EQUAL(s->task[0][7].kind, TASK_SEND_FORWARD);
    /* micro 2: entries are free from 1 on */
    CU_ASSERT_DOUBLE_EQUAL(r.span[0][5].end, 3, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.span[0][7].start, 4,
                           NEAR); /* micro 3: waits until micro 1 is received */
    CU_ASSERT_DOUBLE_EQUAL(r.span[0][7].end, 11, NEAR);
    schedule_report_fini(&r);
    schedule_free(&s);
}

static void test_forward(void)
{
    for (int p = 1; p <= 6; ++p)
        for (int v = 1; v <= 3; ++v)
            for (int m = 1; m <= 3 * p + 1; ++m) {
                Schedule *s;
                ScheduleReport r;
                CHECK_OK(schedule_forward(&s, (ScheduleShape){p, v, m}, NULL));
                CHECK_OK(schedule_simulate(s, NULL, &r));
                for (int i = 0; i < p; ++i) {
                    expect(count_kind(s, i, TASK_FORWARD) == v * m, s, "forwards");
                    expect(count_kind(s, i, TASK_BACKWARD) == 0, s, "backwards");
                }
                expect(r.channel_depth == 2, s, "depth");
                if (m % p == 0) expect(fabs(r.makespan - (v * m + p - 1)) < NEAR, s, "makespan");
                for (int c = 0; c < p * v; ++c) expect(r.live[c] == 1, s, "live");
                schedule_report_fini(&r);
                schedule_free(&s);
            }
}

/* CPU time, the better of two runs. */
static double simulate_s(int micro_batches)
{
    double best_s = 1e9;
    for (int turn = 0; turn < 2; ++turn) {
        Schedule *s;
        clock_t start = clock();
        CHECK_OK(
            schedule_new(&s, SCHEDULE_INTERLEAVED, NULL, (ScheduleShape){64, 8, micro_batches}));
        CHECK_OK(schedule_simulate(s, NULL, NULL));
        double took_s = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took_s < best_s) best_s = took_s;
        schedule_free(&s);
    }
    return best_s;
}

/* Four times as many micro-batches take about four times as long, not 16. */
static void test_size(void)
{
    double few_s = simulate_s(128), many_s = simulate_s(512);
    if (many_s >= 12 * few_s) printf("  took %.3f s, %.3f s\n", few_s, many_s);
    CU_ASSERT(many_s < 12 * few_s);
}

TEST_MAIN("schedule", {"properties of all kinds", test_properties},
          {"lists as in the papers", test_lists}, {"refused shapes", test_refused},
          {"costs", test_costs}, {"causes of waiting", test_waits}, {"longest chain", test_path},
          {"full channel", test_full_channel}, {"evaluation", test_forward},
          {"time grows with the schedule", test_size})
