/* Prints the summary at the end of a run: last evaluation, time and memory used, and paths of the
 * files. Also has the names of the ledger's parts, and lists the parts of the critical path. */
#include "observer.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static void print_accuracy(const EvalLine *eval, FILE *out)
{
    char count[32], figures[EVAL_CHARS];
    if (eval->samples == 0) return;
    const char *text = text_eval(eval, figures);
    fprintf(out, "  test         %s%sloss %.4f on %s %s\n", *text ? text + 2 : text,
            *text ? ", " : "", text_nan_without_sign(eval->loss), text_count(eval->samples, count),
            row_unit(eval->counts_tokens));
}

const char *const ledger_names[LEDGER_LINE_COUNT] = {LEDGER_LINES(LIST_NAME)};

bool ledger_is_live(LedgerLine line)
{
    return line != LEDGER_BUBBLE && line != LEDGER_IMBALANCE;
}

void ledger_fini(Ledger *ledger)
{
    mem_free(&ledger->rank);
    mem_free(&ledger->cost);
    mem_free(&ledger->path_s);
}

int ledger_path_parts(const Ledger *ledger, LedgerPathPart *part)
{
    int count = 0;
    if (ledger->late_s > 0) part[count++] = (LedgerPathPart){"late replicas", ledger->late_s};
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i)
        if (i != LEDGER_COMPUTE && i != LEDGER_BUBBLE && i != LEDGER_IMBALANCE &&
            ledger->line_s[i] > 0)
            part[count++] = (LedgerPathPart){ledger_names[i], ledger->line_s[i]};
    return count;
}

/* Returns true if stage i comes after stage k in descending order of their times; of equal times,
 * the stage with the lower number comes first. */
static bool is_behind(const double *time_s, int i, int k)
{
    return time_s[i] < time_s[k] || (time_s[i] == time_s[k] && i > k);
}

/* If there are several stages, prints the critical path in percent of total_s, the mean time of the
 * ranks. Prints first the stages (at most three) with the most work on the path, then the sum of
 * all other stages, then the parts that are not work of a stage (ledger_path_parts). This sum and
 * these parts are left out if they are below 0.05 %. */
static void print_path(const Ledger *ledger, double total_s, FILE *out)
{
    enum { STAGES = 3 };
    LedgerPathPart part[LEDGER_LINE_COUNT + 1];
    int stages = ledger->schedule ? ledger->schedule->shape.stages : 0, shown = 0;
    int parts = stages > 1 ? ledger_path_parts(ledger, part) : 0;
    int before = -1;
    double rest_s = 0;
    if (stages < 2) return;
    fprintf(out, "  critical     ");
    for (int i = 0; i < stages; ++i) rest_s += ledger->path_s[i];
    for (; shown < STAGES && shown < stages; ++shown) {
        int most = -1;
        for (int i = 0; i < stages; ++i)
            if ((before < 0 || is_behind(ledger->path_s, i, before)) &&
                (most < 0 || ledger->path_s[i] > ledger->path_s[most]))
                most = i;
        before = most;
        rest_s -= ledger->path_s[most];
        fprintf(out, "%sstage %d %.1f %%", shown ? ", " : "", most,
                100 * ledger->path_s[most] / total_s);
    }
    if (shown < stages && rest_s / total_s > 5e-4)
        fprintf(out, ", %d other stages %.1f %%", stages - shown, 100 * rest_s / total_s);
    for (int i = 0; i < parts; ++i)
        if (part[i].seconds / total_s >= 5e-4)
            fprintf(out, ", %s %.1f %%", part[i].name, 100 * part[i].seconds / total_s);
    fputc('\n', out);
}

/* The busiest rank is named if its work exceeds the mean by more than this fraction. */
static const double BUSIEST_FROM = 0.02;

static void print_ledger(const Ledger *ledger, FILE *out)
{
    double total_s = 0;
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) total_s += ledger->line_s[i];
    if (total_s <= 0) return;
    fprintf(out, "  time         ");
    if (ledger->ranks > 1) fprintf(out, "mean of %d ranks: ", ledger->ranks);
    const char *comma = "";
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) {
        double share = 100 * ledger->line_s[i] / total_s;
        if (share < 0.05) continue;
        fprintf(out, "%s%s %.1f %%", comma, ledger_names[i], share);
        comma = ", ";
    }
    fputc('\n', out);
    double more = ledger->busiest_s / ledger->busy_s - 1;
    if (ledger->ranks > 1 && more > BUSIEST_FROM)
        fprintf(out, "  most work    rank %d, %.1f %% more than the mean: others wait for it\n",
                ledger->busiest, 100 * more);
    print_path(ledger, total_s, out);
}

