/* table: sparse tables. Their rows are on the ranks that own them: on all ranks that compute
 * (workers), or on servers. A worker looks up the ids of all its micro-batches of a step together.
 * It sends each distinct id to the owner of the id's row and receives the row; after backward it
 * sends the sum of the row's gradients to the owner, and the owner updates the row. The owner of a
 * row depends only on its id and the number of owners. A row's gradient is summed over the tree of
 * micro-batches and ranks; a leaf without the id is left out. In modes sync and stale results
 * therefore have the same bits on every grid and with any number of servers. */
#ifndef WEFT_TABLE_H
#define WEFT_TABLE_H

#include "optim.h"
#include "pipeline.h"

/* Returns the number of the owner, 0 .. owners - 1, that has the rows of a shard. */
static inline int table_owner(int shard, int owners)
{
    return (int)((int64_t)shard * owners >> ROW_SHARD_BITS);
}

/* Values of grid.mode, with their names. */
#define TABLE_MODE_WORDS(W)                                                                        \
    W(TABLE_SYNC, "sync") W(TABLE_ASYNC, "async") W(TABLE_GEO, "geo") W(TABLE_STALE, "stale")
typedef enum TableMode { TABLE_MODE_WORDS(LIST_CONSTANT) } TableMode;
extern const char *const table_mode_names[];
/* Returns true for modes in which workers make their steps independently of each other. */
static inline bool table_mode_is_local(TableMode mode)
{
    return mode == TABLE_GEO || mode == TABLE_ASYNC;
}
/* Returns the number of steps by which updates are deferred; 0 except in mode stale. */
static inline int table_staleness(const Config *config)
{
    return config->grid.mode == TABLE_STALE ? (int)config->grid.staleness : 0;
}
enum { TABLE_WORDS = 1 };
extern const ConfigWords table_words[TABLE_WORDS];

typedef struct Tables Tables;

/* A dense parameter, for mode async, in which servers have the dense parameters, too. offset and
 * gradient are offsets in the arenas of parameters and of gradients, in elements. */
typedef struct TableDense {
    int64_t offset, gradient, elements;
    /* number of the parameter's update rule (optim_rule), and a factor on the rule's learning
     * rate */
    int rule_number;
    double lr_scale;
    /* true: weight decay applies */
    bool decay;
} TableDense;

typedef struct TablesPlan {
    /* borrowed during the call */
    const Config *config;
    /* borrowed */
    const Graph *graph;
    /* true for each node of the graph whose tables this rank uses; borrowed during the call */
    const bool *here;
    /* the workers and servers: the last `servers` ranks own the rows, the others are workers. If
     * servers is 0, every rank is a worker and an owner. Borrowed. */
    const World *world;
    int servers;
    TableMode mode;
    /* number of steps by which updates are deferred (table_staleness) */
    int staleness;
    /* update rule of each of the graph's tables, and the rule's number (optim_rule); borrowed
     * during the call */
    const OptimRule *rule;
    const int *rule_number;
    uint64_t seed;
    /* mode async: all dense parameters, [dense_count]; borrowed during the call */
    const TableDense *dense;
    int dense_count;
    /* order in which gradients of micro-batches are added (Plan.deal) */
    Deal deal;
    /* micros: number of micro-batches of one worker in a step; micro_batch: samples in a
     * micro-batch; id_most: most ids in a sample */
    int micros;
    int64_t micro_batch, id_most;
    /* number of fields of the data */
    int64_t fields;
    /* most bytes of all rows of an owner, or 0 for no limit */
    size_t limit_bytes;
} TablesPlan;

/* Makes the tables of this rank's nodes; *tables is NULL if there are none. The caller owns the
 * result. Collective on world; servers call tables_serve instead. */
void tables_new(Tables **tables, const TablesPlan *plan);
/* Returns true on rank 0 if a server has reported that it received a stop signal. Not
 * collective. */
bool tables_stop_wanted(Tables *tables);
/* Ends the servers and frees the tables. Collective. */
void tables_free(Tables **tables);
/* arguments of tables_serve */
typedef struct ServerPlan {
    /* borrowed */
    const Config *config;
    /* world: the workers and the servers of the tables; job: all ranks of the job; both borrowed */
    const World *world, *job;
    int servers;
    size_t limit_bytes;
    /* Mode async: folder of the servers' files with the order of requests, borrowed; NULL if there
     * are no such files. replay: false to record the order, true to follow a recorded order, which
     * gives the same bits. */
    const char *order;
    bool replay;
} ServerPlan;
/* Runs a server, from the workers' tables_new to their tables_free. Returns the status of opening
 * or closing the order file. Collective. */
