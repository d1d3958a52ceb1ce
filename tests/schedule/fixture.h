/* For tests of schedules: makes a schedule from the text of a schedule file. */
#ifndef WEFT_SCHEDULE_FIXTURE_H
#define WEFT_SCHEDULE_FIXTURE_H

#include "schedule.h"
#include "schedules.def"

#include "harness.h"

/* Calls schedule_new with the path of a new file that contains `text`. The path ends in
 * "/s.csv". */
static inline Status from_text(Schedule **schedule, ScheduleShape shape, const char *text)
{
    char folder[] = "/tmp/weft-schedule-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char *path = mem_format("%s/s.csv", folder);
    FILE *out = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(text, out);
    fclose(out);
    Status st = schedule_new(schedule, SCHEDULE_FILE, path, shape);
    unlink(path);
    rmdir(folder);
    mem_free(&path);
    return st;
}

#endif
