/* Schedules that can never run are refused, and the message names stage and task: valid schedules
 * with one change, and small ones written by hand. */
#include "fixture.h"

static Schedule *good(int kind, int stages, int chunks, int micro_batches)
{
    Schedule *s;
    CHECK_OK(schedule_new(&s, kind, NULL, (ScheduleShape){stages, chunks, micro_batches}));
    return s;
}

static int find(const Schedule *s, int stage, TaskKind kind, int micro)
{
    for (int i = 0; i < s->count[stage]; ++i)
        if (s->task[stage][i].kind == kind && s->task[stage][i].micro == micro) return i;
    CU_FAIL_FATAL("no such task");
    return -1;
}

static void swap(Schedule *s, int stage, int a, int b)
{
    Task t = s->task[stage][a];
    s->task[stage][a] = s->task[stage][b];
    s->task[stage][b] = t;
}

static void drop(Schedule *s, int stage, int place)
{
    Task *list = s->task[stage];
    memmove(list + place, list + place + 1, (size_t)(--s->count[stage] - place) * sizeof *list);
}

static void insert(Schedule *s, int stage, int place, Task task)
{
    Task *list = mem_resize(s->task[stage], (size_t)(s->count[stage] + 1) * sizeof *list);
    memmove(list + place + 1, list + place, (size_t)(s->count[stage]++ - place) * sizeof *list);
    list[place] = task;
    s->task[stage] = list;
}

/* Expects a refusal that names all three, and an empty report. */
static void refused(Schedule *s, const char *stage, const char *task, const char *why)
{
    ScheduleReport r;
    CHECK_FAILS(schedule_simulate(s, NULL, &r), ERR_CONFIG, stage);
    CHECK_FAILS(schedule_simulate(s, NULL, NULL), ERR_CONFIG, task);
    CHECK_FAILS(schedule_simulate(s, NULL, NULL), ERR_CONFIG, why);
    CU_ASSERT_PTR_NULL(r.live);
    CU_ASSERT_PTR_NULL(r.span);
    schedule_free(&s);
}

static void test_dropped(void)
{
    static const TaskKind kind[] = {TASK_FORWARD,         TASK_BACKWARD,
                                    TASK_SEND_FORWARD,    TASK_RECEIVE_BACKWARD,
                                    TASK_RECEIVE_FORWARD, TASK_SEND_BACKWARD};
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; ++i) {
        Schedule *s = good(SCHEDULE_1F1B, 4, 1, 6);
        drop(s, 1, find(s, 1, kind[i], 5));
        refused(s, "stage 1", "micro 5", "");
    }
    Schedule *s = good(SCHEDULE_1F1B, 4, 1, 6);
    drop(s, 1, find(s, 1, TASK_SEND_FORWARD, 2));
    refused(s, "stage 1", "send_forward of chunk 1, micro 2", "lack");
    s = good(SCHEDULE_ZERO_BUBBLE, 4, 1, 6);
    drop(s, 2, find(s, 2, TASK_BACKWARD_WEIGHT, 5));
    refused(s, "stage 2", "backward_weight of chunk 2, micro 5", "lack");
    s = good(SCHEDULE_1F1B, 1, 1, 3);
    drop(s, 0, find(s, 0, TASK_BACKWARD, 2));
    refused(s, "stage 0", "backward of chunk 0, micro 2", "lack");
}

static void test_doubled(void)
{
    static const TaskKind kind[] = {TASK_FORWARD,         TASK_BACKWARD,
                                    TASK_SEND_FORWARD,    TASK_RECEIVE_BACKWARD,
                                    TASK_RECEIVE_FORWARD, TASK_SEND_BACKWARD};
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; ++i) {
        Schedule *s = good(SCHEDULE_INTERLEAVED, 4, 1, 6);
        int place = find(s, 2, kind[i], 3);
        insert(s, 2, place, s->task[2][place]);
        char *name = mem_format("(%s, chunk 2, micro 3)", task_names[kind[i]]);
        refused(s, "stage 2, task", name, "repeats an earlier task");
        mem_free(&name);
    }
}

