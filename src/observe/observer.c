/* Passes each report to the progress line, to metrics.jsonl and to TensorBoard's events. Each line
 * is written to its file at once (append_write), so that no line is lost if the process is killed.
 * The lines of evaluations and decisions are written by append_flush instead, which also checks
 * whether the paths still lead to the open files. So is the line of a logged step if FLUSH_S
 * seconds have passed since the last flush. */
#include "observer.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* seconds after the last flush from which on a logged step flushes again */
#define FLUSH_S 1.0

struct Observer {
    AppendFile metrics, events;
    /* held while `events` becomes another file, and while files are synced, which the thread of a
     * save does */
    pthread_mutex_t sync_lock;
    Progress progress;
    /* the run's folder; owned */
    char *dir;
    /* borrowed */
    const Lease *lease;
    /* step of the newest training line of metrics */
    int64_t step;
    /* step of the newest training line that has been written to the file */
    int64_t written;
    /* time (clock_s) of the last observer_flush */
    double flushed_s;
    /* true: the last flush failed, and a warning has been printed */
    bool failing;
};

Status observer_new(Observer **out, const char *dir, const Lease *lease, int64_t step, bool resumed)
{
    Observer *observer = mem_new(sizeof *observer);
    Status status = metrics_open(&observer->metrics, dir, lease, step, resumed);
    if (status == OK) status = event_file_open(&observer->events, dir, lease);
    observer->dir = mem_text(dir);
    observer->lease = lease;
    observer->step = observer->written = step;
    if (status == OK) {
        event_file_session(&observer->events, step + 1);
        status = append_flush(&observer->events);
    }
    progress_open(&observer->progress);
    pthread_mutex_init(&observer->sync_lock, NULL);
    observer->flushed_s = clock_s();
    *out = observer;
    if (status != OK) {
        char *why = mem_text(fail_message());
        (void)append_close(&observer->events);
        (void)append_close(&observer->metrics);
        pthread_mutex_destroy(&observer->sync_lock);
        mem_free(&observer->dir);
        mem_free(out);
        fail(status, "%s", why);
        mem_free(&why);
    }
    return status;
}

void observer_free(Observer **at)
{
    Observer *observer = *at;
    if (!observer) return;
    progress_end_line(&observer->progress);
    if (append_flush(&observer->metrics) != OK)
        log_warn("%s; these lines are not in it:\n%.*s", fail_message(),
                 (int)observer->metrics.bytes, observer->metrics.data);
    observer->metrics.bytes = 0;
    Status events = append_close(&observer->events);
    Status metrics = append_close(&observer->metrics);
    if (events != OK || metrics != OK) log_warn("%s", fail_message());
    pthread_mutex_destroy(&observer->sync_lock);
    mem_free(&observer->dir);
    mem_free(at);
}

static void scalar(Observer *observer, const char *tag, int64_t step, double value)
{
    if (!isnan(value)) event_file_scalar(&observer->events, tag, step, wall_s(), (float)value);
}

/* If the events file was cut short, continues in a new file, because readers stop at a torn
 * record. */
static Status renew_events(Observer *observer)
{
    AppendFile next, *events = &observer->events;
    if (events->lost == 0) return OK;
    TRY(event_file_open(&next, observer->dir, observer->lease));
    append_put(&next, events->data, events->bytes);
    log_warn("%s: was cut short: its last %lld of %lld bytes are lost; events continue in %s",
             events->path, (long long)events->lost, (long long)events->size_before, next.path);
    events->bytes = 0;
    pthread_mutex_lock(&observer->sync_lock);
    (void)append_close(events);
    *events = next;
    pthread_mutex_unlock(&observer->sync_lock);
    return append_flush(events);
}

static void warn_changed(AppendFile *file)
{
    if (file->rewritten)
        log_warn("%s: was removed or renamed, and has been written again from its beginning",
                 file->path);
    if (file->replaced)
        log_warn("%s: has been replaced by another file, and continues in that one", file->path);
    file->rewritten = file->replaced = false;
}

static void warn_cut(AppendFile *metrics, int64_t step)
{
    if (metrics->lost == 0) return;
    log_warn(
        "%s: was cut short: its last %lld of %lld bytes are lost; the last lost line is of step "
        "%lld; later lines are appended to what is left",
        metrics->path, (long long)metrics->lost, (long long)metrics->size_before, (long long)step);
    metrics->lost = 0;
}

static void warn_of_changes(Observer *observer)
{
    const AppendFile *m = &observer->metrics, *e = &observer->events;
    if (m->rewritten || m->replaced || m->lost || e->rewritten || e->replaced || e->lost)
        progress_end_line(&observer->progress);
    warn_changed(&observer->events);
    warn_changed(&observer->metrics);
    warn_cut(&observer->metrics, observer->written);
}

static Status write_files(Observer *observer, Status (*write)(AppendFile *file))
{
    Status events = write(&observer->events);
    /* metrics.jsonl is written after the events, so that its error message remains if both fail */
    Status metrics = write(&observer->metrics);
    warn_of_changes(observer);
    if (metrics == OK) observer->written = observer->step;
    if (events == OK && metrics == OK) events = renew_events(observer);
    return metrics != OK ? metrics : events;
}

