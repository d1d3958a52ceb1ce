/* Draws a simulated schedule as SVG. Each stage is a row, and time goes to the right. Each task
 * that computes is a box, with the number of its micro-batch if there is room for it; boxes of
 * later chunks are paler. Boxes that are too narrow to see are joined. A joined box of several
 * kinds of task is striped; in an HTML page it has a colour of its own instead. */
#include "private.h"

enum {
    /* px: space for the names of the stages */
    LEFT = 70,
    /* px: space for the title and the legend */
    TOP = 64,
    /* px: largest width of the time axis */
    WIDTH = 1400,
    /* px: width of the shortest task, unless the time axis would exceed WIDTH */
    UNIT = 30,
    /* px: space below the rows, and to the right of the time axis */
    BOTTOM = 16,
    /* px: width of a digit */
    DIGIT = 7,
    /* px: no box is joined to a group that is at least this wide */
    JOINED = 6
};
typedef enum Look { LOOK_FORWARD, LOOK_BACKWARD, LOOK_WEIGHT, LOOK_MIXED, LOOK_COUNT } Look;
static const char *const look_class[LOOK_COUNT] = {"f", "b", "w", "m"};
/* px: boxes narrower than this are joined */
static const double NARROW = 2.5;

typedef struct Box {
    /* left (x0) and right (x1) edge, in px; x1 <= x0: there is no box */
    double x0, x1;
    Look look;
    /* index of the chunk among its stage's chunks; if boxes are joined, the chunk of the first box,
     * or -1 if they have several looks */
    int chunk;
    /* micro-batch; -1: this is several boxes, joined */
    int micro;
} Box;

typedef struct Svg {
    const Schedule *schedule;
    const ScheduleReport *report;
    FILE *out;
    /* true: the picture is a part of an HTML page, which has the CSS */
    bool is_inline;
    /* px per unit of time */
    double scale;
    /* height of a stage's row, in px */
    int row_height;
    /* top of the current stage's row, in px */
    int y;
    /* the newest box that is complete but not written yet; it is to the left of `group` */
    Box last;
    /* the box, or group of joined boxes, to which the next box may be joined */
    Box group;
} Svg;