static void test_swapped(void)
{
    Schedule *s = good(SCHEDULE_1F1B, 4, 1, 6);
    int place = find(s, 2, TASK_FORWARD, 4);
    swap(s, 2, place, place - 1);
    refused(s, "stage 2", "(forward, chunk 2, micro 4)", "before its inputs");

    s = good(SCHEDULE_1F1B, 4, 1, 6);
    place = find(s, 2, TASK_FORWARD, 4);
    swap(s, 2, place, place + 1);
    refused(s, "stage 2", "(send_forward, chunk 2, micro 4)", "before the forward pass");

    s = good(SCHEDULE_1F1B, 4, 1, 6);
    place = find(s, 2, TASK_BACKWARD, 4);
    swap(s, 2, place, place + 1);
    refused(s, "stage 2", "(send_backward, chunk 2, micro 4)", "before the backward pass");

    s = good(SCHEDULE_1F1B, 1, 1, 6);
    swap(s, 0, 4, 5);
    refused(s, "stage 0, task 5 of 12", "(backward, chunk 0, micro 2)", "before the forward pass");

    s = good(SCHEDULE_ZERO_BUBBLE, 4, 1, 6);
    swap(s, 0, find(s, 0, TASK_BACKWARD_DATA, 3), find(s, 0, TASK_BACKWARD_WEIGHT, 3));
    refused(s, "stage 0", "(backward_weight, chunk 0, micro 3)", "before the backward pass");
}

static void test_order(void)
{
    Schedule *s = good(SCHEDULE_GPIPE, 1, 1, 4);
    swap(s, 0, 5, 6);
    refused(s, "stage 0", "task 6 of 8 (backward, chunk 0, micro 2)", "in the order of the micro");

    s = good(SCHEDULE_ZERO_BUBBLE, 4, 1, 6);
    swap(s, 3, find(s, 3, TASK_BACKWARD_WEIGHT, 4), find(s, 3, TASK_BACKWARD_WEIGHT, 5));
    refused(s, "stage 3", "(backward_weight, chunk 3, micro 5)", "in the order of the micro");
}

static void test_mixed(void)
{
    Schedule *s = good(SCHEDULE_1F1B, 2, 1, 3);
    insert(s, 1, find(s, 1, TASK_BACKWARD, 1) + 1, (Task){TASK_BACKWARD_WEIGHT, 1, 1});
    refused(s, "stage 1", "(backward_weight, chunk 1, micro 1)", "repeats an earlier task");

    s = good(SCHEDULE_1F1B, 2, 1, 3);
    insert(s, 1, find(s, 1, TASK_BACKWARD, 1), (Task){TASK_BACKWARD_DATA, 1, 1});
    refused(s, "stage 1", "(backward, chunk 1, micro 1)", "repeats an earlier task");

    /* Whole backward for one micro-batch and halves for another are valid. */
    CHECK_OK(from_text(&s, (ScheduleShape){1, 1, 2},
                       "stage,task,chunk,micro\n0,forward,0,0\n0,backward,0,0\n0,forward,0,1\n"
                       "0,backward_data,0,1\n0,backward_weight,0,1\n"));
    CHECK_OK(schedule_simulate(s, NULL, NULL));
    CU_ASSERT(s->split);
    schedule_free(&s);
}

