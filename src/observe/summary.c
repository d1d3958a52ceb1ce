/* The summary at the end of a run: last evaluation, time and memory used, and where the files
 * are. */
#include "observer.h"

#include <stdlib.h>
#include <sys/stat.h>

static void print_accuracy(const EvalLine *eval, FILE *out)
{
    char count[32], figures[EVAL_CHARS];
    if (eval->samples == 0) return;
    const char *text = text_eval(eval, figures);
    fprintf(out, "  test         %s%sloss %.4f on %s %s\n", *text ? text + 2 : text,
            *text ? ", " : "", text_unsigned_nan(eval->loss), text_count(eval->samples, count),
            rows_name(eval->tokens));
}

static void print_phases(FILE *out)
{
    double total_s = 0;
    double spent_s[PHASE_COUNT];
    for (int i = 0; i < PHASE_COUNT; ++i) total_s += spent_s[i] = phase_s((Phase)i);
    if (total_s <= 0) return;
    fprintf(out, "  time         ");
    const char *comma = "";
    for (int i = 0; i < PHASE_COUNT; ++i) {
        double share = 100 * spent_s[i] / total_s;
        if (share < 0.05) continue;
        fprintf(out, "%s%s %.1f %%", comma, phase_names[i], share);
        comma = ", ";
    }
    fputc('\n', out);
}

/* Both figures are in megabytes, so that they can be compared. */
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
            rows_name(summary->tokens));
    if (summary->ended) fprintf(out, "  ended        %s\n", summary->ended);
    print_accuracy(&summary->eval, out);
    print_phases(out);
    print_memory(summary, out);
    if (summary->last) fprintf(out, "  checkpoint   %s\n", summary->last);
    if (summary->best) fprintf(out, "  best         %s\n", summary->best);
    fprintf(out, "  metrics      %s/metrics.jsonl", summary->dir);
    char *log = mem_format("%s/log.txt", summary->dir);
    struct stat st;
    if (lstat(log, &st) == 0 && S_ISREG(st.st_mode)) fprintf(out, ", and %s", log);
    mem_free(&log);
    fputc('\n', out);
    fprintf(out, "  look         tensorboard --logdir %s\n", summary->dir);
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
