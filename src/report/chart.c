/* Writes charts of lines and of bars as SVG into the page, and a table for each chart of lines. */
#include "private.h"

#include <math.h>
#include <string.h>

/* Sizes of charts of lines, in pixels. TICKS: approximate number of ticks of an axis. */
enum { WIDTH = 900, HEIGHT = 260, LEFT = 64, RIGHT = 24, TOP = 10, BOTTOM = 28, TICKS = 5 };
enum { PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM };
/* TABLE_ROWS: largest number of values in the table of a line. MARKS_MAX: a line with more points
 * has no marks. BAR_HEIGHT, BAR_GAP, BAR_LEFT: sizes of charts of bars, in pixels. */
enum { TABLE_ROWS = 60, MARKS_MAX = 30, BAR_HEIGHT = 22, BAR_GAP = 8, BAR_LEFT = 170 };

/* The ranges of the two axes: x0 to x1 and y0 to y1. */
typedef struct Axes {
    double x0, x1, y0, y1;
} Axes;

static double place_x(const Axes *a, double x)
{
    return LEFT + PLOT_WIDTH * (x - a->x0) / (a->x1 - a->x0);
}

static double place_y(const Axes *a, double y)
{
    return TOP + PLOT_HEIGHT * (1 - (y - a->y0) / (a->y1 - a->y0));
}

/* Returns the distance of ticks: 1, 2 or 5 times a power of ten, chosen so that a range has about
 * TICKS ticks. */
static double tick_step(double range)
{
    double raw = range / TICKS, power = pow(10, floor(log10(raw))), part = raw / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

/* Adds a margin to the range of values. The range becomes at least 1e-9 of the largest absolute
 * value, so that adding the distance of ticks to a value changes it. This holds even if all values
 * are nearly equal. Before that, the ends of the range are limited to -VALUE_MAX and VALUE_MAX,
 * because the difference of larger values could overflow. Larger values are drawn outside of the
 * picture. */
static void widen_values(Axes *a)
{
    static const double VALUE_MAX = 4e307, VALUE_MIN = 1e-300, RANGE_MIN = 1e-9;
    a->y0 = fmin(fmax(a->y0, -VALUE_MAX), VALUE_MAX);
    a->y1 = fmin(fmax(a->y1, -VALUE_MAX), VALUE_MAX);
    double most = fmax(fabs(a->y0), fabs(a->y1));
    double margin = a->y1 > a->y0 ? fmax(0.05 * (a->y1 - a->y0), RANGE_MIN * most)
                    : most > 0    ? 0.1 * most
                                  : 1;
    margin = fmax(margin, VALUE_MIN);
    a->y0 -= margin;
    a->y1 += margin;
}

static Axes axes_of(const ChartLine *line, int count)
{
    Axes a = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int l = 0; l < count; ++l)
        for (int i = 0; i < line[l].series->count; ++i) {
            a.x0 = fmin(a.x0, line[l].series->step[i]);
            a.x1 = fmax(a.x1, line[l].series->step[i]);
            a.y0 = fmin(a.y0, line[l].series->value[i]);
            a.y1 = fmax(a.y1, line[l].series->value[i]);
        }
    if (a.x1 <= a.x0) a.x1 = a.x0 + 1;
    widen_values(&a);
    return a;
}

static void put_grid(FILE *out, const Axes *a)
{
    double step = tick_step(a->y1 - a->y0);
    for (double y = ceil(a->y0 / step) * step; y <= a->y1; y += step)
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" />"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                LEFT, WIDTH - RIGHT, place_y(a, y), place_y(a, y), LEFT - 6, place_y(a, y) + 4,
                fabs(y) < step * 1e-9 ? 0.0 : y);
    step = fmax(tick_step(a->x1 - a->x0), 1);
    for (double x = ceil(a->x0 / step) * step; x <= a->x1; x += step)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                place_x(a, x), HEIGHT - 8, x);
}

/* Writes the points of a line. If several points are in one column of pixels, writes only the
 * first, the least, the greatest and the last of them. */
static void put_points(FILE *out, const Axes *a, const Series *s)
{
    for (int i = 0; i < s->count;) {
        int column = (int)place_x(a, s->step[i]), end = i, least = i, most = i;
        for (; end < s->count && (int)place_x(a, s->step[end]) == column; ++end) {
            if (s->value[end] < s->value[least]) least = end;
            if (s->value[end] > s->value[most]) most = end;
        }
        const int kept[] = {i, least < most ? least : most, least < most ? most : least, end - 1};
        for (int k = 0; k < 4; ++k)
            if (k == 0 || kept[k] > kept[k - 1])
                fprintf(out, "%.1f,%.1f ", place_x(a, s->step[kept[k]]),
                        place_y(a, s->value[kept[k]]));
        i = end;
    }
}

