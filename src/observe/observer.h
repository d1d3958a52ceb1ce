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
    /* owned; NULL: the file is closed */
    char *path;
    int fd;
    /* lease of the run's folder, checked before the path is opened again; borrowed. NULL if no
     * other process writes in the folder. */
    const Lease *lease;
    /* data that has not been written yet, [bytes]; owned */
    char *data;
    size_t bytes;
    /* true: data begins inside a record whose beginning is in the file already */
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
    /* bytes that were cut off the end of the file, and the size of the file before the cut */
    int64_t lost, size_before;
} AppendFile;
/* Opens a file for appending. flags: flags of open(2), in addition to those for appending. If the
 * call fails, there is nothing to close, and errno gives the reason. All append_ functions that
 * return a Status fail with ERR_IO; data that could not be written stays in memory. */
Status append_open(AppendFile *file, const char *path, int flags, const Lease *lease);
/* Adds data that the next append_write writes. */
void append_put(AppendFile *file, const void *data, size_t bytes);
/* Writes the data in memory. A binary file that has been cut short gets no more data, since its
 * readers stop at the torn record. */
Status append_write(AppendFile *file);
/* Checks that the path still leads to the open file, then writes like append_write. A file that has
 * been removed or renamed is written again at its path, from its first byte. If another file has
 * taken its path, later data is appended to that file; in a file of lines, the lines of steps after
 * the last line of the new file are appended first. */
Status append_flush(AppendFile *file);
/* Waits until the written data is on the disk (fsync). Any thread may call it. */
Status append_sync(AppendFile *file);
/* Flushes and closes the file; does nothing if it is closed. Data that cannot be written now is
 * lost. */
Status append_close(AppendFile *file);
/* The path of an open file leads to that file, to no file, or to another file. */
typedef enum NameState { NAME_SAME, NAME_UNLINKED, NAME_OTHER } NameState;
/* Compares the path with the open file, whose fstat is `opened`. Returns NAME_SAME also if the path
 * cannot be read. */
NameState append_name(const char *path, const struct stat *opened);
/* Appends a whole file to another one. Returns 0 or errno. */
int append_copy(int from, int to);

/* metrics.jsonl: one JSON object per line. */
/* Opens dir/metrics.jsonl for appending. If the run is resumed, the call first removes torn lines
 * and lines of steps > step: it truncates the file or, if truncating is not enough, copies all
 * other lines to metrics.jsonl.part and renames this copy to metrics.jsonl. If the run is not
 * resumed, the call renames an existing file to metrics.jsonl.1, or to the next free number. */
Status metrics_open(AppendFile *metrics, const char *dir, const Lease *lease, int64_t step,
                    bool resumed);
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
/* On a terminal, redraws the line, except for the run's last step at most ten times a second. On
 * other outputs, prints a line if log_now is true. log_now: true if this step is logged
 * (train.log_every). */
void progress_train(Progress *progress, const TrainLine *line, bool log_now);
/* Prints the result of an evaluation on a line of its own. */
void progress_eval(Progress *progress, const EvalLine *line);
/* Ends the line that a terminal shows, so that other text begins on a new line. */
void progress_end_line(Progress *progress);
/* Writes the text of the progress line to `out`, which has PROGRESS_CHARS bytes. The text is at
 * most `width` columns wide, not counting colour codes: the least important fields are left out
 * first. */
enum { PROGRESS_CHARS = 512 };
void progress_text(const TrainLine *line, int width, bool colour, char *out);

/* TensorBoard's event files: TFRecord framing (length, masked CRC-32C) around Event protocol
 * buffers. event_file_open makes a new file in dir and adds its first record, which the next write
 * puts into the file. */
Status event_file_open(AppendFile *events, const char *dir, const Lease *lease);
/* Records that this file continues at first_step: TensorBoard then hides the events of older files
 * from that step on. */
void event_file_session(AppendFile *events, int64_t first_step);
/* Append one value or one picture. tag: at most 200 characters. wall_s: time of day in seconds
 * since 1970. */
void event_file_scalar(AppendFile *events, const char *tag, int64_t step, double wall_s,
                       float value);
void event_file_picture(AppendFile *events, const EvalPicture *picture, int64_t step,
                        double wall_s);
/* Returns the CRC-32C of the data. Not thread-safe. */
uint32_t crc32c(const void *data, size_t bytes);

/* Returns the sum of line->time_s. */
double line_time_s(const TrainLine *line);
/* Returns true if the part is known while the run trains. Bubble and imbalance are known only at
 * its end. */
bool ledger_is_live(LedgerLine line);

/* A part of the critical path that is not the work of a stage. */
typedef struct LedgerPathPart {
    const char *name;
    double seconds;
} LedgerPathPart;
/* Fills part[LEDGER_LINE_COUNT + 1] with the parts that are not 0, and returns their number. */
int ledger_path_parts(const Ledger *ledger, LedgerPathPart *part);

/* Writes "1,234,567" to `out`, which has at least 32 chars. Returns out. */
char *text_count(int64_t value, char *out);
/* Writes the figures of an evaluation without its loss, ", top-1 91.00 %, top-5 99.70 %", to `out`,
 * which has EVAL_CHARS bytes. Figures that are not defined are left out, except "-" for COCO's and
 * "nan" for those of fields. Returns out. */
enum { EVAL_CHARS = 512 };
const char *text_eval(const EvalLine *line, char *out);
/* Write metrics of fields. _put: as keys of an open JSON object. _text: as ", skill 0.91, RMSE t2m
 * 1.2 K", with the RMSE of up to four variables, each over all its levels and leads; room: bytes of
 * `out`. _scalars: as TensorBoard's scalars. */
void field_metrics_put(const FieldMetrics *fields, Json *json);
void field_metrics_text(const FieldMetrics *fields, char *out, size_t room);
void field_metrics_scalars(const FieldMetrics *fields, AppendFile *events, int64_t step,
                           double time_s);
/* The same for metrics of label fields. The text is ", IoU 0.71 (sea 0.93, land 0.49), accuracy
 * 94.1 %", with the IoU of up to four classes. */
void label_metrics_put(const LabelMetrics *labels, Json *json);
void label_metrics_text(const LabelMetrics *labels, char *out, size_t room);
void label_metrics_scalars(const LabelMetrics *labels, AppendFile *events, int64_t step,
                           double time_s);
/* Returns the time of day, in seconds since 1970. */
double wall_s(void);

#endif