static void put_text(FILE *out, const char *text)
{
    for (; *text; ++text) switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

static Look look_of(TaskKind kind)
{
    return kind == TASK_FORWARD           ? LOOK_FORWARD
           : kind == TASK_BACKWARD_WEIGHT ? LOOK_WEIGHT
                                          : LOOK_BACKWARD;
}

/* Returns the opacity of a chunk's boxes, from 1 for the first chunk down to 0.4 for the last. */
static double opacity(const Svg *s, int chunk)
{
    int chunks = s->schedule->shape.chunks_per_stage;
    return chunk <= 0 ? 1 : 1 - 0.6 * chunk / (chunks - 1);
}

static void box_write(const Svg *s, Box b)
{
    if (b.x1 <= b.x0) return;
    double width = b.x1 - b.x0, gap = b.micro >= 0 && width > 8 ? 1 : 0;
    fprintf(s->out, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"",
            look_class[b.look], b.x0, s->y, width - gap,
            s->row_height - (s->row_height > 8 ? 2 : 1));
    if (b.chunk > 0) fprintf(s->out, " fill-opacity=\"%.2f\"", opacity(s, b.chunk));
    fputs("/>\n", s->out);
    int digits = snprintf(NULL, 0, "%d", b.micro);
    if (b.micro >= 0 && s->row_height >= 14 && width >= DIGIT * digits + 4)
        fprintf(s->out, "<text class=\"n\" x=\"%.1f\" y=\"%d\">%d</text>\n", (b.x0 + b.x1) / 2,
                s->y + s->row_height / 2 + 3, b.micro);
}

static bool boxes_touch(Box left, Box right)
{
    return right.x0 - left.x1 < 0.5;
}

static bool box_is_narrow(Box b)
{
    return b.x1 - b.x0 < NARROW;
}

/* Ends the current group. If s->last and the group touch, have the same look and chunk, and both
 * consist of joined boxes, extends s->last by the group. Otherwise writes s->last, and then makes
 * the group s->last. */
static void group_close(Svg *s)
{
    Box group = s->group;
    bool joined = group.micro < 0 && s->last.micro < 0;
    if (joined && boxes_touch(s->last, group) && s->last.look == group.look &&
        s->last.chunk == group.chunk) {
        s->last.x1 = group.x1;
        return;
    }
    box_write(s, s->last);
    s->last = group;
}

/* Adds a box to the current row. Narrow boxes that touch are joined into groups of about JOINED px.
 * Wider groups would hide how the tasks of a stage change in time. */
static void box_add(Svg *s, Box next)
{
    Box *group = &s->group;
    bool open = group->x1 > group->x0 && group->x1 - group->x0 < JOINED &&
                (group->micro < 0 || box_is_narrow(*group));
    if (!open || !box_is_narrow(next) || !boxes_touch(*group, next)) {
        group_close(s);
        *group = next;
        return;
    }
    if (group->look != next.look) {
        group->look = LOOK_MIXED;
        group->chunk = -1;
    }
    group->micro = -1;
    group->x1 = next.x1;
}

static void put_stage(Svg *s, int stage)
{
    s->y = TOP + stage * s->row_height;
    if (s->row_height >= 14 || stage % 8 == 0)
        fprintf(s->out, "<text class=\"s\" x=\"%d\" y=\"%d\">stage %d</text>\n", LEFT - 8,
                s->y + s->row_height / 2 + 3, stage);
    for (int k = 0; k < s->schedule->count[stage]; ++k) {
        Task t = s->schedule->task[stage][k];
        ScheduleSpan span = s->report->span[stage][k];
        if (task_is_message(t.kind)) continue;
        box_add(s, (Box){LEFT + span.start * s->scale, LEFT + span.end * s->scale, look_of(t.kind),
                         schedule_index_on_stage(s->schedule, t.chunk), t.micro});
    }
    group_close(s);
    box_write(s, s->last);
    s->group = s->last = (Box){0};
}

static void put_legend(const Svg *s)
{
    static const char *const name[LOOK_COUNT] = {"forward", "backward", "weights",
                                                 "several, too narrow to show apart"};
    for (int i = 0, x = LEFT; i < LOOK_COUNT; ++i) {
        if (i == LOOK_WEIGHT && !s->schedule->split) continue;
        const char *text = i == LOOK_BACKWARD && s->schedule->split ? "backward, data" : name[i];
        fprintf(s->out, "<rect class=\"%s\" x=\"%d\" y=\"36\" width=\"14\" height=\"14\"/>\n",
                look_class[i], x);
        fprintf(s->out, "<text x=\"%d\" y=\"47\">%s</text>\n", x + 20, text);
        x += 20 + 120;
    }
}

/* Begins a picture that is an SVG file, with the colours of the boxes. */
static void put_style(const Svg *s, double width, int height)
{
    fprintf(s->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
            "viewBox=\"0 0 %.0f %d\">\n",
            width, height, width, height);
    fputs("<style>text{font:12px sans-serif;fill:#222}.n{font-size:11px;text-anchor:middle}"
          ".s{text-anchor:end}.t{font-weight:bold}.f{fill:#7fb2e5}.b{fill:#f2a65e}.w{fill:#8ccf8c}."
          "m{fill:url(#m)}"
          "</style>\n"
          "<defs><pattern id=\"m\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f2a65e\"/>"
          "<rect width=\"3\" height=\"6\" fill=\"#7fb2e5\"/></pattern></defs>\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
          s->out);
}

static void put_head(const Svg *s, double width, int height)
{
    const ScheduleShape shape = s->schedule->shape;
    if (s->is_inline)
        fprintf(s->out,
                "<svg class=\"schedule\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.0f %d\" "
                "role=\"img\">\n",
                width, height, width, height);
    else
        put_style(s, width, height);
    fprintf(s->out, "<text class=\"t\" x=\"%d\" y=\"22\">", LEFT);
    put_text(s->out, s->schedule->name);
    fprintf(s->out, ": %d stages x %d chunks, %d micro-batches; bubble %.1f %%</text>\n",
            shape.stages, shape.chunks_per_stage, shape.micro_batches, 100 * s->report->bubble);
}

static void draw(const Schedule *schedule, const ScheduleReport *report, bool is_inline, FILE *out)
{
    Svg s = {.schedule = schedule, .report = report, .out = out, .is_inline = is_inline};
    int stages = schedule->shape.stages;
    double shortest = shortest_work(schedule, report), span = report->makespan;
    s.row_height = stages <= 32 ? 22 : stages <= 128 ? 14 : 4;
    s.scale = span > 0 ? WIDTH / span : 1;
    if (shortest > 0 && s.scale > UNIT / shortest) s.scale = UNIT / shortest;
    double width = LEFT + span * s.scale + BOTTOM;
    /* the title and the legend need this width */
    if (width < 760) width = 760;
    put_head(&s, width, TOP + stages * s.row_height + BOTTOM);
    put_legend(&s);
    for (int i = 0; i < stages; ++i) put_stage(&s, i);
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"none\" "
            "stroke=\"#bbb\"/>\n</svg>\n",
            LEFT, TOP, span * s.scale, stages * s.row_height);
}

void schedule_svg(const Schedule *schedule, const ScheduleReport *report, FILE *out)
{
    draw(schedule, report, false, out);
}

void schedule_svg_inline(const Schedule *schedule, const ScheduleReport *report, FILE *out)
{
    draw(schedule, report, true, out);
}
