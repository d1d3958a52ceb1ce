/* Writes the section about time: the parts of a step with their forecast, a bar for each rank, and
 * the critical path. */
#include "private.h"

#include <string.h>

/* ---- a step ---- */

/* Writes the forecast of a part, and the percentage by which the measured time exceeds it; "-" if
 * there is no forecast. */
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

static void put_steps(FILE *out, const RunFiles *run)
{
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

/* ---- ranks ---- */

/* Returns the number of a rank that has this name (LedgerRank); 0 if there is none. */
static double rank_value(const LedgerRank *rank, const char *name)
{
    for (int i = 0; i < rank->count; ++i)
        if (strcmp(rank->part[i].name, name) == 0) return rank->part[i].measured_s;
    return 0;
}

static void put_ranks_table(FILE *out, const LedgerHistory *h, char *const *row)
{
    fputs("<details><summary>milliseconds of a step by rank</summary><table><tr><th>rank</th>",
          out);
    for (int i = 0; i < h->parts; ++i) {
        fputs("<th>", out);
        html_text(out, h->part[i].name);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int r = 0; r < h->rank_count; ++r) {
        fprintf(out, "<tr><td>%s</td>", row[r]);
        for (int i = 0; i < h->parts; ++i)
            fprintf(out, "<td>%.3f</td>", 1e3 * rank_value(&h->rank[r], h->part[i].name));
        fputs("</tr>\n", out);
    }
    fputs("</table></details>\n", out);
}

/* Writes a bar and a row of a table for each rank that the ledger has, if there are at least
 * two. */
static void put_ranks(FILE *out, const RunFiles *run)
{
    const LedgerHistory *h = &run->ledger;
    size_t parts = (size_t)h->parts, ranks = (size_t)h->rank_count;
    if (ranks < 2) return;
    const char **name = mem_new(parts * sizeof *name);
    char **row = mem_new(ranks * sizeof *row);
    double *value = mem_new(ranks * parts * sizeof *value);
    for (size_t i = 0; i < parts; ++i) name[i] = h->part[i].name;
    for (size_t r = 0; r < ranks; ++r) {
        row[r] = mem_format("rank %.0f, stage %.0f", rank_value(&h->rank[r], "rank"),
                            rank_value(&h->rank[r], "stage"));
        for (size_t i = 0; i < parts; ++i) value[r * parts + i] = rank_value(&h->rank[r], name[i]);
    }
    char *title = h->rank_count < (int)h->ranks
                      ? mem_format("%s: time of a step on %d of %.0f ranks", run->folder,
                                   h->rank_count, h->ranks)
                      : mem_format("%s: time of a step by rank", run->folder);
    chart_bars(out, title, (const char *const *)row, h->rank_count, name, h->parts, value);
    put_ranks_table(out, h, row);
    mem_free(&title);
    for (size_t r = 0; r < ranks; ++r) mem_free(&row[r]);
    mem_free(&value);
    mem_free(&row);
    mem_free(&name);
}

/* ---- critical path ---- */

static void put_path(FILE *out, const RunFiles *run)
{
    static const char *const row[] = {"critical path"};
    const LedgerHistory *h = &run->ledger;
    size_t parts = (size_t)h->path_parts;
    double all_s = 0;
    if (parts == 0) return;
    const char **name = mem_new(parts * sizeof *name);
    double *value = mem_new(parts * sizeof *value);
    for (size_t i = 0; i < parts; ++i) {
        name[i] = h->path[i].name;
        value[i] = h->path[i].measured_s;
        all_s += value[i];
    }
    char *title = mem_format("%s: the longest chain of a step, with the parts outside of the "
                             "schedule",
                             run->folder);
    chart_bars(out, title, row, 1, name, h->path_parts, value);
    fputs("<table><tr><th>part</th><th>ms a step</th><th>share</th></tr>\n", out);
    for (size_t i = 0; i < parts; ++i) {
        fputs("<tr><td>", out);
        html_text(out, name[i]);
        fprintf(out, "</td><td>%.3f</td><td>%.1f %%</td></tr>\n", 1e3 * value[i],
                all_s > 0 ? 100 * value[i] / all_s : 0.0);
    }
    fputs("</table>\n", out);
    mem_free(&title);
    mem_free(&value);
    mem_free(&name);
}

void section_times(FILE *out, const RunFiles *run, int runs)
{
    bool any = false;
    for (int r = 0; r < runs; ++r) any = any || run[r].ledger.parts > 0;
    if (!any) return;
    html_section(out, "Time");
    for (int r = 0; r < runs; ++r) {
        if (run[r].ledger.parts == 0) continue;
        put_steps(out, &run[r]);
        put_ranks(out, &run[r]);
        put_path(out, &run[r]);
    }
    html_section_end(out);
}