Status tables_serve(const ServerPlan *plan);
/* Opens the servers' order files, before the first step of a run that has them. step: number of
 * completed steps; start: hash of the parameters; run_text: on rank 0, the configuration that
 * decides the run's bits (config_text). If a file belongs to another run: ERR_USAGE when recording,
 * ERR_DATA or ERR_CONFIG in a replay. Collective; all ranks return the same Status. */
Status tables_begin(Tables *tables, int64_t step, uint64_t start, const char *run_text);
/* The first call makes the servers start the job's watchdog, the second call makes them free it.
 * Call it just before the workers start or free theirs, while no worker waits for a message. Not
 * collective. */
void tables_watch(Tables *tables);

/* Returns a source that adds the rows of bags to the micro-batches of `inner`, which is borrowed
 * until tables_forget. Before the source returns the first micro-batch of a step, it fetches all
 * micro-batches of the step from `inner`. When it returns the last micro-batch, it fetches the
 * micro-batches of the next step, or in mode stale of the next two steps, if it has not fetched
 * them yet; their ids are sent in the background. `inner` must allow tables_micros_out
 * micro-batches that are not released. Collective on workers in each step. */
BatchSource tables_source(Tables *tables, const BatchSource *inner);
/* Waits for the messages in progress and discards the steps that were loaded ahead from `inner`,
 * and deferred updates (mode stale); call it before `inner` is freed. Collective. */
void tables_forget(Tables *tables);
/* Like tables_source, for evaluation: there are no gradients, and no row is created. An id without
 * a row gets the initial values of its row. Each worker has the same number of micro-batches in a
 * step as in training. */
BatchSource tables_evaluation(Tables *tables, const BatchSource *inner);
/* Returns the bytes of all buffers of a bag, without the rows themselves. width: floats of a row;
 * ids: most ids of a step; runs: number of runs of consecutive micro-batches that a worker has in a
 * step (deal_runs). */
size_t tables_buffer_bytes(int width, int64_t ids, int staleness, int runs);
/* Returns the number of steps whose buffers are in memory at a time. */
int table_flights(int staleness);
/* Returns the number of micro-batches that a source fetches before it releases the first. */
int tables_micros_out(const TablesPlan *plan);

/* Sizes of a bag. tables: number of its tables; width: floats of a row; ids: most ids of one worker
 * in a step; period_ids: most ids of one worker between two sync points. */
typedef struct TableBagSize {
    int tables, width;
    int64_t ids, period_ids;
} TableBagSize;
typedef struct TableTraffic {
    TableMode mode;
    int servers, workers;
    /* true: the gradient's norm is needed at each step (optim.clip); modes sync and stale */
    bool clips;
    /* modes sync and stale: number of runs of micro-batches (deal_runs); a row has a sum of
     * gradients for each run */
    int runs;
    /* [bags]; borrowed */
    const TableBagSize *bag;
    int bags;
    /* mode async: numbers of floats from tables_dense_sizes */
    int64_t values, states;
} TableTraffic;
/* The messages of one kind between one worker and all other ranks that own rows: their largest
 * number, and their largest bytes if ids are spread evenly over the owners. at_sync_point: true if
 * they are sent at sync points, false if in every step. */
typedef struct TableMessages {
    const char *what;
    bool at_sync_point;
    int64_t messages;
    double bytes;
} TableMessages;
enum { TABLE_MESSAGES = 8 };
int tables_messages(const TableTraffic *of, TableMessages out[TABLE_MESSAGES]);
/* Returns the number of requests of all workers in a step, counted like OwnerReport.requests. In
 * modes geo and async it is an upper bound, since a worker sends no request that has no ids. */
int64_t tables_requests(const TableTraffic *of);
/* Mode async: computes the number of floats of all dense parameters, and of their optimizer state,
 * on all servers together. */
void tables_dense_sizes(const TableDense *param, int count, const Config *config, int owners,
                        int64_t *values, int64_t *states);

/* Sends the gradients of a step to the owners, which add them. Call it after backward. This
 * function and the following functions are collective on the workers unless their comment says
 * otherwise. */