Status observer_flush(Observer *observer)
{
    if (!observer) return OK;
    observer->flushed_s = clock_s();
    log_file_warn_of_changes();
    return write_files(observer, append_flush);
}

Status observer_sync(Observer *observer)
{
    if (!observer) return OK;
    pthread_mutex_lock(&observer->sync_lock);
    Status events = append_sync(&observer->events);
    Status metrics = append_sync(&observer->metrics);
    pthread_mutex_unlock(&observer->sync_lock);
    return metrics != OK ? metrics : events;
}

/* Flushes. Warns when writing begins to fail, and reports when it works again. */
static void flush_and_warn(Observer *observer)
{
    bool failed = observer_flush(observer) != OK;
    if (failed == observer->failing) return;
    observer->failing = failed;
    progress_end_line(&observer->progress);
    if (failed)
        log_warn("%s; training continues, and lines wait in memory until they can be written",
                 fail_message());
    else
        log_info("%s can be written again: no line is missing", observer->metrics.path);
}

/* Writes the parts of a detector's loss as "GROUP/box_loss" and so on. group: "train" or "eval". */
static void scalar_parts(Observer *observer, const char *group, int64_t step, const double *part)
{
    for (int i = 0; i < LOSS_PARTS; ++i) {
        char name[32];
        snprintf(name, sizeof name, "%s/%s", group, loss_part_name((LossPart)i));
        scalar(observer, name, step, part[i]);
    }
}

/* Writes the fractions of the time as "time/compute" and so on. */
static void scalar_times(Observer *observer, const TrainLine *line)
{
    double all_s = line_time_s(line);
    for (int i = 0; all_s > 0 && i < LEDGER_LINE_COUNT; ++i) {
        char tag[32];
        if (!ledger_is_live((LedgerLine)i)) continue;
        snprintf(tag, sizeof tag, "time/%s", ledger_names[i]);
        scalar(observer, tag, line->step, line->time_s[i] / all_s);
    }
}

void observer_train(Observer *observer, const TrainLine *line, bool log_now)
{
    if (!observer) return;
    progress_train(&observer->progress, line, log_now);
    if (!log_now) return;
    char text[PROGRESS_CHARS + 1];
    progress_text(line, PROGRESS_CHARS, false, text);
    log_copy(strcat(text, "\n"));
    metrics_train(&observer->metrics, line);
    observer->step = line->step;
    scalar(observer, "train/loss", line->step, line->loss);
    scalar(observer, "train/lr", line->step, line->lr);
    scalar(observer, line->counts_tokens ? "train/tokens_per_s" : "train/samples_per_s", line->step,
           line->samples_per_s);
    scalar(observer, "train/grad_norm", line->step, line->grad_norm);
    if (line->has_grad_noise) {
        scalar(observer, "train/grad_square", line->step, line->grad_square);
        scalar(observer, "train/grad_variance", line->step, line->grad_variance);
        scalar(observer, "train/grad_noise_scale", line->step, line->noise_scale);
    }
    scalar(observer, "train/top1", line->step, line->top1);
    scalar(observer, "train/top5", line->step, line->top5);
    if (line->has_boxes) scalar_parts(observer, "train", line->step, line->part);
    scalar_times(observer, line);
    /* A failure here is reported by the next flush. */
    if (clock_s() - observer->flushed_s >= FLUSH_S)
        flush_and_warn(observer);
    else
        (void)write_files(observer, append_write);
}

void observer_eval(Observer *observer, const EvalLine *line)
{
    if (!observer) return;
    progress_eval(&observer->progress, line);
    metrics_eval(&observer->metrics, line);
    scalar(observer, "eval/loss", line->step, line->loss);
    scalar(observer, "eval/top1", line->step, line->top1);
    scalar(observer, "eval/top5", line->step, line->top5);
    for (int i = 0; line->has_boxes && i < COCO_NUMBERS; ++i) {
        char name[32];
        snprintf(name, sizeof name, "eval/%s", coco_number_name((CocoNumber)i));
        /* -1: not defined */
        if (line->coco[i] >= 0) scalar(observer, name, line->step, line->coco[i]);
    }
    if (line->has_boxes) scalar_parts(observer, "eval", line->step, line->part);
    if (line->fields) field_metrics_scalars(line->fields, &observer->events, line->step, wall_s());
    if (line->labels) label_metrics_scalars(line->labels, &observer->events, line->step, wall_s());
    for (int i = 0; i < line->pictures; ++i)
        event_file_picture(&observer->events, &line->picture[i], line->step, wall_s());
    if (line->auc_kind) {
        scalar(observer, "eval/auc", line->step, line->auc);
        scalar(observer, "eval/normalized_entropy", line->step, line->normalized_entropy);
        scalar(observer, "eval/calibration", line->step, line->calibration);
    }
    flush_and_warn(observer);
}

void observer_decision(Observer *observer, const DecisionLine *line)
{
    if (!observer) return;
    metrics_decision(&observer->metrics, line);
    flush_and_warn(observer);
}

void observer_end_line(Observer *observer)
{
    if (observer) progress_end_line(&observer->progress);
}
