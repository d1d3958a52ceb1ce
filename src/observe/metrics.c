/* Writes metrics.jsonl: one JSON object per line, for a training step, an evaluation or a decision,
 * in the order of steps. A run that resumes at step S first removes the lines of later steps, which
 * it will write again, and any line that a crash has torn. Usually these are the last lines, and
 * truncating the file removes them without needing room on the disk. If a line that must be kept
 * follows a line that must be removed, or if truncating fails, all kept lines are written to
 * metrics.jsonl.part. This file then replaces the old one, so that a crash loses nothing. A run
 * that starts over renames an existing file. */
#include "observer.h"

#include "observe/history.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Status fail_io(const char *what, const char *path)
{
    return fail(ERR_IO, "%s: %s failed: %s", path, what, file_error(errno));
}

/* Returns true for a complete line whose step is at most keep_step. */
static bool line_is_kept(const char *line, size_t bytes, int64_t keep_step)
{
    if (bytes < 3 || strlen(line) != bytes || line[0] != '{' ||
        strcmp(line + bytes - 2, "}\n") != 0)
        return false;
    const char *at = strstr(line, "\"step\":");
    char *end;
    if (!at) return false;
    long long step = strtoll(at + 7, &end, 10);
    return end != at + 7 && step <= keep_step;
}

/* Copies the kept lines to `out`; if `out` is NULL, only counts lines. Returns the number of
 * dropped lines, -1 on an error. *end: size in bytes of the kept lines if all of them come before
 * the first dropped line, else -1. */
static int64_t copy_lines(FILE *in, FILE *out, int64_t keep_step, off_t *end)
{
    char *line = NULL;
    size_t capacity = 0;
    int64_t dropped = 0;
    bool bad = false;
    ssize_t got;
    *end = 0;
    while (!bad && (got = getline(&line, &capacity, in)) > 0) {
        bool kept = line_is_kept(line, (size_t)got, keep_step);
        if (kept && *end >= 0) *end = dropped > 0 ? -1 : *end + got;
        if (!kept)
            ++dropped;
        else if (out)
            bad = fwrite(line, (size_t)got, 1, out) != 1;
    }
    free(line);
    return bad || ferror(in) ? -1 : dropped;
}

/* Writes the kept lines of `in` to the file `part`, which then replaces the file `path`. */
static Status rewrite(FILE *in, const char *path, const char *part, int64_t keep_step)
{
    FILE *out = file_create_new_stream(part);
    if (!out) return fail_io("creating", part);
    rewind(in);
    off_t end;
    bool good =
        copy_lines(in, out, keep_step, &end) >= 0 && fflush(out) == 0 && fsync(fileno(out)) == 0;
    int error = errno;
    if (fclose(out) != 0 && good) good = false, error = errno;
    errno = error;
    Status status = OK;
    if (!good)
        status = fail_io("rewriting", part);
    else if (rename(part, path) != 0)
        status = fail_io("renaming", part);
    if (status != OK) unlink(part);
    return status;
}

/* Truncates the file to `end` bytes, and syncs it. Returns false on failure. */
static bool truncate_file(const char *path, off_t end)
{
    int file = file_open(path, O_WRONLY | O_NOFOLLOW);
    bool good = file >= 0 && ftruncate(file, end) == 0 && fsync(file) == 0;
    if (file >= 0) close(file);
    return good;
}

/* Removes torn lines and the lines of steps after keep_step from the file `path`. */
static Status remove_later_lines(const char *path, const char *part, int64_t keep_step)
{
    off_t end;
    /* O_NOFOLLOW: the file may be rewritten next, and the target of a symbolic link must not be. */
    int file = file_open(path, O_RDONLY | O_NOFOLLOW);
    FILE *in = file < 0 ? NULL : fdopen(file, "r");
    if (!in) return errno == ENOENT ? OK : fail_io("reading", path);
    int64_t dropped = copy_lines(in, NULL, keep_step, &end);
    Status status = dropped < 0 ? fail_io("reading", path) : OK;
    if (dropped > 0 && (end < 0 || !truncate_file(path, end)))
        status = rewrite(in, path, part, keep_step);
    fclose(in);
    return status;
}

MetricsEnd metrics_read_end(const char *folder)
{
    enum { BYTES = 1 << 16 };
    char *path = mem_format("%s/metrics.jsonl", folder), *tail = mem_new(BYTES + 1);
    MetricsEnd end = {0};
    struct stat st;
    int file = file_open(path, O_RDONLY);
    if (file >= 0 && fstat(file, &st) == 0) {
        off_t from = st.st_size > BYTES ? st.st_size - BYTES : 0;
        ssize_t got = pread(file, tail, BYTES, from);
        tail[got > 0 ? got : 0] = 0;
        end.changed = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
        for (char *at = tail, *next; (next = strchr(at, '\n')); at = next + 1)
            if (strncmp(at, "{\"step\":", 8) == 0) end.step = strtoll(at + 8, NULL, 10);
    }
    if (file >= 0) close(file);
    mem_free(&tail);
    mem_free(&path);
    return end;
}

/* Renames the file of an earlier run, so that nothing is lost. */
static Status move_aside(const char *path)
{
    char *to;
    TRY(file_move_aside(path, &to));
    if (to) log_info("earlier lines are kept in %s", to);
    mem_free(&to);
    return OK;
}

