/* Reads the files of a run. Each line of metrics.jsonl is an object; each number in it except the
 * step becomes a value of the series of its key, at the line's step. The last line is left out if
 * it is incomplete, because of a crash or because the run is still writing it. The page then says
 * so. */
#include "private.h"

#include "base/json_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* METRICS_BYTES: a larger metrics.jsonl is an error. TEXT_BYTES: largest number of bytes of
 * config.yaml that are read; a configuration has far fewer. */
static const size_t METRICS_BYTES = (size_t)1 << 31, TEXT_BYTES = 64 << 20;
/* bytes that are read at the end of log.txt */
enum { LOG_BYTES = 32 << 10 };
/* a larger step is an error */
static const double STEP_MAX = 1e15;

const Series *run_series(const RunFiles *run, const char *key)
{
    for (int i = 0; i < run->series_count; ++i)
        if (strcmp(run->series[i].key, key) == 0) return &run->series[i];
    return NULL;
}

/* Returns the series with this key, which is made if there is none. Borrowed until the next
 * call. */
static Series *series_for(RunFiles *run, const char *key)
{
    for (int i = 0; i < run->series_count; ++i)
        if (strcmp(run->series[i].key, key) == 0) return &run->series[i];
    run->series = mem_resize(run->series, (size_t)(run->series_count + 1) * sizeof *run->series);
    run->series[run->series_count] = (Series){.key = mem_text(key)};
    return &run->series[run->series_count++];
}

static void series_add(Series *s, double step, double value)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->step = mem_resize(s->step, (size_t)s->capacity * sizeof *s->step);
        s->value = mem_resize(s->value, (size_t)s->capacity * sizeof *s->value);
    }
    s->ends_null = false;
    s->step[s->count] = step;
    s->value[s->count++] = value;
}

/* ---- lines ---- */

static bool is_number(const JsonScan *scan)
{
    return scan->at < scan->end && (*scan->at == '-' || (*scan->at >= '0' && *scan->at <= '9'));
}

/* Reads the value of one key of a line of metrics.jsonl. *step: the line's step, which the value of
 * the key `step` sets; a run writes this key first. */
static Status read_metric(RunFiles *run, JsonScan *scan, const char *key, double *step)
{
    double value;
    if (scan->at < scan->end && *scan->at == 'n') {
        Series *s = series_for(run, key);
        s->ends_null = true;
        ++s->nulls;
    }
    if (!is_number(scan)) return json_scan_skip(scan);
    TRY(json_scan_real(scan, &value));
    if (strcmp(key, "step") == 0 && !(value >= 0 && value <= STEP_MAX))
        return json_scan_fail(scan, "%g is no step", value);
    if (strcmp(key, "step") == 0)
        *step = value;
    else
        series_add(series_for(run, key), *step, value);
    return OK;
}

static Status read_line(RunFiles *run, const char *path, const char *line, size_t bytes)
{
    JsonScan scan = json_scan(path, line, bytes);
    bool more;
    double step = 0;
    TRY(json_scan_open(&scan, '{', &more));
    while (more) {
        char *key = NULL;
        TRY(json_scan_key(&scan, &key));
        Status st = read_metric(run, &scan, key, &step);
        mem_free(&key);
        TRY(st);
        TRY(json_scan_more(&scan, '}', &more));
    }
    return json_scan_end(&scan);
}

static Status read_lines(RunFiles *run, const char *path)
{
    char *text, *at;
    size_t bytes;
    int number = 1;
    Status st = OK;
    TRY(file_text(path, METRICS_BYTES, &text, &bytes));
    at = text;
    for (char *end; st == OK && (end = strchr(at, '\n')); at = end + 1) {
        st = read_line(run, path, at, (size_t)(end - at));
        number += st == OK;
    }
    run->metrics_torn = st == OK && *at;
    if (st != OK) {
        char *why = mem_text(fail_message());
        st = fail(st, "line %d of %s", number, why);
        mem_free(&why);
    }
    mem_free(&text);
    return st;
}

/* Returns the end of a text file, at most `most` bytes, from the beginning of a line if possible;
 * "" if the file cannot be read. The caller owns the text. */
static char *text_end(const char *folder, const char *name, size_t most)
{
    char *path = mem_format("%s/%s", folder, name);
    FILE *file = file_open_stream(path);
    mem_free(&path);
    if (!file) return mem_text("");
    const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    const size_t all = size > 0 ? (size_t)size : 0, room = all < most ? all : most;
    char *text = mem_new(room + 1);
    if (fseek(file, (long)(all - room), SEEK_SET) == 0) text[fread(text, 1, room, file)] = '\0';
    fclose(file);
    const char *line = room < all ? strchr(text, '\n') : NULL;
    char *kept = mem_text(line ? line + 1 : text);
    mem_free(&text);
    return kept;
}

/* Reads metrics.jsonl. The folder of each run that has logged a step has this file. */
static Status read_metrics(RunFiles *run, const char *folder)
{
    char *path = mem_format("%s/metrics.jsonl", folder);
    Status st = OK;
    if (access(path, F_OK) != 0)
        st = fail(ERR_NOINPUT,
                  "%s: there is no such file: %s is no folder of a run, or that of a run without a "
                  "first step",
                  path, folder);
    if (st == OK) st = read_lines(run, path);
    mem_free(&path);
    return st;
}

Status run_files_read(RunFiles *run, const char *folder)
{
    *run = (RunFiles){.folder = folder};
    Status st = read_metrics(run, folder);
    if (st == OK) st = ledger_read(folder, &run->ledger);
    char *topo = mem_format("%s/topo.json", folder);
    if (st == OK && access(topo, F_OK) == 0) st = topo_read(&run->topo, topo);
    mem_free(&topo);
    if (st == OK) {
        run->config = text_end(folder, "config.yaml", TEXT_BYTES);
        run->log = text_end(folder, "log.txt", LOG_BYTES);
    } else {
        run_files_fini(run);
    }
    return st;
}

void run_files_fini(RunFiles *run)
{
    for (int i = 0; i < run->series_count; ++i) {
        mem_free(&run->series[i].key);
        mem_free(&run->series[i].step);
        mem_free(&run->series[i].value);
    }
    ledger_history_fini(&run->ledger);
    mem_free(&run->series);
    mem_free(&run->config);
    mem_free(&run->log);
    topo_fini(&run->topo);
    *run = (RunFiles){0};
}
