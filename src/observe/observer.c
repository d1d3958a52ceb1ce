/* The observer: hands each line to the progress line, to metrics.jsonl and to TensorBoard's events. Files are flushed at
 * most once a second (and at every evaluation), so that a step is not held up by the file system. */
#include "observer.h"

#include <math.h>

#define FLUSH_S 1.0

struct Observer {
    Metrics metrics;
    EventFile *events; /* owned */
    Progress progress;
    double flushed_s;
};

Status observer_new(Observer **out, const char *dir, int64_t keep_step)
{
    Observer *observer = mem_new(sizeof *observer);
    Status status = metrics_open(&observer->metrics, dir, keep_step);
    if (status == OK) status = event_file_new(&observer->events, dir);
    if (status == OK) status = event_file_session(observer->events, keep_step + 1);
    if (status == OK) status = event_file_flush(observer->events);
    progress_open(&observer->progress);
    observer->flushed_s = clock_s();
    *out = observer;
    if (status != OK) {
        (void)event_file_free(&observer->events);
        (void)metrics_close(&observer->metrics);
        mem_free(out);
    }
    return status;
}

void observer_free(Observer **at)
{
    Observer *observer = *at;
    if (!observer) return;
    progress_break(&observer->progress);
    Status events = event_file_free(&observer->events);
    Status metrics = metrics_close(&observer->metrics);
    if (events != OK || metrics != OK) log_warn("%s", fail_message());
    mem_free(at);
}

static Status scalar(Observer *observer, const char *tag, int64_t step, double value)
{
    if (isnan(value)) return OK;
    return event_file_scalar(observer->events, tag, step, wall_s(), (float)value);
}

Status observer_flush(Observer *observer)
{
    if (!observer) return OK;
    observer->flushed_s = clock_s();
    TRY(metrics_flush(&observer->metrics));
    return event_file_flush(observer->events);
}

Status observer_train(Observer *observer, const TrainLine *line, bool log_now)
{
    if (!observer) return OK;
    progress_train(&observer->progress, line, log_now);
    if (!log_now) return OK;
    TRY(metrics_train(&observer->metrics, line));
    TRY(scalar(observer, "train/loss", line->step, line->loss));
    TRY(scalar(observer, "train/lr", line->step, line->lr));
    TRY(scalar(observer, line->tokens ? "train/tokens_per_s" : "train/samples_per_s", line->step,
               line->samples_per_s));
    TRY(scalar(observer, "train/grad_norm", line->step, line->grad_norm));
    TRY(scalar(observer, "train/top1", line->step, line->top1));
    return clock_s() - observer->flushed_s < FLUSH_S ? OK : observer_flush(observer);
}

Status observer_eval(Observer *observer, const EvalLine *line)
{
    if (!observer) return OK;
    progress_eval(&observer->progress, line);
    TRY(metrics_eval(&observer->metrics, line));
    TRY(scalar(observer, "eval/loss", line->step, line->loss));
    TRY(scalar(observer, "eval/top1", line->step, line->top1));
    TRY(scalar(observer, "eval/top5", line->step, line->top5));
    return observer_flush(observer);
}

void observer_break(Observer *observer)
{
    if (observer) progress_break(&observer->progress);
}
