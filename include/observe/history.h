/* The history of a run in ledger.jsonl. Each start appends a line before its first step and one at
 * its end; a start that is killed has no second line. Rank 0 writes; anyone may read. */
#ifndef WEFT_OBSERVE_HISTORY_H
#define WEFT_OBSERVE_HISTORY_H

#include "observe/ledger.h"

/* The end of metrics.jsonl: the step of its last whole line, and when the file was last changed, in
 * seconds since 1970; 0 and 0: there is none. */
typedef struct MetricsEnd {
    int64_t step;
    double changed;
} MetricsEnd;
MetricsEnd metrics_end(const char *folder);

/* Checks that ledger.jsonl can be written. ERR_IO. */
Status ledger_file_check(const char *folder);
/* The line of a start at its first step. */
typedef struct LedgerBegin {
    /* the last step before this start */
    int64_t step;
    /* seconds since its process began */
    double startup_s;
    /* metrics_end before this start changed the file */
    MetricsEnd earlier;
    /* lines of train_print_versions; borrowed */
    const char *versions;
} LedgerBegin;
/* Memory of the rank that uses most, in bytes: as planned, as measured (0: not known), and the peak
 * of the process with libraries. */
typedef struct LedgerMemory {
    int rank;
    double planned, measured, peak;
} LedgerMemory;
/* Append the line of a start that begins, and of one that ends after `step`. ERR_IO. */
Status ledger_write_start(const char *folder, const LedgerBegin *begin);
Status ledger_write_end(const char *folder, int64_t step, const Ledger *ledger,
                        const LedgerMemory *memory);

/* One start of a run. */
typedef struct LedgerStart {
    /* time of day when its process began, and when it ended, in seconds since 1970; 0: not known */
    double began, ended;
    double startup_s;
    /* the last step before this start, and its last step */
    int64_t from, to;
    /* whether the start has a last line. Without one it was killed or still runs, and `ended` and
     * `to` come from metrics.jsonl. */
    bool complete;
    /* seconds of steps, evaluations and saves; unless complete, all are in steps_s */
    double steps_s, eval_s, checkpoint_s;
    /* steps that a later start made again */
    int64_t repeated;
} LedgerStart;
/* A part of a step's time, or of the critical path. */
typedef struct LedgerPart {
    /* owned */
    char *name;
    double measured_s, forecast_s;
    bool has_forecast;
} LedgerPart;
/* Numbers of one rank: its number, stage, and seconds of a step by part. */
typedef struct LedgerRank {
    /* owned */
    LedgerPart *value;
    int count;
} LedgerRank;
/* The schedule of a step, with the measured cost of each chunk: three numbers, as TaskCost. */
typedef struct LedgerSchedule {
    /* owned; NULL: not known */
    char *name;
    ScheduleShape shape;
    /* [costs]; owned */
    double *cost;
    int costs;
} LedgerSchedule;
typedef struct LedgerHistory {
    /* in the order in which they began; owned */
    LedgerStart *start;
    int starts;
    /* the last line of a start that ended: its parts, ranks and steps, the parts of its critical
     * path, and single ranks; owned */
    LedgerPart *part, *path;
    LedgerRank *rank;
    int parts, path_parts, rank_count;
    double ranks, steps;
    /* the parts have a forecast */
    bool has_forecast;
    /* schedule and memory of the same line */
    LedgerSchedule schedule;
    LedgerMemory memory;
    /* versions of the last start; owned; NULL: not known */
    char *versions;
    /* a torn line was left out */
    bool torn;
} LedgerHistory;
/* Reads ledger.jsonl; without it the history is empty. Lines that a crash has torn are left out.
 * ERR_IO; ERR_DATA: a line is not as expected. Release with ledger_history_fini. */
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
/* Where the time of a run went, over all its starts. */
typedef struct Goodput {
    int starts, killed;
    /* the parts add up to wall_s */
    double wall_s, part_s[GOODPUT_PART_COUNT];
    /* steps that were made again; of starts that were killed, those up to their last line */
    int64_t repeated;
} Goodput;
Goodput goodput_of(const LedgerHistory *history);

#endif
