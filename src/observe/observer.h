/* The observe module's private header: the parts of an Observer (files and the progress line), and
 * texts and parts of the ledger that several files use. The functions that change an AppendFile or
 * a Progress run on one thread of rank 0. append_sync changes nothing and may run on any thread. */
#ifndef WEFT_OBSERVE_OBSERVER_H
#define WEFT_OBSERVE_OBSERVER_H

#include "observe.h"

#include <sys/stat.h>

/* A file that is only appended to. Data that could not be written stays in memory until a flush can
 * write it. */
typedef struct AppendFile {
    /* path of the file; NULL: the file is closed; owned */
    char *path;
    /* descriptor of the file; -1: the file is closed */
    int fd;
    /* lease of the run's folder, checked before the path is opened again; NULL: no other process
     * writes in the folder; borrowed */
    const Lease *lease;
    /* data that has not been written yet, [bytes]; owned */
    char *data;
    /* number of bytes in `data` */
    size_t bytes;
    /* true: `data` begins inside a record whose beginning is in the file already */
    bool partial;
    /* true: each record is a line of text; false: records are binary */
    bool lines;
    /* size of the file after the last write, in bytes; -1: it is no regular file */
    int64_t size;
    /* The fields from `rewritten` on are changes of the file by other processes that the observer
     * has not reported yet. */
    /* true: the path led to no file, so the whole file was written again at this path */
    bool rewritten;
    /* true: the path leads to another file, to which later data is appended */
    bool replaced;
    /* number of bytes that were cut off the end of the file; 0: none */
    int64_t lost;
    /* size of the file in bytes before the cut */
    int64_t size_before;
} AppendFile;
/* Opens a file for appending. flags: flags of open(2), in addition to those for appending. ERR_IO:
 * the file cannot be opened; then there is nothing to close, and errno gives the reason. */
Status append_open(AppendFile *file, const char *path, int flags, const Lease *lease);
/* Adds data that the next append_write writes. */
void append_put(AppendFile *file, const void *data, size_t bytes);
/* Writes the data that is in memory. A binary file that has been cut short gets no more data,
 * because its readers stop at the torn record. ERR_IO: data could not be written; it stays in
 * memory, also after an error of append_flush. */
Status append_write(AppendFile *file);
/* Checks that the path still leads to the open file, then writes as append_write does. A file that
 * has been removed or renamed is written again at its path, from its first byte. If another file
 * has taken the path, later data is appended to that file. A new file of lines first gets the lines
 * of the old file whose steps come after the step of the new file's last line. ERR_IO. */
Status append_flush(AppendFile *file);
/* Waits until the written data is on the disk (fsync). Any thread may call it. ERR_IO. */
Status append_sync(AppendFile *file);
/* Flushes and closes the file; does nothing if it is closed. ERR_IO: some data could not be
 * written, and is lost. */
Status append_close(AppendFile *file);
/* Result of append_path_state: the path leads to the open file, to no file, or to another file. */
typedef enum NameState { NAME_SAME, NAME_UNLINKED, NAME_OTHER } NameState;
/* Compares the path with the open file, whose fstat is `opened`. Returns NAME_SAME also if this
 * cannot be found out. */
NameState append_path_state(const char *path, const struct stat *opened);
/* Appends all bytes of the file `from` to the file `to`; both are descriptors. Returns 0 or
 * errno. */
int append_copy(int from, int to);

/* The functions whose names begin with metrics_ write metrics.jsonl, which has one JSON object per
 * line. */
/* Opens dir/metrics.jsonl for appending. If the run is resumed, first removes torn lines and the
 * lines of steps after `step`: truncates the file or, if truncating is not enough, copies all other
 * lines to metrics.jsonl.part and renames this copy to metrics.jsonl. If the run is not resumed,
 * renames an existing file to metrics.jsonl.1, or to the next free number. ERR_IO: a file cannot be
 * read or written. */
Status metrics_open(AppendFile *metrics, const char *dir, const Lease *lease, int64_t step,
                    bool resumed);
/* metrics_train, metrics_eval and metrics_decision add a line, which the next append_write
 * writes. */
void metrics_train(AppendFile *metrics, const TrainLine *line);
void metrics_eval(AppendFile *metrics, const EvalLine *line);
void metrics_decision(AppendFile *metrics, const DecisionLine *line);

