/* Writes the page of a report, and its first sections: outcome and curves. */
#include "private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- outcome ---- */

/* The columns of the outcome. */
static const struct Column {
    /* key of metrics.jsonl */
    const char *key;
    /* heading of the column */
    const char *title;
    /* value that is shown: 1 the greatest, -1 the least, 0 the last */
    int best;
} columns[] = {{"loss", "last loss", 0},
               {"eval_loss", "least eval_loss", -1},
               {"top1", "best top1", 1},
               {"eval_auc", "best eval_auc", 1},
               {"ap", "best ap", 1},
               {"eval_skill", "best eval_skill", 1},
               {"eval_iou", "best eval_iou", 1},
               {"samples_per_s", "samples/s", 0},
               {"tokens_per_s", "tokens/s", 0}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static double column_value(const Series *s, int best)
{
    double value = s->value[s->count - 1];
    for (int i = 0; i < s->count && best; ++i)
        if (best * s->value[i] > best * value) value = s->value[i];
    return value;
}

/* Returns the last step that is known: the last step of any series or of the last start in
 * ledger.jsonl, whichever is larger. */
static double last_step(const RunFiles *run)
{
    double last = 0;
    for (int i = 0; i < run->series_count; ++i)
        if (run->series[i].count > 0)
            last = fmax(last, run->series[i].step[run->series[i].count - 1]);
    if (run->ledger.starts > 0)
        last = fmax(last, (double)run->ledger.start[run->ledger.starts - 1].last_step);
    return last;
}

/* Returns whether metrics.jsonl of at least one run has the key, perhaps without a finite value. */
static bool any_has(const RunFiles *run, int runs, const char *key)
{
    for (int r = 0; r < runs; ++r)
        if (run_series(&run[r], key)) return true;
    return false;
}

static void put_torn(FILE *out, const RunFiles *run, bool torn, const char *name)
{
    if (!torn) return;
    fputs("<p>", out);
    html_text(out, run->folder);
    fprintf(out, "/%s: a line is torn and left out</p>\n", name);
}

/* Names each key of a run that has null values, with the number of lines in which its value is
 * null. */
static void put_nulls(FILE *out, const RunFiles *run)
{
    for (int i = 0; i < run->series_count; ++i) {
        const Series *s = &run->series[i];
        if (s->nulls == 0) continue;
        fputs("<p>", out);
        html_text(out, run->folder);
        fputs(": ", out);
        html_text(out, s->key);
        fprintf(out, " has no finite value in %d line%s of metrics.jsonl</p>\n", s->nulls,
                s->nulls == 1 ? "" : "s");
    }
}

/* Writes a cell of the outcome. s: the series of the column's key, or NULL. */
static void put_value(FILE *out, const Series *s, int best)
{
    if (s && best == 0 && s->ends_null)
        fputs("<td>not finite</td>", out);
    else if (s && s->count > 0)
        fprintf(out, "<td>%.6g</td>", column_value(s, best));
    else
        fputs("<td>-</td>", out);
}

static void put_outcome(FILE *out, const RunFiles *run, int runs)
{
    html_section(out, "Outcome");
    fputs("<table><tr><th>run</th><th>last step</th>", out);
    for (int c = 0; c < COLUMNS; ++c)
        if (any_has(run, runs, columns[c].key)) fprintf(out, "<th>%s</th>", columns[c].title);
    fputs("</tr>\n", out);
    for (int r = 0; r < runs; ++r) {
        fputs("<tr><td>", out);
        html_text(out, run[r].folder);
        fprintf(out, "</td><td>%.0f</td>", last_step(&run[r]));
        for (int c = 0; c < COLUMNS; ++c)
            if (any_has(run, runs, columns[c].key))
                put_value(out, run_series(&run[r], columns[c].key), columns[c].best);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    for (int r = 0; r < runs; ++r) {
        put_torn(out, &run[r], run[r].metrics_torn, "metrics.jsonl");
        put_torn(out, &run[r], run[r].ledger.torn, "ledger.jsonl");
        put_nulls(out, &run[r]);
    }
    html_section_end(out);
}

/* ---- curves ---- */

static const char TIME_PREFIX[] = "time_";

static bool is_time(const char *key)
{
    return strncmp(key, TIME_PREFIX, sizeof TIME_PREFIX - 1) == 0;
}

/* Returns true if the key gets a chart of its own. Keys that show nothing as a curve get none, and
 * the fractions of the time share one chart for each run. */
static bool is_curve(const char *key)
{
    static const char *const left_out[] = {"epoch", "samples", "tokens", "seconds"};
    if (is_time(key)) return false;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; ++i)
        if (strcmp(key, left_out[i]) == 0) return false;
    return true;
}

/* Writes the chart of a key that run number `from` has, with a line for this run and for each later
 * run. If an earlier run has the key, the chart has been written before, and nothing is written. */
static void put_curve(FILE *out, const RunFiles *run, int runs, int from, const char *key)
{
    ChartLine *line = mem_new((size_t)runs * sizeof *line);
    int count = 0;
    bool done = any_has(run, from, key);
    for (int r = from; r < runs; ++r) {
        const Series *s = run_series(&run[r], key);
        if (s && s->count > 0) line[count++] = (ChartLine){run[r].folder, s};
    }
    if (!done && count > 0) chart_lines(out, key, line, count);
    mem_free(&line);
}

/* Writes one chart with the fractions of a run's time, the keys time_*. Leaves out fractions that
 * are always below FRACTION_FROM, and time_s, the time itself. */
static void put_time_curves(FILE *out, const RunFiles *run)
{
    static const double FRACTION_FROM = 0.01;
    static const char whole[] = "time_s";
    ChartLine *line = mem_new((size_t)(run->series_count + 1) * sizeof *line);
    int count = 0;
    for (int i = 0; i < run->series_count; ++i) {
        const Series *s = &run->series[i];
        double largest = 0;
        if (!is_time(s->key) || strcmp(s->key, whole) == 0) continue;
        for (int k = 0; k < s->count; ++k) largest = fmax(largest, s->value[k]);
        if (largest < FRACTION_FROM) continue;
        line[count++] = (ChartLine){s->key + sizeof TIME_PREFIX - 1, s};
    }
    char *title = mem_format("%s: fractions of the time since the line before", run->folder);
    if (count > 0) chart_lines(out, title, line, count);
    mem_free(&title);
    mem_free(&line);
}

static void put_curves(FILE *out, const RunFiles *run, int runs)
{
    html_section(out, "Curves");
    for (int r = 0; r < runs; ++r)
        for (int i = 0; i < run[r].series_count; ++i)
            if (is_curve(run[r].series[i].key)) put_curve(out, run, runs, r, run[r].series[i].key);
    for (int r = 0; r < runs; ++r) put_time_curves(out, &run[r]);
    html_section_end(out);
}

static void put_topologies(FILE *out, const RunFiles *run, int runs)
{
    for (int r = 0; r < runs; ++r)
        if (run[r].topo.ranks > 0)
            topology_sections(out, &run[r].topo, runs > 1 ? run[r].folder : NULL);
}

static Status write_page(const RunFiles *run, int runs, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    char *title = runs == 1 ? mem_text(run[0].folder) : mem_format("%d runs of weft", runs);
    html_begin(out, title);
    put_outcome(out, run, runs);
    put_curves(out, run, runs);
    section_times(out, run, runs);
    section_starts(out, run, runs);
    section_schedules(out, run, runs);
    section_memory(out, run, runs);
    put_topologies(out, run, runs);
    section_versions(out, run, runs);
    section_files(out, run, runs);
    html_end(out);
    mem_free(&title);
    return file_close_stream(out, path);
}

Status report_write(char *const *folder, int runs, const char *out)
{
    RunFiles *run = mem_new((size_t)runs * sizeof *run);
    int read = 0;
    Status st = OK;
    for (; st == OK && read < runs; ++read) st = run_files_read(&run[read], folder[read]);
    if (st == OK) st = write_page(run, runs, out);
    for (int r = 0; r < read; ++r) run_files_fini(&run[r]);
    mem_free(&run);
    return st;
}