Status metrics_open(AppendFile *metrics, const char *dir, const Lease *lease, int64_t step,
                    bool resumed)
{
    char *path = mem_format("%s/metrics.jsonl", dir), *part = mem_format("%s.part", path);
    /* removes the file of an earlier process of this run that was killed while rewriting */
    unlink(part);
    Status status = resumed ? remove_later_lines(path, part, step) : move_aside(path);
    mem_free(&part);
    if (status == OK) status = append_open(metrics, path, 0, lease);
    metrics->lines = true;
    mem_free(&path);
    return status;
}

/* A line that is being written to memory. */
typedef struct Line {
    Json json;
    /* the line; owned */
    char *text;
    /* length of the line */
    size_t bytes;
} Line;

static void line_begin(Line *line, int64_t step, int64_t epoch)
{
    FILE *out = open_memstream(&line->text, &line->bytes);
    if (!out) die("out of memory for a line of metrics");
    line->json = json_to(out, false);
    json_object(&line->json, NULL);
    json_int(&line->json, "step", step);
    json_int(&line->json, "epoch", epoch);
}

static void line_end(Line *line, AppendFile *metrics)
{
    json_end(&line->json);
    fclose(line->json.out);
    append_put(metrics, line->text, line->bytes);
    free(line->text);
}

const char *loss_part_name(LossPart part)
{
    static const char *const name[LOSS_PARTS] = {"box_loss", "object_loss", "class_loss"};
    return name[part];
}

double line_time_s(const TrainLine *line)
{
    double all_s = 0;
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) all_s += line->time_s[i];
    return all_s;
}

/* Writes the time between the last two logged steps (TrainLine.time_s), and the fractions of those
 * parts of it that are known while the run trains. */
static void put_times(Json *json, const TrainLine *line)
{
    double all_s = line_time_s(line);
    if (all_s <= 0) return;
    json_fixed(json, "time_s", 6, all_s);
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) {
        char key[32];
        if (!ledger_is_live((LedgerLine)i)) continue;
        snprintf(key, sizeof key, "time_%s", ledger_names[i]);
        json_fixed(json, key, 4, line->time_s[i] / all_s);
    }
}

void metrics_train(AppendFile *metrics, const TrainLine *line)
{
    Line text;
    line_begin(&text, line->step, line->epoch);
    json_real(&text.json, "loss", line->loss);
    json_real(&text.json, "lr", line->lr);
    json_real(&text.json, line->counts_tokens ? "tokens_per_s" : "samples_per_s",
              line->samples_per_s);
    json_real(&text.json, "grad_norm", line->grad_norm);
    if (line->has_grad_noise) {
        json_real(&text.json, "grad_square", line->grad_square);
        json_real(&text.json, "grad_variance", line->grad_variance);
        json_real(&text.json, "grad_noise_scale", line->noise_scale);
    }
    if (!isnan(line->top1)) json_real(&text.json, "train_top1", line->top1);
    if (!isnan(line->top5)) json_real(&text.json, "train_top5", line->top5);
    for (int i = 0; line->has_boxes && i < LOSS_PARTS; ++i)
        json_real(&text.json, loss_part_name((LossPart)i), line->part[i]);
    if (line->skipped > 0) json_int(&text.json, "skipped", line->skipped);
    put_times(&text.json, line);
    line_end(&text, metrics);
}

void eval_put_metrics(const EvalLine *line, Json *json)
{
    for (int i = 0; line->has_boxes && i < COCO_NUMBERS; ++i)
        json_real(json, coco_number_name((CocoNumber)i), line->coco[i]);
    for (int i = 0; line->has_boxes && i < LOSS_PARTS; ++i) {
        char key[32];
        snprintf(key, sizeof key, "eval_%s", loss_part_name((LossPart)i));
        json_real(json, key, line->part[i]);
    }
    if (line->fields) field_metrics_put(line->fields, json);
    if (line->labels) label_metrics_put(line->labels, json);
    if (!line->auc_kind) return;
    json_real(json, "eval_auc", line->auc);
    json_text(json, "eval_auc_kind", line->auc_kind);
    json_real(json, "eval_normalized_entropy", line->normalized_entropy);
    json_real(json, "eval_calibration", line->calibration);
}

void metrics_eval(AppendFile *metrics, const EvalLine *line)
{
    Line text;
    line_begin(&text, line->step, line->epoch);
    json_int(&text.json, row_unit(line->counts_tokens), line->samples);
    json_real(&text.json, "eval_loss", line->loss);
    if (!isnan(line->top1)) json_real(&text.json, "top1", line->top1);
    if (!isnan(line->top5)) json_real(&text.json, "top5", line->top5);
    eval_put_metrics(line, &text.json);
    json_real(&text.json, "seconds", line->seconds);
    line_end(&text, metrics);
}

void metrics_decision(AppendFile *metrics, const DecisionLine *line)
{
    Line text;
    line_begin(&text, line->step, line->epoch);
    json_text(&text.json, "event", line->event);
    if (line->why) json_text(&text.json, "why", line->why);
    if (line->stop) json_bool(&text.json, "stop", true);
    if (line->save) json_bool(&text.json, "save", true);
    if (line->lr > 0) json_real(&text.json, "lr", line->lr);
    line_end(&text, metrics);
}
