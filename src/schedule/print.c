/* Draws a simulated schedule as text, with one line per stage. A task that is wide enough shows its
 * label: F, B or W and the micro-batch ("F0", "B3", "W3"). If stages have several chunks, the label
 * also has the chunk's index on its stage: "F0a", or "F0/30" if there are more than 26 chunks. A
 * task that is too narrow repeats its first letter. Dots are idle time. */
#include "private.h"

#include <math.h>
#include <string.h>

enum {
    /* bytes of a label */
    LABEL = 32,
    /* smallest width of the time axis in characters */
    COLUMNS_LEAST = 10
};

typedef struct Picture {
    const Schedule *schedule;
    const ScheduleReport *report;
    /* characters available for the time axis */
    int width;
    /* characters per unit of time */
    double scale;
    /* the current stage's tasks, as text, [width + 1]; owned */
    char *line;
} Picture;

static const char letters[TASK_KINDS] = {[TASK_FORWARD] = 'F',
                                         [TASK_BACKWARD] = 'B',
                                         [TASK_BACKWARD_DATA] = 'B',
                                         [TASK_BACKWARD_WEIGHT] = 'W'};

static int label_text(const Schedule *s, Task t, char *out)
{
    int local = schedule_index_on_stage(s, t.chunk);
    if (s->shape.chunks_per_stage == 1)
        return snprintf(out, LABEL, "%c%d", letters[t.kind], t.micro);
    if (s->shape.chunks_per_stage > 26)
        return snprintf(out, LABEL, "%c%d/%d", letters[t.kind], t.micro, local);
    return snprintf(out, LABEL, "%c%d%c", letters[t.kind], t.micro, 'a' + local);
}

double shortest_work(const Schedule *s, const ScheduleReport *r)
{
    double shortest = r->makespan;
    for (int i = 0; i < s->shape.stages; ++i)
        for (int k = 0; k < s->count[i]; ++k) {
            double time = r->span[i][k].end - r->span[i][k].start;
            if (!task_is_message(s->task[i][k].kind) && time > 0 && time < shortest)
                shortest = time;
        }
    return shortest;
}

/* Returns the scale at which the shortest task is as wide as the widest label and a blank. Returns
 * a smaller scale if the picture would otherwise be wider than `width` characters. */
static double fitting_scale(const Schedule *s, const ScheduleReport *r, int width)
{
    int widest = 0;
    char label[LABEL];
    for (int i = 0; i < s->shape.stages; ++i)
        for (int k = 0; k < s->count[i]; ++k) {
            if (task_is_message(s->task[i][k].kind)) continue;
            int length = label_text(s, s->task[i][k], label);
            if (length > widest) widest = length;
        }
    double most = width / r->makespan, wanted = (widest + 1) / shortest_work(s, r);
    return wanted < most ? wanted : most;
}

/* Returns the first column whose middle is not before `time`, at most p->width. */
static int column_of(const Picture *p, double time)
{
    int column = (int)ceil(time * p->scale - 0.5 - 1e-9);
    return column < 0 ? 0 : column < p->width ? column : p->width;
}

/* Writes a task to p->line. */
static void paint(const Picture *p, Task t, ScheduleSpan span)
{
    char label[LABEL];
    int from = column_of(p, span.start), to = column_of(p, span.end);
    int length = label_text(p->schedule, t, label);
    if (to - from <= length) {
        memset(p->line + from, letters[t.kind], (size_t)(to - from));
        return;
    }
    memset(p->line + from, '-', (size_t)(to - from));
    memcpy(p->line + from, label, (size_t)length);
    p->line[to - 1] = ' ';
}

static void print_stage(const Picture *p, int stage, int digits, FILE *out)
{
    memset(p->line, '.', (size_t)p->width);
    p->line[column_of(p, p->report->makespan)] = '\0';
    for (int k = 0; k < p->schedule->count[stage]; ++k)
        if (!task_is_message(p->schedule->task[stage][k].kind))
            paint(p, p->schedule->task[stage][k], p->report->span[stage][k]);
    size_t length = strlen(p->line);
    while (length > 0 && p->line[length - 1] == ' ') p->line[--length] = '\0';
    fprintf(out, "%*d  %s\n", digits, stage, p->line);
}

void schedule_print(const Schedule *schedule, const ScheduleReport *report, int columns, FILE *out)
{
    int digits = snprintf(NULL, 0, "%d", schedule->shape.stages - 1), head = digits + 2;
    int width = columns > head + COLUMNS_LEAST ? columns - head : COLUMNS_LEAST;
    if (report->makespan <= 0) return;
    Picture p = {.schedule = schedule,
                 .report = report,
                 .width = width,
                 .scale = fitting_scale(schedule, report, width),
                 .line = mem_new((size_t)width + 1)};
    for (int i = 0; i < schedule->shape.stages; ++i) print_stage(&p, i, digits, out);
    mem_free(&p.line);
}
