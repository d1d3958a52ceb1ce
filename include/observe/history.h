/* The history of a run in ledger.jsonl. Each start appends a line before its first step and a
 * second line at its end; a start that is killed has no second line. Rank 0 writes the file; any
 * process may read it. */
#ifndef WEFT_OBSERVE_HISTORY_H
#define WEFT_OBSERVE_HISTORY_H

#include "observe/ledger.h"

/* The end of metrics.jsonl: the step of its last whole line, and the time of the file's last change
 * in seconds since 1970. Both are 0 if there is no file. */
typedef struct MetricsEnd {
    int64_t step;
    double changed;
} MetricsEnd;
MetricsEnd metrics_end(const char *folder);

/* Checks that ledger.jsonl can be written. ERR_IO: it cannot. */
Status ledger_file_check(const char *folder);
/* The line of a start at its first step. */
typedef struct LedgerBegin {
    /* the last step before this start */
    int64_t step;
    /* seconds since its process began */
    double startup_s;
    /* result of metrics_end before this start changed the file */
    MetricsEnd earlier;
    /* the lines that train_print_versions prints; borrowed */
    const char *versions;
} LedgerBegin;
/* Memory of the rank that uses most, in bytes: planned, measured (0: not known), and the peak of
 * the whole process, libraries included. */
typedef struct LedgerMemory {
    int rank;
    double planned, measured, peak;
} LedgerMemory;
/* ledger_write_start appends the line of a start that begins, ledger_write_end that of a start that
 * ends after `step`. ERR_IO: the file cannot be written. */
Status ledger_write_start(const char *folder, const LedgerBegin *begin);
Status ledger_write_end(const char *folder, int64_t step, const Ledger *ledger,
                        const LedgerMemory *memory);

/* One start of a run. */
typedef struct LedgerStart {
    /* times at which its process began and ended, in seconds since 1970; 0: not known */
    double began, ended;
    double startup_s;
    /* number of the last step before this start, and of the last step of this start */
    int64_t from, to;
    /* true: the start has written its second line. Otherwise it was killed or still runs, and
     * `ended` and `to` are taken from metrics.jsonl. */
    bool complete;
    /* seconds of steps, evaluations and saves. If `complete` is false, all of them are in
     * steps_s. */
    double steps_s, eval_s, checkpoint_s;
    /* number of steps that a later start made again */
    int64_t repeated;
} LedgerStart;
/* A part of a step's time, or of the critical path, in seconds of a step. */
typedef struct LedgerPart {
    /* owned */
    char *name;
    double measured_s, forecast_s;
    /* true: forecast_s is set */
    bool has_forecast;
} LedgerPart;
/* Numbers of one rank by their key in ledger.jsonl: rank, stage, and seconds of each part of a
 * step. */
typedef struct LedgerRank {
    /* owned */
    LedgerPart *value;
    int count;
} LedgerRank;
/* The schedule of a step, with the measured cost of each chunk: seconds of forward, backward by
 * inputs and backward by weights. */
typedef struct LedgerSchedule {
    /* owned; NULL: not known */
    char *name;
    ScheduleShape shape;
    /* [costs], where costs is 3 * chunks of the model; owned */
    double *cost;
    int costs;
} LedgerSchedule;
typedef struct LedgerHistory {
    /* in the order in which they began; owned */
    LedgerStart *start;
    int starts;
    /* The fields from `part` to `memory` are from the newest second line of a start. */
    /* parts of a step, parts of the critical path, and numbers of single ranks; owned */
    LedgerPart *part, *path;
    LedgerRank *rank;
    /* numbers of elements of part, path and rank */
    int parts, path_parts, rank_count;
    /* number of all ranks, of which `rank` may have only some; number of steps of the start */
    double ranks, steps;
    /* true: the parts have a forecast */
    bool has_forecast;
    LedgerSchedule schedule;
    LedgerMemory memory;
    /* versions of the programs and libraries of the last start, a text of lines; owned; NULL: not
     * known */
    char *versions;
    /* true: a torn line was left out */
    bool torn;
} LedgerHistory;
/* Reads ledger.jsonl; without it the history is empty. Lines that a crash has torn are left out.
 * ERR_IO: the file cannot be read. ERR_DATA: a line has other content than the run writes. Release
 * with ledger_history_fini. */
Status ledger_read(const char *folder, LedgerHistory *history);
void ledger_history_fini(LedgerHistory *history);

#define GOODPUT_PARTS(W)                                                                           \
    W(GOODPUT_KEPT, "steps")                                                                       \
    /* steps that a later start made again, because no checkpoint had them */                      \
    W(GOODPUT_REPEATED, "lost steps")                                                              \
    /* the time before the first step of a process */                                              \
    W(GOODPUT_STARTUP, "start-up")                                                                 \
    W(GOODPUT_EVAL, "eval")                                                                        \
    W(GOODPUT_CHECKPOINT, "checkpoint")                                                            \
    /* the time after a start has ended, before the next one begins */                             \
    W(GOODPUT_BETWEEN, "between starts")                                                           \
    W(GOODPUT_OTHER, "other")
typedef enum GoodputPart { GOODPUT_PARTS(LIST_CONSTANT) GOODPUT_PART_COUNT } GoodputPart;
extern const char *const goodput_names[GOODPUT_PART_COUNT];
/* The time of a run over all its starts, divided into parts. */
typedef struct Goodput {
    int starts, killed;
    /* wall_s is the sum of the parts */
    double wall_s, part_s[GOODPUT_PART_COUNT];
    /* number of steps that were made again, because they were lost when a start ended. Of a start
     * that was killed, only the steps up to its last line in metrics.jsonl are counted. */
    int64_t repeated;
} Goodput;
Goodput goodput_of(const LedgerHistory *history);

#endif
