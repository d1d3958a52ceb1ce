/* Schedule files: valid ones give their lists; faults are named with file and line. */
#include "fixture.h"

#define HEAD "stage,task,chunk,micro\n"
static const ScheduleShape two = {2, 1, 1};

static void check_tasks(const Schedule *s, int stage, const TaskKind *kind, int count)
{
    CU_ASSERT_EQUAL_FATAL(s->count[stage], count);
    for (int i = 0; i < count; ++i) CU_ASSERT_EQUAL(s->task[stage][i].kind, kind[i]);
}

static const TaskKind first[] = {TASK_FORWARD, TASK_SEND_FORWARD, TASK_RECEIVE_BACKWARD,
                                 TASK_BACKWARD};
static const TaskKind second[] = {TASK_RECEIVE_FORWARD, TASK_FORWARD, TASK_BACKWARD,
                                  TASK_SEND_BACKWARD};

static void test_good(void)
{
    static const char *const text[] = {
        HEAD "0,forward,0,0\n0,backward,0,0\n1,forward,1,0\n1,backward,1,0\n",
        "# by hand\n\n stage , task,chunk,micro \r\n1, forward, 1, 0\r\n\n  # rows of stages mix\n"
        "0,forward,0,0\n1,backward,1,0\n0,backward,0,0",
        HEAD "0,forward,0,0\n0,send_forward,0,0\n1,receive_forward,1,0\n1,forward,1,0\n"
             "1,backward,1,0\n1,send_backward,1,0\n0,receive_backward,0,0\n0,backward,0,0\n",
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; ++i) {
        Schedule *s;
        CHECK_OK(from_text(&s, two, text[i]));
        CU_ASSERT_STRING_EQUAL(s->name, "file");
        CU_ASSERT(!s->split);
        check_tasks(s, 0, first, 4);
        check_tasks(s, 1, second, 4);
        CHECK_OK(schedule_simulate(s, NULL, NULL));
        schedule_free(&s);
    }
}

/* A built-in schedule, written to a file and read back, is unchanged. */
static void round_trip(int kind, ScheduleShape shape, const char *head)
{
    Schedule *s, *again;
    CHECK_OK(schedule_new(&s, kind, NULL, shape));
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    fputs(head, out);
    for (int i = 0; i < shape.stages; ++i)
        for (int k = 0; k < s->count[i]; ++k)
            fprintf(out, "%d,%s,%d,%d\n", i, task_names[s->task[i][k].kind], s->task[i][k].chunk,
                    s->task[i][k].micro);
    fclose(out);
    CHECK_OK(from_text(&again, shape, text));
    CU_ASSERT(again->split);
    for (int c = 0; c < schedule_chunks(s); ++c)
        CU_ASSERT(again->stage_of[c] == s->stage_of[c] &&
                  again->index_on_stage[c] == s->index_on_stage[c]);
    for (int i = 0; i < shape.stages; ++i) {
        CU_ASSERT_EQUAL_FATAL(again->count[i], s->count[i]);
        CU_ASSERT_EQUAL(memcmp(again->task[i], s->task[i], (size_t)s->count[i] * sizeof(Task)), 0);
    }
    /* allocated by open_memstream */
    free(text);
    schedule_free(&again);
    schedule_free(&s);
}

static void test_round_trip(void)
{
    round_trip(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){3, 1, 5}, HEAD);
    round_trip(SCHEDULE_ZB_V, (ScheduleShape){3, 2, 5}, "# a V\n stages , 0,1, 2,2,1 ,0\r\n" HEAD);
}

/* Whole backwards mixed with halves become two halves each, one after the other. */
static void test_mixed(void)
{
    static const TaskKind kind[] = {TASK_FORWARD, TASK_BACKWARD_DATA, TASK_BACKWARD_WEIGHT,
                                    TASK_FORWARD, TASK_BACKWARD_DATA, TASK_BACKWARD_WEIGHT};
    Schedule *s;
    CHECK_OK(from_text(&s, (ScheduleShape){1, 1, 2},
                       HEAD "0,forward,0,0\n0,backward,0,0\n0,forward,0,1\n0,backward_data,0,1\n"
                            "0,backward_weight,0,1\n"));
    CU_ASSERT(s->split);
    check_tasks(s, 0, kind, 6);
    schedule_free(&s);
}