/* Marks the points of a line that has at most MARKS_MAX points. */
static void put_marks(FILE *out, const Axes *a, const Series *s, int colour)
{
    for (int i = 0; i < s->count && s->count <= MARKS_MAX; ++i)
        fprintf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" />",
                colour % CHART_COLOURS, place_x(a, s->step[i]), place_y(a, s->value[i]));
}

/* Returns the CSS class for the dashes of line l of a chart, with a blank before it; "" for a solid
 * line. */
static const char *dashes(int l)
{
    static const char *const class[] = {"", " dash", " dot"};
    return class[l / CHART_COLOURS % 3];
}

static void put_legend(FILE *out, const ChartLine *line, int count)
{
    fputs("<p>", out);
    for (int l = 0; l < count; ++l) {
        fprintf(out,
                "<svg width=\"26\" height=\"10\" aria-hidden=\"true\"><line class=\"l s%d%s\" "
                "x1=\"0\" x2=\"24\" y1=\"5\" y2=\"5\" /></svg> ",
                l % CHART_COLOURS, dashes(l));
        html_text(out, line[l].name);
        fputs(" &#160; ", out);
    }
    fputs("</p>\n", out);
}

/* Writes a table of each line: at most TABLE_ROWS evenly spread values, including the first and the
 * last. */
static void put_table(FILE *out, const ChartLine *line, int count)
{
    fputs("<details><summary>values</summary>", out);
    for (int l = 0; l < count; ++l) {
        const Series *s = line[l].series;
        int rows = s->count < TABLE_ROWS ? s->count : TABLE_ROWS;
        fputs("<table><tr><th>step</th><th>", out);
        html_text(out, line[l].name);
        fputs("</th></tr>\n", out);
        for (int i = 0; i < rows; ++i) {
            int at = rows > 1 ? (int)((int64_t)i * (s->count - 1) / (rows - 1)) : 0;
            fprintf(out, "<tr><td>%.0f</td><td>%.6g</td></tr>\n", s->step[at], s->value[at]);
        }
        fputs("</table>\n", out);
    }
    fputs("</details>", out);
}

static void begin_figure(FILE *out, const char *title, int width, int height)
{
    fputs("<figure><figcaption>", out);
    html_text(out, title);
    fprintf(
        out,
        "</figcaption>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>",
        width, height, width, height);
    html_text(out, title);
    fputs("</title>\n", out);
}

void chart_lines(FILE *out, const char *title, const ChartLine *line, int count)
{
    Axes a = axes_of(line, count);
    begin_figure(out, title, WIDTH, HEIGHT);
    put_grid(out, &a);
    for (int l = 0; l < count; ++l) {
        fprintf(out, "<polyline class=\"l s%d%s\" points=\"", l % CHART_COLOURS, dashes(l));
        put_points(out, &a, line[l].series);
        fputs("\" />\n", out);
        put_marks(out, &a, line[l].series, l);
    }
    fputs("</svg>\n", out);
    if (count > 1) put_legend(out, line, count);
    put_table(out, line, count);
    fputs("</figure>\n", out);
}

static void put_bar(FILE *out, double y, const double *value, const char *const *part, int parts,
                    double scale)
{
    double x = BAR_LEFT;
    for (int k = 0; k < parts; ++k) {
        double width = scale * fmax(value[k], 0);
        fprintf(out,
                "<rect class=\"f%d%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"><title>",
                k % CHART_COLOURS, k >= CHART_COLOURS ? " half" : "", x, y, width, BAR_HEIGHT);
        html_text(out, part[k]);
        fputs("</title></rect>", out);
        x += width;
    }
    fputc('\n', out);
}

void chart_bars(FILE *out, const char *title, const char *const *row, int rows,
                const char *const *part, int parts, const double *value)
{
    double most = 0;
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int k = 0; k < parts; ++k) sum += fmax(value[(int64_t)r * parts + k], 0);
        most = fmax(most, sum);
    }
    double scale = most > 0 ? (WIDTH - BAR_LEFT - RIGHT) / most : 0;
    begin_figure(out, title, WIDTH, rows * (BAR_HEIGHT + BAR_GAP));
    for (int r = 0; r < rows; ++r) {
        double y = r * (BAR_HEIGHT + BAR_GAP);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", BAR_LEFT - 8, y + 15);
        html_text(out, row[r]);
        fputs("</text>", out);
        put_bar(out, y, value + (int64_t)r * parts, part, parts, scale);
    }
    fputs("</svg>\n<p>", out);
    for (int k = 0; k < parts; ++k) {
        fprintf(out,
                "<svg width=\"14\" height=\"12\" aria-hidden=\"true\"><rect class=\"f%d%s\" "
                "width=\"12\" height=\"12\" /></svg> ",
                k % CHART_COLOURS, k >= CHART_COLOURS ? " half" : "");
        html_text(out, part[k]);
        fputs(" &#160; ", out);
    }
    fputs("</p></figure>\n", out);
}
