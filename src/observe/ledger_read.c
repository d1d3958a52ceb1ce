/* Reads ledger.jsonl, the lines of all starts. ledger_parts.c reads the values of the line that a
 * start writes at its end. A torn line is left out; any other unexpected line is an error. */
#include "ledger_read.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* bytes of the largest file that is read */
static const size_t LEDGER_BYTES = (size_t)1 << 28;

/* Numbers of a line, under the names of their keys; 0: the line does not have the number. start is
 * -1 if the line has no such key, because it was written at the end of a start. */
typedef struct Line {
    double start, startup_s, step, steps, ranks, end, earlier_step, earlier_end;
} Line;

/* ---- lines ---- */

static Status read_value(LedgerHistory *h, JsonScan *scan, const char *key, Line *line)
{
    const LedgerNumber number[] = {{"start", &line->start},
                                   {"startup_s", &line->startup_s},
                                   {"step", &line->step},
                                   {"steps", &line->steps},
                                   {"ranks", &line->ranks},
                                   {"end", &line->end},
                                   {"earlier_step", &line->earlier_step},
                                   {"earlier_end", &line->earlier_end}};
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i)
        if (strcmp(key, number[i].key) == 0) return json_scan_real(scan, number[i].value);
    if (strcmp(key, "versions") == 0) {
        mem_free(&h->versions);
        return json_scan_long_text(scan, &h->versions);
    }
    return ledger_read_end(h, scan, key);
}

static LedgerStart *add_start(LedgerHistory *h, const Line *line)
{
    h->start = mem_resize(h->start, (size_t)(h->starts + 1) * sizeof *h->start);
    h->start[h->starts] = (LedgerStart){.began = line->start,
                                        .startup_s = line->startup_s,
                                        .step_before = (int64_t)line->step,
                                        .last_step = (int64_t)line->step};
    return &h->start[h->starts++];
}

/* Sets the end of a start that was killed or still runs. end: last step and last change of
 * metrics.jsonl before the next start or, if there is none, before now. If the file did not change
 * after the start's first step began, the start is taken to have ended when that step began. */
static void end_killed(LedgerStart *start, MetricsEnd end)
{
    double first_s = start->began + start->startup_s;
    start->ended = end.changed > first_s ? end.changed : first_s;
    start->steps_s = start->ended - first_s;
    if (end.step > start->last_step) start->last_step = end.step;
}

/* Sets the end of the newest start from the line that it wrote at its end. If that start already
 * has an end, the first line of another start is missing; then adds a start whose beginning is not
 * known. */
static void end_complete(LedgerHistory *h, const Line *line)
{
    LedgerStart *start = h->starts > 0 ? &h->start[h->starts - 1] : NULL;
    if (!start || start->complete) {
        start = add_start(h, &(Line){.step = line->step - line->steps});
        start->ended = 0;
    }
    start->ended = start->began > 0 ? line->end : 0;
    start->last_step = (int64_t)line->step;
    start->complete = true;
    for (int i = 0; i < h->parts; ++i) {
        double seconds = h->part[i].measured_s * line->steps;
        *(strcmp(h->part[i].name, ledger_names[LEDGER_EVAL]) == 0         ? &start->eval_s
          : strcmp(h->part[i].name, ledger_names[LEDGER_CHECKPOINT]) == 0 ? &start->checkpoint_s
                                                                          : &start->steps_s) +=
            seconds;
    }
    h->ranks = line->ranks;
    h->steps = line->steps;
}

static Status read_line(LedgerHistory *h, const char *path, const char *text, size_t bytes)
{
    static const double STEP_MAX = 1e15;
    JsonScan scan = json_scan(path, text, bytes);
    Line line = {.start = -1};
    bool more;
    TRY(json_scan_open(&scan, '{', &more));
    while (more) {
        char *key = NULL;
        TRY(json_scan_key(&scan, &key));
        Status st = read_value(h, &scan, key, &line);
        mem_free(&key);
        TRY(st);
        TRY(json_scan_more(&scan, '}', &more));
    }
    TRY(json_scan_end(&scan));
    if (!(line.step >= 0 && line.step <= STEP_MAX && line.steps >= 0 && line.steps <= line.step &&
          line.earlier_step >= 0 && line.earlier_step <= STEP_MAX))
        return json_scan_fail(&scan, "the steps are not those of a run");
    if (line.start < 0) {
        end_complete(h, &line);
        return OK;
    }
    if (h->starts > 0 && !h->start[h->starts - 1].complete)
        end_killed(&h->start[h->starts - 1],
                   (MetricsEnd){(int64_t)line.earlier_step, line.earlier_end});
    add_start(h, &line);
    return OK;
}

/* Returns true if the line begins an object and does not end it. */
static bool is_torn(const char *line, size_t bytes)
{
    return bytes > 0 && line[0] == '{' && line[bytes - 1] != '}';
}

/* ---- the file ---- */

/* Counts, for each start, the steps that a later start made again: those after the lowest step from
 * which a later start began. */
static void count_repeated(LedgerHistory *h)
{
    int64_t kept = INT64_MAX;
    for (int i = h->starts - 1; i >= 0; --i) {
        LedgerStart *start = &h->start[i];
        int64_t until = start->last_step < kept ? start->last_step : kept;
        start->repeated =
            start->last_step - (until > start->step_before ? until : start->step_before);
        if (start->step_before < kept) kept = start->step_before;
    }
}

static Status read_text(LedgerHistory *h, const char *path, const char *text)
{
    const char *at = text;
    int number = 1;
    Status st = OK;
    for (const char *end; st == OK && (end = strchr(at, '\n')); at = end + 1) {
        size_t bytes = (size_t)(end - at);
        if (is_torn(at, bytes))
            h->torn = true;
        else
            st = read_line(h, path, at, bytes);
        number += st == OK;
    }
    h->torn = h->torn || (st == OK && *at);
    if (st == OK) return OK;
    char *why = mem_text(fail_message());
    st = fail(st, "line %d of %s", number, why);
    mem_free(&why);
    return st;
}

Status ledger_read(const char *folder, LedgerHistory *history)
{
    char *path = mem_format("%s/ledger.jsonl", folder), *text = NULL;
    size_t bytes;
    struct stat file;
    *history = (LedgerHistory){0};
    bool none = stat(path, &file) != 0 && errno == ENOENT;
    Status st = none ? OK : file_text(path, LEDGER_BYTES, &text, &bytes);
    if (st == OK && text) st = read_text(history, path, text);
    if (st == OK && history->starts > 0 && !history->start[history->starts - 1].complete)
        end_killed(&history->start[history->starts - 1], metrics_read_end(folder));
    count_repeated(history);
    mem_free(&text);
    mem_free(&path);
    if (st != OK) ledger_history_fini(history);
    return st;
}

void ledger_history_fini(LedgerHistory *h)
{
    ledger_forget_end(h);
    mem_free(&h->versions);
    mem_free(&h->start);
    *h = (LedgerHistory){0};
}
