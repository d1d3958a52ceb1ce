/* The history of a run: starts that ended, were killed and began again, and where their time
 * went. */
#include "harness.h"
#include "observe/history.h"
#include "schedules.def"

#include <math.h>
#include <sys/stat.h>

static char folder[64];

static void begin(const char *ledger, const char *metrics)
{
    const char *const name[] = {"ledger.jsonl", "metrics.jsonl"}, *const text[] = {ledger, metrics};
    snprintf(folder, sizeof folder, "/tmp/weft-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    for (int i = 0; i < 2; ++i) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        FILE *out = text[i] ? fopen(path, "w") : NULL;
        if (!out) continue;
        fputs(text[i], out);
        fclose(out);
    }
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

/* A start of 20 steps that is killed after step 14, of which 10 are saved; one that goes on from
 * there; its line is torn; a third one from step 16, which ends after step 20. */
static const char three[] =
    "{\"start\":1000,\"startup_s\":2,\"step\":0,\"earlier_step\":0,\"earlier_end\":0}\n"
    "{\"start\":1050,\"startup_s\":4,\"step\":10,\"earlier_step\":14,\"earlier_end\":1030}\n"
    "{\"step\":16,\"st\n"
    "{\"start\":1100,\"startup_s\":3,\"step\":16,\"earlier_step\":16,\"earlier_end\":1090}\n"
    "{\"step\":20,\"steps\":4,\"ranks\":2,\"end\":1150,\"measured\":{\"compute\":8,\"eval\":1,"
    "\"checkpoint\":0.5,\"other\":1},\"rank\":[{\"rank\":0,\"compute\":7},{\"rank\":1,\"compute\":"
    "9}]}\n";

static void starts(void)
{
    LedgerHistory h;
    begin(three, NULL);
    CHECK_OK(ledger_read(folder, &h));
    CU_ASSERT_EQUAL_FATAL(h.starts, 3);
    CU_ASSERT(h.torn && h.parts == 4 && h.rank_count == 2 && h.ranks == 2 && h.steps == 4);
    CU_ASSERT_EQUAL(h.rank[1].part[1].measured_s, 9);
    CU_ASSERT(!h.start[0].complete && h.start[0].last_step == 14 && h.start[0].repeated == 4);
    CU_ASSERT(!h.start[1].complete && h.start[1].last_step == 16 && h.start[1].repeated == 0);
    CU_ASSERT(h.start[2].complete && h.start[2].last_step == 20 && h.start[2].repeated == 0);
    Goodput g = goodput_of(&h);
    CU_ASSERT(g.starts == 3 && g.killed == 2 && g.repeated == 4);
    /* 1002 to 1030 with 10 of 14 steps kept, 1054 to 1090, and 36 s */
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_KEPT], 20 + 36 + 36, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_REPEATED], 8, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_STARTUP], 2 + 4 + 3, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_EVAL], 4, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_CHECKPOINT], 2, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_BETWEEN], 20 + 10, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_OTHER], 50 - 3 - 42, 1e-9);
    /* from the first beginning to the last end */
    CU_ASSERT_DOUBLE_EQUAL(g.wall_s, 150, 1e-9);
    ledger_history_fini(&h);
    end();
}

/* The last start has no end yet: metrics.jsonl tells how far it has come. Lines of older programs
 * have no beginnings. */
static void running(void)
{
    LedgerHistory h;
    begin("{\"step\":5,\"steps\":5,\"ranks\":1,\"measured\":{\"compute\":2}}\n"
          "{\"start\":1000,\"startup_s\":2,\"step\":3,\"earlier_step\":5,\"earlier_end\":9}\n",
          "{\"step\":3,\"loss\":1}\n{\"step\":9,\"loss\":1}\n{\"step\":10,\"lo");
    MetricsEnd metrics = metrics_read_end(folder);
    CU_ASSERT_EQUAL(metrics.step, 9);
    CU_ASSERT(metrics.changed > 1.7e9);
    CHECK_OK(ledger_read(folder, &h));
    CU_ASSERT_EQUAL_FATAL(h.starts, 2);
    CU_ASSERT(h.start[0].complete && h.start[0].step_before == 0 && h.start[0].repeated == 2);
    CU_ASSERT(!h.start[1].complete && h.start[1].step_before == 3 && h.start[1].last_step == 9);
    CU_ASSERT_EQUAL(h.start[1].ended, metrics.changed);
    Goodput g = goodput_of(&h);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_REPEATED], 4, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.part_s[GOODPUT_BETWEEN], 0, 1e-9);
    ledger_history_fini(&h);
    end();
}

