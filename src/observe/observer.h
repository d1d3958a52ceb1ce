/* The observe room's private door: the parts an Observer is made of. Each part reports its own errors; all of it runs
 * on rank 0, on one thread. */
#ifndef WEFT_OBSERVE_OBSERVER_H
#define WEFT_OBSERVE_OBSERVER_H

#include "observe.h"

/* metrics.jsonl: one JSON object a line, kept open for appending. */
typedef struct Metrics {
    char *path; /* owned */
    FILE *file; /* owned */
} Metrics;
/* Cuts the lines of steps > keep_step and torn ones away (rewritten through metrics.jsonl.part), then appends. */
Status metrics_open(Metrics *metrics, const char *dir, int64_t keep_step);
Status metrics_train(Metrics *metrics, const TrainLine *line);
Status metrics_eval(Metrics *metrics, const EvalLine *line);
Status metrics_flush(Metrics *metrics);
Status metrics_close(Metrics *metrics);

/* The progress line on stdout. */
typedef struct Progress {
    bool terminal; /* rewrites one line; else plain lines */
    bool shown;    /* a line stands on the terminal without its newline */
    double drawn_s;
} Progress;
void progress_open(Progress *progress);
void progress_train(Progress *progress, const TrainLine *line, bool log_now);
void progress_eval(Progress *progress, const EvalLine *line);
void progress_break(Progress *progress);
/* The line without colour, at most `width` columns wide: the least important fields go first. out: PROGRESS_CHARS. */
enum { PROGRESS_CHARS = 512 };
void progress_text(const TrainLine *line, int width, bool colour, char *out);

/* Tells TensorBoard that this file goes on from first_step: what older files hold from there on is hidden. */
Status event_file_session(EventFile *file, int64_t first_step);
Status event_file_flush(EventFile *file);

/* "1,234,567", into at least 32 chars, which it returns. */
char *text_count(int64_t value, char *out);
/* "1:23" or "2:01:05", into at least 32 chars, which it returns. */
char *text_seconds(double seconds, char *out);
double wall_s(void); /* seconds since 1970 */

#endif
