/* The observe module's private header: the parts an Observer is made of. Each part reports its own
 * errors; all of it runs on rank 0, on one thread. */
#ifndef WEFT_OBSERVE_OBSERVER_H
#define WEFT_OBSERVE_OBSERVER_H

#include "observe.h"

/* A file that is only appended to. Data that could not be written is kept until a flush can write
 * it. */
typedef struct AppendFile {
    /* owned; NULL: closed */
    char *path;
    int fd;
    /* borrowed; asked before the path is opened again; NULL: nobody else writes there */
    const Lease *lease;
    /* owned: bytes that have been put and not been written yet; partial: they begin in the middle
     * of a record */
    char *data;
    size_t bytes;
    bool partial;
    /* its records are lines */
    bool lines;
    /* size of the file after the last write */
    int64_t size;
    /* Findings, to be reported once. rewritten: the path led nowhere, so that all of the file was
     * written again; moved: the path led to another file, to which lines are appended; lost: so
     * many of the last lost_of bytes have been cut off. */
    bool rewritten, moved;
    int64_t lost, lost_of;
} AppendFile;
/* flags: open's, beside those for appending. Where it failed there is nothing to close, and errno
 * says why. All fail with ERR_IO, and lose nothing. */
Status append_open(AppendFile *file, const char *path, int flags, const Lease *lease);
void append_put(AppendFile *file, const void *data, size_t bytes);
/* Writes what has been put. A file of other records than lines is not written to behind a cut, at
 * which readers of it stop. */
Status append_write(AppendFile *file);
/* The same once the name has been checked: a file that has been removed or renamed is written again
 * under its name, from its first byte. */
Status append_flush(AppendFile *file);
/* What has been flushed, to the disk; by any thread. */
Status append_sync(AppendFile *file);
/* Flushes; what cannot be written even now is lost. */
Status append_close(AppendFile *file);
/* Appends all of a file to another one. 0 or errno. */
int append_copy(int from, int to);

/* metrics.jsonl: one JSON object a line. */
/* Where goes_on, cuts the lines of steps > step and torn ones away (from between others by way of
 * metrics.jsonl.part); else what another run left there is moved aside as metrics.jsonl.1, or the
 * next number that is free. Then appends. */
Status metrics_open(AppendFile *metrics, const char *dir, const Lease *lease, int64_t step,
                    bool goes_on);
void metrics_train(AppendFile *metrics, const TrainLine *line);
void metrics_eval(AppendFile *metrics, const EvalLine *line);
void metrics_event(AppendFile *metrics, const EventLine *line);

/* The progress line on stdout. */
typedef struct Progress {
    /* rewrites one line; else plain lines */
    bool terminal;
    /* a line stands on the terminal without its newline */
    bool shown;
    double drawn_s;
} Progress;
void progress_open(Progress *progress);
void progress_train(Progress *progress, const TrainLine *line, bool log_now);
void progress_eval(Progress *progress, const EvalLine *line);
void progress_break(Progress *progress);
/* The line without colour, at most `width` columns wide: the least important fields go first. out:
 * PROGRESS_CHARS. */
enum { PROGRESS_CHARS = 512 };
void progress_text(const TrainLine *line, int width, bool colour, char *out);

/* TensorBoard's event files: TFRecord framing (length, masked CRC32C) around Event protocol
 * buffers. */
Status event_file_open(AppendFile *events, const char *dir, const Lease *lease);
/* Tells TensorBoard that this file goes on from first_step: what older files hold from there on is
 * hidden. */
void event_file_session(AppendFile *events, int64_t first_step);
/* tag: at most 200 characters. */
void event_file_scalar(AppendFile *events, const char *tag, int64_t step, double wall_s,
                       float value);
uint32_t crc32c(const void *data, size_t bytes);

/* "1,234,567", into at least 32 chars, which it returns. */
char *text_count(int64_t value, char *out);
/* What an evaluation has beside its loss and is defined: ", top-1 91.00 %, top-5 99.70 %". out:
 * EVAL_CHARS, which it returns. */
enum { EVAL_CHARS = 512 };
const char *text_eval(const EvalLine *line, char *out);
/* seconds since 1970 */
double wall_s(void);

#endif
