/* Writes the section about the starts of a run: the steps of each start, and the parts of the time
 * of all starts. */
#include "private.h"

#include <time.h>

/* Writes a cell with date and time in UTC, so that equal files give equal pages everywhere.
 * seconds: since 1970; 0: not known. */
static void put_date(FILE *out, double seconds)
{
    char text[32] = "-";
    time_t whole = (time_t)seconds;
    struct tm utc;
    if (seconds > 0 && gmtime_r(&whole, &utc)) strftime(text, sizeof text, "%F %T", &utc);
    fprintf(out, "<td>%s</td>", text);
}

static void put_starts_table(FILE *out, const LedgerHistory *h)
{
    fputs("<table><tr><th>began (UTC)</th><th>first step</th><th>last step</th><th>lost</th>"
          "<th>start-up s</th><th>steps s</th><th>eval s</th><th>checkpoint s</th><th>end</th></tr>"
          "\n",
          out);
    for (int i = 0; i < h->starts; ++i) {
        const LedgerStart *s = &h->start[i];
        fputs("<tr>", out);
        put_date(out, s->began);
        fprintf(out,
                "<td>%lld</td><td>%lld</td><td>%lld</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"
                "<td>%.1f</td><td>%s</td></tr>\n",
                (long long)s->step_before + 1, (long long)s->last_step, (long long)s->repeated,
                s->startup_s, s->steps_s, s->eval_s, s->checkpoint_s,
                s->complete         ? "by itself"
                : i + 1 < h->starts ? "none: crashed or killed"
                                    : "none: still running, crashed or killed");
    }
    fputs("</table>\n", out);
}

static void put_goodput(FILE *out, const RunFiles *run)
{
    static const char *const row[] = {"all starts"};
    const Goodput g = goodput_of(&run->ledger);
    char wall[32];
    char *title = mem_format("%s: %d start%s in %s", run->folder, g.starts,
                             g.starts == 1 ? "" : "s", text_seconds(g.wall_s, wall));
    chart_bars(out, title, row, 1, goodput_names, GOODPUT_PART_COUNT, g.part_s);
    fputs("<table><tr><th>part</th><th>seconds</th><th>share</th></tr>\n", out);
    for (int i = 0; i < GOODPUT_PART_COUNT; ++i)
        fprintf(out, "<tr><td>%s</td><td>%.1f</td><td>%.1f %%</td></tr>\n", goodput_names[i],
                g.part_s[i], g.wall_s > 0 ? 100 * g.part_s[i] / g.wall_s : 0.0);
    fputs("</table>\n", out);
    put_starts_table(out, &run->ledger);
    mem_free(&title);
}

void section_starts(FILE *out, const RunFiles *run, int runs)
{
    bool any = false;
    for (int r = 0; r < runs; ++r) any = any || run[r].ledger.starts > 0;
    if (!any) return;
    html_section(out, "Starts");
    for (int r = 0; r < runs; ++r)
        if (run[r].ledger.starts > 0) put_goodput(out, &run[r]);
    fputs(
        "<p>Lost steps were made again by a later start. A start without an end is known up to its "
        "last line in metrics.jsonl; its evaluations and saves count as steps.</p>\n",
        out);
    html_section_end(out);
}
