/* The history of a run in ledger.jsonl. Each start appends a line before its first step and a
 * second line at its end; a start that is killed has no second line. Rank 0 writes the file; any
 * process may read it. */
#ifndef WEFT_OBSERVE_HISTORY_H
#define WEFT_OBSERVE_HISTORY_H

#include "observe/ledger.h"

/* The end of metrics.jsonl. step: step of its last whole line; changed: time of the file's last
 * change in seconds since 1970. Both are 0 if there is no file. */
typedef struct MetricsEnd {
    int64_t step;
    double changed;
} MetricsEnd;
MetricsEnd metrics_read_end(const char *folder);

/* Checks that ledger.jsonl can be written. ERR_IO: it cannot. */
Status ledger_file_check(const char *folder);
/* Content of the first line that a start writes. */
typedef struct LedgerBegin {
    /* number of the last step before this start */
    int64_t step;
    /* seconds from the beginning of the process to this line */
    double startup_s;
    /* result of metrics_read_end before this start changed the file */
    MetricsEnd earlier;
    /* the lines that train_print_versions prints; borrowed */
    const char *versions;
} LedgerBegin;
/* Memory of the rank whose measured memory is largest, in bytes. planned: by its plan. measured:
 * growth of the process since before its trainer was made, or memory allocated on the device; 0:
 * not known. peak: largest resident size of the process so far, libraries included. */
typedef struct LedgerMemory {
    int rank;
    double planned, measured, peak;
} LedgerMemory;
/* ledger_write_start appends the first line of a start, ledger_write_end its second line. step:
 * number of the last step of the start. ERR_IO: the file cannot be written. */
Status ledger_write_start(const char *folder, const LedgerBegin *begin);
Status ledger_write_end(const char *folder, int64_t step, const Ledger *ledger,
                        const LedgerMemory *memory);

/* One start of a run. */
typedef struct LedgerStart {
    /* times at which its process began and ended, in seconds since 1970; 0: not known */
    double began, ended;
    /* seconds from the beginning of the process to its first line in ledger.jsonl */
    double startup_s;
    /* step_before: number of the last step before this start; last_step: number of the last step of
     * this start */
    int64_t step_before, last_step;
    /* true: the start has written its second line. false: it was killed or still runs. Then `ended`
     * is the time of the last change of metrics.jsonl, but not before the time at which the first
     * step began. last_step is the last step in metrics.jsonl, but at least step_before. */
    bool complete;
    /* seconds of steps, of evaluations, and of saves. If `complete` is false, steps_s is the sum of
     * all three, and eval_s and checkpoint_s are 0. */
    double steps_s, eval_s, checkpoint_s;
    /* number of steps that a later start made again */
    int64_t repeated;
} LedgerStart;
/* A part of a step's time, or of the critical path, in seconds per step. */
typedef struct LedgerPart {
    /* name of the part; owned */
    char *name;
    double measured_s, forecast_s;
    /* true: forecast_s is set */
    bool has_forecast;
} LedgerPart;
/* Numbers of one rank, as ledger.jsonl has them: "rank", "stage", and the parts of a step in
 * seconds per step. LedgerPart.name is the key of a number, LedgerPart.measured_s its value. */
typedef struct LedgerRank {
    /* [count]; owned */
    LedgerPart *part;
    int count;
} LedgerRank;
/* The schedule of a step, with the measured costs of each chunk: seconds of forward, of backward by
 * inputs and of backward by weights. */
typedef struct LedgerSchedule {
    /* name of the schedule (Schedule.name); owned; NULL: the schedule is not known */
    char *name;
    ScheduleShape shape;
    /* costs, three for each chunk of the model, chunk by chunk, [costs]; owned */
    double *cost;
    int costs;
} LedgerSchedule;
/* The content of ledger.jsonl. The fields from `part` to `memory` are from the newest line that a
 * start has written at its end. */
typedef struct LedgerHistory {
    /* starts in the order in which they began, [starts]; owned */
    LedgerStart *start;
    int starts;
    /* part: parts of a step, [parts]; path: parts of the critical path, [path_parts]; owned */
    LedgerPart *part, *path;
    /* numbers of single ranks, which may be only some of the ranks, [rank_count]; owned */
    LedgerRank *rank;
    int parts, path_parts, rank_count;
    /* ranks: number of all ranks; steps: number of steps of the start that has written this line */
    double ranks, steps;
    /* true: the parts have a forecast */
    bool has_forecast;
    LedgerSchedule schedule;
    LedgerMemory memory;
    /* versions of the program and its libraries in the last start, one per line; owned; NULL: not
     * known */
    char *versions;
    /* true: a torn line of the file was left out */
    bool torn;
} LedgerHistory;
/* Reads ledger.jsonl; if there is no such file, the history is empty. Lines that a crash has torn
 * are left out. ERR_IO: the file cannot be read. ERR_DATA: the file has a line that weft does not
 * write. Release with ledger_history_fini. */
Status ledger_read(const char *folder, LedgerHistory *history);
void ledger_history_fini(LedgerHistory *history);

/* Parts of the time of a run over all its starts. */
#define GOODPUT_PARTS(W)                                                                           \
    /* steps that no later start made again */                                                     \
    W(GOODPUT_KEPT, "steps")                                                                       \
    /* steps that a later start made again, because no checkpoint had them */                      \
    W(GOODPUT_REPEATED, "lost steps")                                                              \
    /* the time from the beginning of a start's process to its first step */                       \
    W(GOODPUT_STARTUP, "start-up")                                                                 \
    W(GOODPUT_EVAL, "eval")                                                                        \
    W(GOODPUT_CHECKPOINT, "checkpoint")                                                            \
    /* the time between the end of a start and the beginning of the next start */                  \
    W(GOODPUT_BETWEEN, "between starts")                                                           \
    W(GOODPUT_OTHER, "other")
typedef enum GoodputPart { GOODPUT_PARTS(LIST_CONSTANT) GOODPUT_PART_COUNT } GoodputPart;
extern const char *const goodput_names[GOODPUT_PART_COUNT];
/* The time of a run over all its starts, divided into parts. */
typedef struct Goodput {
    /* starts: number of starts; killed: number of starts that did not write their second line */
    int starts, killed;
    /* part_s: seconds of each part; wall_s: their sum */
    double wall_s, part_s[GOODPUT_PART_COUNT];
    /* number of steps that were made again because a start had lost them at its end; for a killed
     * start only the steps up to its last line in metrics.jsonl are counted */
    int64_t repeated;
} Goodput;
Goodput goodput_of(const LedgerHistory *history);

#endif