/* Lines that are written can be read; a torn line does not join the next one. */
static void written(void)
{
    LedgerHistory h;
    RankLedger rank[3] = {{.line_s[LEDGER_COMPUTE] = 1}, {.stage = 1}, {.stage = 2}};
    Ledger ledger = {.ranks = 3, .steps = 2, .line_s[LEDGER_COMPUTE] = 4, .rank = rank};
    Schedule *s;
    TaskCost cost[2] = {{.forward = 1, .backward_data = 2, .backward_weight = 3}, {.forward = 4}};
    double path_s[2] = {3, 1};
    const LedgerMemory memory = {1, 1e6, 2e6, 3e6};
    CHECK_OK(schedule_new(&s, SCHEDULE_GPIPE, NULL, (ScheduleShape){2, 1, 4}));
    ledger.schedule = s;
    ledger.cost = cost;
    ledger.path_s = path_s;
    ledger.late_s = 0.5;
    begin("{\"step\":9,\"ste", NULL);
    CHECK_OK(ledger_file_check(folder));
    CHECK_OK(ledger_write_start(
        folder, &(LedgerBegin){.step = 3, .startup_s = 0.5, .versions = "weft 1\nMPI \"2\""}));
    CHECK_OK(ledger_write_end(folder, 5, &ledger, &memory));
    CHECK_OK(ledger_read(folder, &h));
    CU_ASSERT(h.torn && h.starts == 1 && h.start[0].complete && h.start[0].step_before == 3);
    CU_ASSERT_EQUAL(h.part[LEDGER_COMPUTE].measured_s, 2);
    CU_ASSERT_EQUAL_FATAL(h.rank_count, 3);
    CU_ASSERT_EQUAL(h.rank[0].part[2].measured_s, 0.5);
    CU_ASSERT_EQUAL(h.rank[2].part[1].measured_s, 2);
    CU_ASSERT_STRING_EQUAL(h.versions, "weft 1\nMPI \"2\"");
    CU_ASSERT(h.memory.rank == 1 && h.memory.measured == 2e6 && h.memory.peak == 3e6);
    CU_ASSERT_STRING_EQUAL(h.schedule.name, "gpipe");
    CU_ASSERT(h.schedule.shape.stages == 2 && h.schedule.shape.micro_batches == 4);
    CU_ASSERT(h.schedule.costs == 6 && h.schedule.cost[2] == 3 && h.schedule.cost[3] == 4);
    CU_ASSERT_EQUAL_FATAL(h.path_parts, 3);
    CU_ASSERT_EQUAL(h.path[0].measured_s, 1.5);
    CU_ASSERT_STRING_EQUAL(h.path[2].name, "late replicas");
    schedule_free(&s);
    ledger_history_fini(&h);
    end();
    begin(NULL, NULL);
    CHECK_OK(ledger_read(folder, &h));
    CU_ASSERT_EQUAL(h.starts, 0);
    CU_ASSERT_EQUAL(metrics_read_end(folder).step, 0);
    end();
}

/* The line of 1000 ranks has at most 64 of them, and the busiest one. */
static void many_ranks(void)
{
    enum { RANKS = 1000, BUSIEST = 777 };
    static RankLedger rank[RANKS];
    LedgerHistory h;
    Ledger ledger = {.ranks = RANKS, .steps = 1, .rank = rank, .busiest = BUSIEST};
    begin(NULL, NULL);
    CHECK_OK(ledger_write_end(folder, 1, &ledger, &(LedgerMemory){0}));
    CHECK_OK(ledger_read(folder, &h));
    CU_ASSERT(h.rank_count > 60 && h.rank_count <= 64);
    bool found = false;
    for (int i = 0; i < h.rank_count; ++i) found = found || h.rank[i].part[0].measured_s == BUSIEST;
    CU_ASSERT_TRUE(found);
    ledger_history_fini(&h);
    end();
}

static void errors(void)
{
    static const struct {
        const char *text, *why;
    } row[] = {{"garbage\n", "line 1 of "},
               {"{\"step\":2,\"steps\":3,\"measured\":{}}\n", "the steps are not those of a run"},
               {"{\"step\":-1}\n", "the steps are not those of a run"},
               {"{}\n{\"measured\":{\"a\":\"b\"}}\n", "line 2 of "},
               {"{\"rank\":[1]}\n", "line 1 of "},
               {"{\"memory\":{\"rank\":-1}}\n", "-1 is no rank"},
               {"{\"schedule\":{\"stages\":2,\"chunks\":1,\"micros\":1,\"cost\":[1]}}\n",
                "three costs for each chunk"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        LedgerHistory h;
        begin(row[i].text, NULL);
        CHECK_FAILS(ledger_read(folder, &h), ERR_DATA, row[i].why);
        CU_ASSERT_EQUAL(h.starts, 0);
        end();
    }
}

TEST_MAIN("history", {"starts", starts}, {"running", running}, {"written", written},
          {"many ranks", many_ranks}, {"errors", errors})