static void test_place(void)
{
    static const struct {
        Task task;
        const char *why;
    } bad[] = {
        {{TASK_FORWARD, 1, 0}, "on another stage"},
        {{TASK_FORWARD, 4, 0}, "no such chunk"},
        {{TASK_FORWARD, -1, 0}, "no such chunk"},
        {{TASK_FORWARD, 0, 6}, "no such micro-batch"},
        {{TASK_FORWARD, 0, -1}, "no such micro-batch"},
        {{TASK_RECEIVE_FORWARD, 0, 0}, "no such message"},
        {{TASK_SEND_BACKWARD, 0, 0}, "no such message"},
        {{TASK_KINDS, 0, 0}, "no such task"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        Schedule *s = good(SCHEDULE_1F1B, 4, 1, 6);
        insert(s, 0, 3, bad[i].task);
        refused(s, "stage 0", "task 4 of ", bad[i].why);
    }
    Schedule *s = good(SCHEDULE_INTERLEAVED, 1, 2, 3);
    insert(s, 0, 3, (Task){TASK_SEND_FORWARD, 0, 0});
    refused(s, "stage 0", "task 4 of ", "no such message");

    CHECK_OK(schedule_forward(&s, (ScheduleShape){2, 1, 3}, NULL));
    insert(s, 0, s->count[0], (Task){TASK_BACKWARD, 0, 0});
    refused(s, "stage 0", "(backward, chunk 0, micro 0)", "for evaluation");
}

/* With one stage, chunk 1 needs chunk 0's work and passes gradients to it without a message. */
static void test_one_stage(void)
{
    Schedule *s = good(SCHEDULE_INTERLEAVED, 1, 2, 1);
    swap(s, 0, 0, 1);
    refused(s, "stage 0, task 1 of 4", "(forward, chunk 1, micro 0)", "before its inputs");
    s = good(SCHEDULE_INTERLEAVED, 1, 2, 1);
    swap(s, 0, 2, 3);
    refused(s, "stage 0, task 3 of 4", "(backward, chunk 0, micro 0)", "before its inputs");
}

/* Each list is valid by itself; together they deadlock. */
static void test_dead_end(void)
{
    Schedule *s;
    CHECK_OK(from_text(&s, (ScheduleShape){2, 1, 2},
                       "stage,task,chunk,micro\n"
                       "0,forward,0,0\n0,backward,0,0\n0,forward,0,1\n0,backward,0,1\n"
                       "1,forward,1,0\n1,forward,1,1\n1,backward,1,0\n1,backward,1,1\n"));
    refused(s, "stage 0, task 3 of 8 (receive_backward, chunk 0, micro 0) waits for stage 1",
            "task 3 of 8 (receive_forward, chunk 1, micro 1)", "deadlock");

    /* A cycle of three: stage 0 first needs chunk 3's inputs from stage 2, stage 1 needs both
     * micro-batches before it sends. */
    CHECK_OK(from_text(&s, (ScheduleShape){3, 2, 2},
                       "stage,task,chunk,micro\n"
                       "0,forward,0,0\n0,forward,3,0\n0,forward,0,1\n0,forward,3,1\n"
                       "0,backward,3,0\n0,backward,3,1\n0,backward,0,0\n0,backward,0,1\n"
                       "1,forward,1,0\n1,forward,1,1\n1,forward,4,0\n1,forward,4,1\n"
                       "1,backward,4,0\n1,backward,4,1\n1,backward,1,0\n1,backward,1,1\n"
                       "2,forward,2,0\n2,forward,2,1\n2,forward,5,0\n2,forward,5,1\n"
                       "2,backward,5,0\n2,backward,5,1\n2,backward,2,0\n2,backward,2,1\n"));
    drop(s, 1, find(s, 1, TASK_SEND_FORWARD, 0));
    insert(s, 1, find(s, 1, TASK_FORWARD, 1) + 1, (Task){TASK_SEND_FORWARD, 1, 0});
    refused(s, "stage 0, task 3 of ", "(receive_forward, chunk 3, micro 0) waits for stage 2",
            "(receive_forward, chunk 2, micro 0)");
}

/* The order of messages: a stage always receives the oldest message sent. */
static void test_crossed(void)
{
    Schedule *s = good(SCHEDULE_GPIPE, 2, 1, 4);
    /* the forwards of micro-batches 1 and 2 */
    swap(s, 0, 2, 4);
    /* the messages of both */
    swap(s, 0, 3, 5);
    refused(s, "stage 1", "(receive_forward, chunk 1, micro 1)", "which is of micro 2");
}

static void add_rows(FILE *out, const char *task, int chunk, int micro_batches)
{
    for (int i = 0; i < micro_batches; ++i)
        fprintf(out, "%d,%s,%d,%d\n", chunk % 2, task, chunk, i);
}

/* All micro-batches chunk by chunk: stage 1 sends its first outputs back while stage 0 still sends.
 * The d + 1 messages it has received and the d in the channel must be all, so micro_batches <= 2 d
 * + 1. */
static void test_depth(void)
{
    for (int micro_batches = 1; micro_batches <= 24; ++micro_batches) {
        char *text;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        fputs("stage,task,chunk,micro\n", out);
        for (int c = 0; c < 4; ++c) add_rows(out, "forward", c, micro_batches);
        for (int c = 3; c >= 0; --c) add_rows(out, "backward", c, micro_batches);
        fclose(out);
        Schedule *s;
        ScheduleReport r;
        CHECK_OK(from_text(&s, (ScheduleShape){2, 2, micro_batches}, text));
        CHECK_OK(schedule_simulate(s, NULL, &r));
        CU_ASSERT_EQUAL(r.channel_depth, micro_batches / 2 > 2 ? micro_batches / 2 : 2);
        schedule_report_fini(&r);
        schedule_free(&s);
        /* allocated by open_memstream */
        free(text);
    }
}

TEST_MAIN("broken schedules", {"dropped tasks", test_dropped}, {"doubled tasks", test_doubled},
          {"swapped tasks", test_swapped}, {"backwards out of order", test_order},
          {"whole and in halves", test_mixed}, {"tasks out of place", test_place},
          {"one stage", test_one_stage}, {"dead ends", test_dead_end},
          {"crossed messages", test_crossed}, {"depth", test_depth})