static void test_bad(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "s.csv:1: the first line must be stage,task,chunk,micro"},
        {"# only a comment\n", "the first line must be"},
        {"0,forward,0,0\n", "s.csv:1: the first line must be"},
        {"stage,task,chunk\n", "s.csv:1: the first line must be"},
        {"stage,task,chunk,micro,time\n", "s.csv:1: the first line must be"},
        {HEAD "0,forward,0\n", "s.csv:2: a row has four fields"},
        {HEAD "\n# c\n0,forward,0,0,1\n", "s.csv:4: a row has four fields"},
        {HEAD "0,forwards,0,0\n", "s.csv:2: unknown task 'forwards'; did you mean forward"},
        {HEAD "0,xyzzy,0,0\n", "s.csv:2: unknown task 'xyzzy'; tasks are forward"},
        {HEAD "zero,forward,0,0\n", "s.csv:2: stage is 'zero', which is not a whole number"},
        {HEAD "0,forward,,0\n", "s.csv:2: chunk is '', which is not a whole number"},
        {HEAD "0,forward,0,-1\n", "s.csv:2: micro is '-1', which is not a whole number"},
        {HEAD "0,forward,0,0x1\n", "s.csv:2: micro is '0x1'"},
        {HEAD "0,forward,0,99999999999\n", "s.csv:2: micro is '99999999999'"},
        {HEAD "0,forward,0,0\n2,forward,0,0\n", "s.csv:3: stage 2 is outside 0..1"},
        {HEAD "0,forward,2,0\n", "s.csv:2: chunk 2 is outside 0..1"},
        {HEAD "0,forward,0,1\n", "s.csv:2: micro 1 is outside 0..0"},
        {HEAD "0,forward,1,0\n", "s.csv:2: chunk 1 is on stage 1, not on stage 0"},
        {"stages,1,0\n" HEAD "0,forward,0,0\n", "s.csv:3: chunk 0 is on stage 1, not on stage 0"},
        {"stages,0\n" HEAD,
         "s.csv:1: gives the stages of 1 chunks, but there are 2: 2 stages of 1"},
        {"stages,0,1,0\n" HEAD, "s.csv:1: gives the stages of 3 chunks, but there are 2"},
        {"# c\nstages,1,1\n" HEAD, "s.csv:2: stage 0 has 0 chunks in this line instead of 1"},
        {"stages,0,2\n" HEAD, "s.csv:1: stage 2 is outside 0..1"},
        {"stages,0,x\n" HEAD, "s.csv:1: stage is 'x', which is not a whole number"},
        {"stages,0,1\nstages,0,1\n" HEAD, "s.csv:2: a second line of stages"},
        {HEAD "stages,0,1\n", "s.csv:2: a row has four fields"},
        {HEAD "stages,0,1,0\n", "s.csv:2: stage is 'stages', which is not a whole number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        Schedule *s;
        CHECK_FAILS(from_text(&s, two, bad[i].text), ERR_CONFIG, bad[i].message);
        CU_ASSERT_PTR_NULL(s);
    }
    Schedule *s;
    CHECK_FAILS(schedule_new(&s, SCHEDULE_FILE, "/nowhere/s.csv", two), ERR_NOINPUT,
                "/nowhere/s.csv: cannot be opened");
    CHECK_FAILS(schedule_new(&s, SCHEDULE_FILE, "/", two), ERR_NOINPUT,
                "/: cannot be opened: it is a folder");
    CHECK_FAILS(schedule_new(&s, SCHEDULE_FILE, NULL, two), ERR_CONFIG, "no path");
}

/* If a file has some messages and lacks others, none are added, and the simulation names the
 * missing one. */
static void test_some_messages(void)
{
    Schedule *s;
    CHECK_OK(from_text(&s, two,
                       HEAD "0,forward,0,0\n0,send_forward,0,0\n0,backward,0,0\n1,forward,1,0\n"
                            "1,backward,1,0\n"));
    CHECK_FAILS(schedule_simulate(s, NULL, NULL), ERR_CONFIG,
                "stage 0, task 3 of 3 (backward, chunk 0, micro 0): comes before its inputs");
    schedule_free(&s);
}

TEST_MAIN("schedule files", {"good files", test_good}, {"round trip", test_round_trip},
          {"whole and in halves", test_mixed}, {"bad files", test_bad},
          {"only some messages", test_some_messages})