/* Prints the time of all starts, divided into parts. */
static void print_goodput(const Goodput *g, FILE *out)
{
    char wall[32], killed[48] = "", lost[48] = "";
    if (g->starts == 0 || g->wall_s <= 0) return;
    if (g->killed) snprintf(killed, sizeof killed, ", of which %d had no end,", g->killed);
    fprintf(out, "  starts       %d%s in %s:", g->starts, killed, text_seconds(g->wall_s, wall));
    const char *comma = "";
    for (int i = 0; i < GOODPUT_PART_COUNT; ++i) {
        double share = 100 * g->part_s[i] / g->wall_s;
        if (i == GOODPUT_REPEATED && g->repeated)
            snprintf(lost, sizeof lost, " (%lld)", (long long)g->repeated);
        if (share < 0.05 && !(i == GOODPUT_REPEATED && g->repeated)) continue;
        fprintf(out, "%s %s%s %.1f %%", comma, goodput_names[i], i == GOODPUT_REPEATED ? lost : "",
                share);
        comma = ",";
    }
    fputc('\n', out);
}

static void print_compared(const char *name, double forecast_s, double measured_s, FILE *out)
{
    fprintf(out, "    %-12s %12.3f %12.3f", name, 1e3 * forecast_s, 1e3 * measured_s);
    if (forecast_s > 0) fprintf(out, " %+8.1f %%", 100 * (measured_s / forecast_s - 1));
    fputc('\n', out);
}

/* Parts whose forecast and measured times are both below this number of seconds are not printed. */
static const double PART_FROM_S = 5e-7;

/* Prints the parts of a step as forecast and as measured, without evaluations and saves. */
static void print_forecast(const Ledger *ledger, FILE *out)
{
    double forecast_s = 0, measured_s = 0, steps = (double)ledger->steps;
    if (!ledger->has_forecast || ledger->steps == 0) return;
    fprintf(out, "  forecast     %12s %12s   ms a step (run.machine)\n", "forecast", "measured");
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) {
        double step_s = ledger->line_s[i] / steps;
        if (i == LEDGER_EVAL || i == LEDGER_CHECKPOINT) continue;
        forecast_s += ledger->forecast_s[i];
        measured_s += step_s;
        if (fabs(ledger->forecast_s[i]) >= PART_FROM_S || step_s >= PART_FROM_S)
            print_compared(ledger_names[i], ledger->forecast_s[i], step_s, out);
    }
    print_compared("step", forecast_s, measured_s, out);
}

/* Prints the planned and the measured memory, both in megabytes so that they can be compared. */
static void print_memory(const RunSummary *s, FILE *out)
{
    char peak[16];
    if (s->measured_bytes <= 0) return;
    fprintf(out, "  memory       %.1f MB planned, %.1f MB measured (%+.1f %%)",
            s->planned_bytes / 1e6, s->measured_bytes / 1e6,
            100 * (s->measured_bytes / s->planned_bytes - 1));
    fprintf(out, " on rank %d, which uses most; peak with libraries %s\n", s->memory_rank,
            text_bytes(s->peak_bytes, peak));
}

static void print_all(const RunSummary *summary, FILE *out)
{
    char rate[32], time[32];
    fprintf(out, "%s after %.1f s", summary->stopped ? "stopped early" : "done", summary->seconds);
    if (summary->seconds >= 60) fprintf(out, " (%s)", text_seconds(summary->seconds, time));
    fprintf(out, ", %s %s/s\n", text_count((int64_t)(summary->samples_per_s + 0.5), rate),
            row_unit(summary->counts_tokens));
    if (summary->ended) fprintf(out, "  ended        %s\n", summary->ended);
    print_accuracy(&summary->eval, out);
    print_ledger(&summary->ledger, out);
    print_forecast(&summary->ledger, out);
    print_goodput(&summary->goodput, out);
    print_memory(summary, out);
    if (summary->newest_path) fprintf(out, "  checkpoint   %s\n", summary->newest_path);
    if (summary->best_path) fprintf(out, "  best         %s\n", summary->best_path);
    fprintf(out, "  metrics      %s/metrics.jsonl", summary->dir);
    char *log = mem_format("%s/log.txt", summary->dir);
    struct stat st;
    if (lstat(log, &st) == 0 && S_ISREG(st.st_mode)) fprintf(out, ", and %s", log);
    mem_free(&log);
    fputc('\n', out);
    fprintf(out, "  look         tensorboard --logdir %s, or weft report %s\n", summary->dir,
            summary->dir);
    if (summary->stopped)
        fprintf(out, "  continue     start the same command again%s\n",
                summary->fresh ? ", but without run.fresh" : "");
}

void observer_summary(const RunSummary *summary, FILE *out)
{
    char *text;
    size_t bytes;
    FILE *all = open_memstream(&text, &bytes);
    if (!all) die("out of memory for the summary");
    /* writes log.txt again if it was removed, before its name is printed */
    log_copy("");
    print_all(summary, all);
    fclose(all);
    fputs(text, out);
    fflush(out);
    log_copy(text);
    free(text);
}
