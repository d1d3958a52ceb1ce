/* Target: a schedule file, which is simulated if it is valid. The first byte gives the pipeline's
 * shape. */
#include "fuzz.h"
#include "schedule.h"
#include "schedules.def"

static void use(const Schedule *schedule, FILE *nowhere)
{
    ScheduleReport report;
    if (schedule_simulate(schedule, NULL, &report) != OK) return;
    schedule_print(schedule, &report, 80, nowhere);
    for (int stage = 0; stage < schedule->shape.stages; ++stage) {
        Moves moves;
        if (schedule_moves(&moves, schedule, report.channel_depth, stage) != OK)
            die("a schedule that runs has no moves: %s", fail_message());
        mem_free(&moves.move);
    }
    schedule_report_fini(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    Schedule *schedule = NULL;
    if (size < 1) return 0;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) die("/dev/null");
    ScheduleShape shape = {1 + data[0] % 4, 1 + data[0] / 4 % 3, 1 + data[0] / 12 % 8};
    if (schedule_new(&schedule, SCHEDULE_FILE, fuzz_file(data + 1, size - 1), shape) == OK) {
        use(schedule, nowhere);
        fuzz_took(OK);
    }
    schedule_free(&schedule);
    return 0;
}
