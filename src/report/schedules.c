/* Writes the section about the schedule of a pipeline: its simulation with the measured times of
 * the chunks. */
#include "private.h"

/* BOXES_MAX: largest number of boxes (tasks) in a picture. STAGES_MAX: largest number of stages in
 * a picture. */
enum { BOXES_MAX = 1500, STAGES_MAX = 64 };

static TaskCost cost_of(const LedgerSchedule *s, int chunk)
{
    const double *cost = s->cost + (int64_t)3 * chunk;
    return (TaskCost){.forward = cost[0], .backward_data = cost[1], .backward_weight = cost[2]};
}

/* Writes a table of the milliseconds that each chunk needs for a micro-batch. */
static void put_chunks(FILE *out, const Schedule *schedule, const LedgerSchedule *s)
{
    fputs("<details><summary>milliseconds of a micro-batch by chunk</summary><table><tr>"
          "<th>chunk</th><th>stage</th><th>forward</th><th>backward, data</th>"
          "<th>backward, weights</th></tr>\n",
          out);
    for (int k = 0; k < schedule_chunks(schedule); ++k) {
        TaskCost cost = cost_of(s, k);
        fprintf(out, "<tr><td>%d</td><td>%d</td><td>%.3f</td><td>%.3f</td><td>%.3f</td></tr>\n", k,
                schedule_stage(schedule, k), 1e3 * cost.forward, 1e3 * cost.backward_data,
                1e3 * cost.backward_weight);
    }
    fputs("</table></details>\n", out);
}

/* Draws a schedule of this kind and shape, and writes the table of its chunks. ERR_CONFIG: kind and
 * shape do not fit. */
static Status put_picture(FILE *out, int kind, ScheduleShape shape, const LedgerSchedule *s)
{
    Schedule *schedule;
    ScheduleReport report;
    TRY(schedule_new(&schedule, kind, NULL, shape));
    TaskCost *cost = mem_new((size_t)schedule_chunks(schedule) * sizeof *cost);
    for (int k = 0; k < schedule_chunks(schedule); ++k) cost[k] = cost_of(s, k);
    Status st = schedule_simulate(schedule, cost, &report);
    if (st == OK) {
        schedule_svg_inline(schedule, &report, out);
        put_chunks(out, schedule, s);
        schedule_report_fini(&report);
    }
    mem_free(&cost);
    schedule_free(&schedule);
    return st;
}

static void put_schedule(FILE *out, const RunFiles *run)
{
    const LedgerSchedule *s = &run->ledger.schedule;
    ScheduleShape shape = s->shape;
    int kind = schedule_kind(s->name), boxes_per_micro = 3 * shape.stages * shape.chunks_per_stage;
    char *note = NULL;
    fputs("<figure><figcaption>", out);
    html_text(out, run->folder);
    fputs(": a step as simulated with the measured times of its chunks, without messages"
          "</figcaption>\n",
          out);
    /* a picture must have room for at least four micro-batches */
    if (kind < 0 || shape.stages > STAGES_MAX || boxes_per_micro > BOXES_MAX / 4) {
        note = mem_format("The schedule %s of %d stages and %d chunks is not drawn.", s->name,
                          shape.stages, shape.chunks_per_stage);
    } else {
        if (shape.micro_batches > BOXES_MAX / boxes_per_micro)
            shape.micro_batches = BOXES_MAX / boxes_per_micro;
        if (shape.micro_batches < s->shape.micro_batches)
            note = mem_format("Only %d of %d micro-batches are drawn.", shape.micro_batches,
                              s->shape.micro_batches);
        if (put_picture(out, kind, shape, s) != OK) {
            mem_free(&note);
            note = mem_text(fail_message());
        }
    }
    if (note) fputs("<p>", out);
    if (note) html_text(out, note);
    if (note) fputs("</p>", out);
    fputs("</figure>\n", out);
    mem_free(&note);
}

static bool is_shown(const RunFiles *run)
{
    return run->ledger.schedule.shape.stages > 1 && run->ledger.schedule.name;
}

void section_schedules(FILE *out, const RunFiles *run, int runs)
{
    bool any = false;
    for (int r = 0; r < runs; ++r) any = any || is_shown(&run[r]);
    if (!any) return;
    html_section(out, "Schedule");
    for (int r = 0; r < runs; ++r)
        if (is_shown(&run[r])) put_schedule(out, &run[r]);
    html_section_end(out);
}
