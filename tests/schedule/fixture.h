/* Shared by tests of schedules: task lists written by hand, files of them, and text written to a
 * stream. */
#ifndef WEFT_SCHEDULE_FIXTURE_H
#define WEFT_SCHEDULE_FIXTURE_H

#include "schedule.h"
#include "schedules.def"

#include "harness.h"

/* schedule_new from a file that holds `text`; the file's path ends in "/s.csv". */
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