void tables_reduce(Tables *tables);
/* Sets out[i] to the sum of squares of the gradient of the graph's table i, the same on all ranks;
 * 0 for tables of other stages. Modes sync and stale only. */
void tables_grad_squares(Tables *tables, double *out);
/* Updates the rows of the step's ids, and creates those that do not exist. lr is the rate from
 * lr_at; gradients are multiplied by grad_scale first. An owner without memory for a new row ends
 * the job with ERR_MEMORY. */
void tables_update(Tables *tables, double lr, double grad_scale);
/* Mode stale, in which an update is made `staleness` steps later. Call tables_set_sync_point before
 * each step, with true if the step ends at a sync point. After such a step call
 * tables_apply_deferred, which makes all deferred updates. */
void tables_set_sync_point(Tables *tables, bool at_sync_point);
void tables_apply_deferred(Tables *tables);
/* Mode geo, in which gradients and updates of a step are local to a worker: adds the changes that
 * all workers have made since the last sync point. Call it at each sync point. */
void tables_exchange(Tables *tables);
/* Mode async: copies the servers' current values of the dense parameters to `params`. The functions
 * of mode async are not collective, except tables_wait_at_sync_point. */
void tables_dense_pull(Tables *tables, float *params);
/* Mode async: sends the gradients of a step. Servers update rows and dense parameters at once, in
 * the order in which the workers' requests arrive. */
void tables_push(Tables *tables, const float *grads, double lr, double grad_scale);
/* Mode async: waits until all workers have called it and servers have carried out all their
 * requests. step: number of completed steps, -1 before the first; last: true if the run ends here.
 * Returns true if a replay has to stop here. */
bool tables_wait_at_sync_point(Tables *tables, int64_t step, bool last);
/* Mode async: values and optimizer state of the dense parameters. tables_dense_put sends them from
 * rank 0 to the servers, tables_dense_get fetches them from the servers. state[s] is the arena of
 * state slot s; the state of parameter i begins there at element at[i][s], which is -1 if the
 * parameter has no such slot. updates: number of updates made, for rules that count them. */
typedef struct TableDenseState {
    float *params, *const *state;
    int64_t (*at)[OPTIM_SLOTS];
    int64_t updates;
} TableDenseState;
void tables_dense_put(Tables *tables, const TableDenseState *from);
void tables_dense_get(Tables *tables, const TableDenseState *to);
/* Removes all rows. */
void tables_clear(Tables *tables);

/* Returns true if this rank uses the graph's table number `table`. Not collective. */
bool tables_here(const Tables *tables, int table);
/* Returns the number of floats of a row and its optimizer state. Not collective. */
int tables_floats(const Tables *tables, int table);
/* Fills shard[ROW_SHARDS] with the number of rows in each shard. */
void tables_count(Tables *tables, int table, int64_t *shard);
/* Collects the rows of shards first .. end - 1, sorted by (shard, id), on worker `root`: floats
 * from .. from + count - 1 of each row, or, if count is 0, the ids, 8 bytes each. On the root `out`
 * must have room for the rows or ids of all these shards. tables_count must have counted the
 * table's rows since they last changed. */
typedef struct TablePart {
    int table, first, end, from, count;
} TablePart;
void tables_collect(Tables *tables, TablePart part, int root, void *out);
/* Stores rows with their optimizer state at the owners of their ids. Each worker calls tables_put
 * any number of times between tables_put_begin and tables_put_end; tables_put is not collective.
 * With servers it sends each row to its owner; without servers it stores only the rows that this
 * rank owns and ignores the others. An owner that lacks memory for a row ends the job with
 * ERR_MEMORY. */
void tables_put_begin(Tables *tables);
void tables_put(Tables *tables, int table, const uint64_t *id, const float *row, int64_t count);
void tables_put_end(Tables *tables);
/* counts of one owner */
typedef struct OwnerReport {
    /* rows, and bytes of rows, in the owner's memory */
    int64_t rows;
    size_t bytes;
    /* requests: number of requests of training since the start; rows_requested: number of rows that
     * they requested */
    int64_t requests, rows_requested;
    /* on a server: seconds since its start, and seconds in which it slept */
    double up_s, slept_s;
} OwnerReport;
/* Fills report[owners], allocated for the caller, and returns the number of owners. */
int tables_report(Tables *tables, OwnerReport **report);

#endif
