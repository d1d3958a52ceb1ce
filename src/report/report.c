/* The sections of a report: outcome, curves, time, configuration and log. */
#include "private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- outcome ---- */

/* Keys of the outcome's columns, with the extreme that counts as best: 1 the greatest, -1 the
 * least, 0 the last value. */
static const struct Column {
    const char *key, *title;
    int best;
} columns[] = {{"loss", "last loss", 0},       {"eval_loss", "least eval_loss", -1},
               {"top1", "best top1", 1},       {"eval_auc", "best eval_auc", 1},
               {"ap", "best ap", 1},           {"samples_per_s", "samples/s", 0},
               {"tokens_per_s", "tokens/s", 0}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static double column_value(const Series *s, int best)
{
    double value = s->value[s->count - 1];
    for (int i = 0; i < s->count && best; ++i)
        if (best * s->value[i] > best * value) value = s->value[i];
    return value;
}

/* Returns the last step that is known. Steps after the last line of metrics.jsonl are known if the
 * last start ended by itself. */
static double last_step(const RunFiles *run)
{
    double last = 0;
    for (int i = 0; i < run->series_count; ++i)
        last = fmax(last, run->series[i].step[run->series[i].count - 1]);
    if (run->ledger.starts > 0)
        last = fmax(last, (double)run->ledger.start[run->ledger.starts - 1].to);
    return last;
}

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
        for (int c = 0; c < COLUMNS; ++c) {
            const Series *s = run_series(&run[r], columns[c].key);
            if (s)
                fprintf(out, "<td>%.6g</td>", column_value(s, columns[c].best));
            else if (any_has(run, runs, columns[c].key))
                fputs("<td>-</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    for (int r = 0; r < runs; ++r) {
        put_torn(out, &run[r], run[r].metrics_torn, "metrics.jsonl");
        put_torn(out, &run[r], run[r].ledger.torn, "ledger.jsonl");
    }
    html_section_end(out);
}

/* ---- curves ---- */

/* Keys without a chart: they say nothing as curves. */
static bool is_curve(const char *key)
{
    static const char *const left_out[] = {"epoch", "samples", "tokens", "seconds"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; ++i)
        if (strcmp(key, left_out[i]) == 0) return false;
    return true;
}

/* Writes the chart of a key, unless an earlier run had it already. */
static void put_curve(FILE *out, const RunFiles *run, int runs, int from, const char *key)
{
    ChartLine *line = mem_new((size_t)runs * sizeof *line);
    int count = 0;
    bool done = any_has(run, from, key);
    for (int r = from; r < runs; ++r) {
        const Series *s = run_series(&run[r], key);
        if (s) line[count++] = (ChartLine){run[r].folder, s};
    }
    if (!done) chart_lines(out, key, line, count);
    mem_free(&line);
}

static void put_curves(FILE *out, const RunFiles *run, int runs)
{
    html_section(out, "Curves");
    for (int r = 0; r < runs; ++r)
        for (int i = 0; i < run[r].series_count; ++i)
            if (is_curve(run[r].series[i].key)) put_curve(out, run, runs, r, run[r].series[i].key);
    html_section_end(out);
}

/* ---- time ---- */

/* Writes the forecast and its error; "-" where there is none. */
static void put_forecast(FILE *out, const LedgerPart *part)
{
    if (part->has_forecast)
        fprintf(out, "<td>%.3f</td>", 1e3 * part->forecast_s);
    else
        fputs("<td>-</td>", out);
    if (part->has_forecast && part->measured_s > 0 && part->forecast_s > 0)
        fprintf(out, "<td>%+.1f %%</td>", 100 * (part->measured_s / part->forecast_s - 1));
    else
        fputs("<td>-</td>", out);
}

static void put_part(FILE *out, const RunFiles *run, const LedgerPart *part, double step_s)
{
    fputs("<tr><td>", out);
    html_text(out, part->name);
    fprintf(out, "</td><td>%.3f</td><td>%.1f %%</td>", 1e3 * part->measured_s,
            step_s > 0 ? 100 * part->measured_s / step_s : 0.0);
    if (run->ledger.has_forecast) put_forecast(out, part);
    fputs("</tr>\n", out);
}

static void put_parts_table(FILE *out, const RunFiles *run)
{
    char all_name[] = "all", forecast_name[] = "all that is forecast";
    LedgerPart all = {.name = all_name}, forecast = {.name = forecast_name, .has_forecast = true};
    for (int i = 0; i < run->ledger.parts; ++i) {
        const LedgerPart *part = &run->ledger.part[i];
        all.measured_s += part->measured_s;
        if (!part->has_forecast) continue;
        forecast.measured_s += part->measured_s;
        forecast.forecast_s += part->forecast_s;
    }
    fprintf(out, "<table><tr><th>part</th><th>ms a step</th><th>share</th>%s</tr>\n",
            run->ledger.has_forecast ? "<th>forecast ms</th><th>error</th>" : "");
    for (int i = 0; i < run->ledger.parts; ++i)
        put_part(out, run, &run->ledger.part[i], all.measured_s);
    if (run->ledger.has_forecast) put_part(out, run, &forecast, all.measured_s);
    put_part(out, run, &all, all.measured_s);
    fputs("</table>\n", out);
}

static void put_time(FILE *out, const RunFiles *run)
{
    if (run->ledger.parts == 0) return;
    int parts = run->ledger.parts, rows = run->ledger.has_forecast ? 2 : 1;
    static const char *const row[] = {"measured", "forecast"};
    const char **name = mem_new((size_t)parts * sizeof *name);
    double *value = mem_new(2 * (size_t)parts * sizeof *value);
    for (int i = 0; i < parts; ++i) {
        name[i] = run->ledger.part[i].name;
        value[i] = run->ledger.part[i].measured_s;
        value[parts + i] = run->ledger.part[i].forecast_s;
    }
    char *title =
        mem_format("%s: time of a step, mean of %.0f rank%s and %.0f steps", run->folder,
                   run->ledger.ranks, run->ledger.ranks == 1 ? "" : "s", run->ledger.steps);
    chart_bars(out, title, row, rows, name, parts, value);
    put_parts_table(out, run);
    mem_free(&title);
    mem_free(&value);
    mem_free(&name);
}

static void put_times(FILE *out, const RunFiles *run, int runs)
{
    bool any = false;
    for (int r = 0; r < runs; ++r) any = any || run[r].ledger.parts > 0;
    if (!any) return;
    html_section(out, "Time");
    for (int r = 0; r < runs; ++r) put_time(out, &run[r]);
    html_section_end(out);
}

/* ---- files ---- */

static void put_files(FILE *out, const RunFiles *run, int runs)
{
    html_section(out, "Configuration and log");
    for (int r = 0; r < runs; ++r) {
        char *config = mem_format("%s/config.yaml", run[r].folder);
        char *log = mem_format("%s/log.txt, its end", run[r].folder);
        if (*run[r].config) html_details(out, config, run[r].config);
        if (*run[r].log) html_details(out, log, run[r].log);
        mem_free(&log);
        mem_free(&config);
    }
    html_section_end(out);
}

static Status write_page(const RunFiles *run, int runs, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    char *title = runs == 1 ? mem_text(run[0].folder) : mem_format("%d runs of weft", runs);
    html_begin(out, title);
    put_outcome(out, run, runs);
    put_curves(out, run, runs);
    put_times(out, run, runs);
    section_starts(out, run, runs);
    put_files(out, run, runs);
    html_end(out);
    mem_free(&title);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good)
        return fail(ERR_IO, "%s: writing failed: %s", path, strerror(errno));
    return OK;
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
