/* The observe module's private header: the parts of an Observer. Each part reports its own errors.
 * All run on rank 0, on one thread. */
#ifndef WEFT_OBSERVE_OBSERVER_H
#define WEFT_OBSERVE_OBSERVER_H

#include "observe.h"

#include <sys/stat.h>

/* A file that is only appended to. Data that could not be written stays in memory until a flush can
 * write it. */
typedef struct AppendFile {
    /* owned; NULL: the file is closed */
    char *path;
    int fd;
    /* checked before the path is opened again; borrowed; NULL: no other process writes there */
    const Lease *lease;
    /* data: `bytes` bytes that have not been written yet; owned. partial: they begin inside a
     * record */
    char *data;
    size_t bytes;
    bool partial;
    /* records are lines */
    bool lines;
    /* size of the file after the last write, in bytes */
    int64_t size;
    /* Changes by others, to be reported once. rewritten: the path led nowhere, and the whole file
     * was written again. moved: the path led to another file, which is continued. lost: the number
     * of bytes that were cut off the end of a file of lost_of bytes. */
    bool rewritten, moved;
    int64_t lost, lost_of;
} AppendFile;
/* Opens a file for appending. flags: for open, in addition to those for appending. If it fails
 * there is nothing to close, and errno gives the reason. All these functions fail with ERR_IO and
 * lose nothing. */
Status append_open(AppendFile *file, const char *path, int flags, const Lease *lease);
void append_put(AppendFile *file, const void *data, size_t bytes);
/* Writes the data in memory. A file with records other than lines is not continued after a cut,
 * since its readers stop there. */
Status append_write(AppendFile *file);
/* Checks the name, then writes like append_write: a file that has been removed or renamed is
 * written again under its name, from its first byte. */
Status append_flush(AppendFile *file);
/* Syncs what has been flushed to the disk. Any thread may call it. */
Status append_sync(AppendFile *file);
/* Flushes and closes; what cannot be written now is lost. */
Status append_close(AppendFile *file);
/* State of the path of an open file: it leads to the file, to nothing, or to another file. */
typedef enum NameState { NAME_SAME, NAME_UNLINKED, NAME_OTHER } NameState;
/* is: fstat of the open file. NAME_SAME, too, where nobody can say. */
NameState append_name(const char *path, const struct stat *is);
/* Appends a whole file to another one. Returns 0 or errno. */
int append_copy(int from, int to);

/* metrics.jsonl: one JSON object a line. */
/* Opens dir/metrics.jsonl for appending. With goes_on it removes torn lines and those of steps >
 * step (by way of metrics.jsonl.part if lines to keep follow them); else it renames an earlier
 * run's file to metrics.jsonl.1, or the next free number. */
Status metrics_open(AppendFile *metrics, const char *dir, const Lease *lease, int64_t step,
                    bool goes_on);
void metrics_train(AppendFile *metrics, const TrainLine *line);
void metrics_eval(AppendFile *metrics, const EvalLine *line);
void metrics_event(AppendFile *metrics, const EventLine *line);

/* The progress line on stdout. */
typedef struct Progress {
    /* stdout is a terminal, on which one line is rewritten; else plain lines are printed */
    bool terminal;
    /* the terminal shows a line without its newline */
    bool shown;
    double drawn_s;
} Progress;
void progress_open(Progress *progress);
void progress_train(Progress *progress, const TrainLine *line, bool log_now);
void progress_eval(Progress *progress, const EvalLine *line);
void progress_break(Progress *progress);
/* Writes the line to out, PROGRESS_CHARS bytes. It is at most `width` columns wide, not counting
 * colour codes: the least important fields are left out first. */
enum { PROGRESS_CHARS = 512 };
void progress_text(const TrainLine *line, int width, bool colour, char *out);

/* TensorBoard's event files: TFRecord framing (length, masked CRC-32C) around Event protocol
 * buffers. */
Status event_file_open(AppendFile *events, const char *dir, const Lease *lease);
/* Writes that this file continues at first_step: TensorBoard then hides what older files have from
 * there on. */
void event_file_session(AppendFile *events, int64_t first_step);
/* tag: at most 200 characters. */
void event_file_scalar(AppendFile *events, const char *tag, int64_t step, double wall_s,
                       float value);
uint32_t crc32c(const void *data, size_t bytes);

/* Writes "1,234,567" to out, at least 32 chars, and returns out. */
char *text_count(int64_t value, char *out);
/* Writes the defined figures of an evaluation besides its loss: ", top-1 91.00 %, top-5 99.70 %".
 * out: EVAL_CHARS bytes, returned. */
enum { EVAL_CHARS = 512 };
const char *text_eval(const EvalLine *line, char *out);
/* Returns seconds since 1970. */
double wall_s(void);

#endif