/* The progress line on stdout. */
typedef struct Progress {
    /* true: stdout is a terminal, on which one line is rewritten; false: plain lines are printed */
    bool terminal;
    /* true: the terminal shows a line without its newline */
    bool shown;
    /* time at which the line was last drawn (clock_s); -1: the next report draws it */
    double drawn_s;
} Progress;
void progress_open(Progress *progress);
/* Reports a step. On a terminal, redraws the line at most ten times a second, and in any case for
 * the run's last step. On other outputs, prints a line if log_now is true. log_now: true if this
 * step is logged (train.log_every). */
void progress_train(Progress *progress, const TrainLine *line, bool log_now);
/* Prints the result of an evaluation on a line of its own. */
void progress_eval(Progress *progress, const EvalLine *line);
/* Ends the line that a terminal shows, so that other text begins on a new line. */
void progress_end_line(Progress *progress);
/* Writes the text of the progress line to `out`, which has PROGRESS_CHARS bytes. The text is at
 * most `width` columns wide, not counting colour codes. If it would be wider, the least important
 * fields are left out first. */
enum { PROGRESS_CHARS = 512 };
void progress_text(const TrainLine *line, int width, bool colour, char *out);

/* The functions whose names begin with event_file_ write TensorBoard's event files: TFRecord
 * framing (length, masked CRC-32C) around Event protocol buffers. event_file_open makes a new file
 * in `dir`, and adds its first record, which the next write puts into the file. ERR_IO. */
Status event_file_open(AppendFile *events, const char *dir, const Lease *lease);
/* Adds a record that this file continues at first_step. TensorBoard then hides the events of older
 * files from that step on. */
void event_file_session(AppendFile *events, int64_t first_step);
/* event_file_scalar adds one value, event_file_picture one picture. tag: at most 200 characters.
 * wall_s: time of day in seconds since 1970. */
void event_file_scalar(AppendFile *events, const char *tag, int64_t step, double wall_s,
                       float value);
void event_file_picture(AppendFile *events, const EvalPicture *picture, int64_t step,
                        double wall_s);
/* Returns the CRC-32C of the data. Not thread-safe. */
uint32_t crc32c(const void *data, size_t bytes);

/* Returns the sum of line->time_s. */
double line_time_s(const TrainLine *line);
/* Returns true if this part of the time is known while the run trains. Bubble and imbalance are
 * known only at the end of the run. */
bool ledger_is_live(LedgerLine line);

/* A part of the critical path that is not the work of a stage. */
typedef struct LedgerPathPart {
    const char *name;
    double seconds;
} LedgerPathPart;
/* Fills part[LEDGER_LINE_COUNT + 1] with those parts of the critical path that are not the work of
 * a stage and not 0. Returns their number. */
int ledger_path_parts(const Ledger *ledger, LedgerPathPart *part);

/* Writes the number as "1,234,567" to `out`, which has at least 32 chars. Returns `out`. */
char *text_count(int64_t value, char *out);
/* Writes the figures of an evaluation without its loss, as in ", top-1 91.00 %, top-5 99.70 %", to
 * `out`, which has EVAL_CHARS bytes. Figures that are not defined are left out, with two
 * exceptions: COCO's numbers are then "-"; the skill of fields, and the figures of label fields,
 * are then "nan". Returns `out`. */
enum { EVAL_CHARS = 512 };
const char *text_eval(const EvalLine *line, char *out);
/* Writes metrics of fields as keys of an open JSON object. */
void field_metrics_put(const FieldMetrics *fields, Json *json);
/* Writes metrics of fields to `out`, which has `room` bytes, as ", skill 0.91, RMSE t2m 1.2 K".
 * Shows the RMSE of up to four variables, each over all its levels and leads. */
void field_metrics_text(const FieldMetrics *fields, char *out, size_t room);
/* Adds metrics of fields to TensorBoard's events. time_s: as wall_s of event_file_scalar. */
void field_metrics_scalars(const FieldMetrics *fields, AppendFile *events, int64_t step,
                           double time_s);
/* Writes metrics of label fields as keys of an open JSON object. */
void label_metrics_put(const LabelMetrics *labels, Json *json);
/* Writes metrics of label fields to `out`, which has `room` bytes, as ", IoU 0.71 (sea 0.93, land
 * 0.49), accuracy 94.1 %", with the IoU of up to four classes. */
void label_metrics_text(const LabelMetrics *labels, char *out, size_t room);
/* Adds metrics of label fields to TensorBoard's events. time_s: as wall_s of event_file_scalar. */
void label_metrics_scalars(const LabelMetrics *labels, AppendFile *events, int64_t step,
                           double time_s);
/* Returns the time of day, in seconds since 1970. */
double wall_s(void);

#endif
