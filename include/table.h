/* table: sparse tables, whose rows are on the ranks that own them: on all ranks that compute
 * (workers), or on servers. A worker handles its micro-batches of a step together. It sends each
 * distinct id to the owner of its row and receives the row; after backward it sends the sum of the
 * row's gradients to the owner, who updates the row. The owner of a row depends only on its id and
 * the number of owners. A gradient is the sum over the tree of micro-batches and ranks in which
 * those without the id are left out, so in modes sync and stale results have the same bits on every
 * grid and with any number of servers. */
#ifndef WEFT_TABLE_H
#define WEFT_TABLE_H

#include "optim.h"
#include "pipeline.h"

/* Returns the owner, of `owners`, that has the rows of a shard. */
static inline int table_owner(int shard, int owners)
{
    return (int)((int64_t)shard * owners >> ROW_SHARD_BITS);
}

/* Values of grid.mode, with their names. */
#define TABLE_MODE_WORDS(W)                                                                        \
    W(TABLE_SYNC, "sync") W(TABLE_ASYNC, "async") W(TABLE_GEO, "geo") W(TABLE_STALE, "stale")
typedef enum TableMode { TABLE_MODE_WORDS(LIST_CONSTANT) } TableMode;
extern const char *const table_mode_names[];
/* True in modes in which workers make their steps independently. */
static inline bool table_mode_is_local(TableMode mode)
{
    return mode == TABLE_GEO || mode == TABLE_ASYNC;
}
/* Number of steps by which updates are deferred; 0 except in mode stale. */
static inline int table_staleness(const Config *config)
{
    return config->grid.mode == TABLE_STALE ? (int)config->grid.staleness : 0;
}
enum { TABLE_WORDS = 1 };
extern const ConfigWords table_words[TABLE_WORDS];

typedef struct Tables Tables;

/* A dense parameter, for mode async, in which servers have these, too. Offsets in elements in the
 * arenas of parameters and of gradients. */
typedef struct TableDense {
    int64_t offset, gradient, elements;
    /* number of its rule (optim_rule), and a factor on its learning rate */
    int rule_number;
    double lr_scale;
    bool decay;
} TableDense;

typedef struct TablesPlan {
    /* borrowed during the call */
    const Config *config;
    /* borrowed */
    const Graph *graph;
    /* for each node, whether this rank uses its tables; borrowed during the call */
    const bool *here;
    /* ranks that take part; the last `servers` of them own the rows, the others are workers.
     * servers 0: every rank is a worker and an owner. Borrowed */
    const World *world;
    int servers;
    TableMode mode;
    /* number of steps, as table_staleness returns it */
    int staleness;
    /* update rule and its number (optim_rule) of each of the graph's tables; borrowed during the
     * call */
    const OptimRule *rule;
    const int *rule_number;
    uint64_t seed;
    /* mode async: the dense parameters, [dense_count]; borrowed during the call */
    const TableDense *dense;
    int dense_count;
    /* how micro-batches are dealt to the workers */
    Deal deal;
    /* most micro-batches of one worker in a step, samples in a micro-batch, ids in a sample */
    int micros;
    int64_t micro_batch, id_most;
    /* number of the data's fields */
    int64_t fields;
    /* most bytes of an owner's rows; 0: no limit */
    size_t limit_bytes;
} TablesPlan;

/* Makes the tables of this rank's nodes; *tables is NULL if there are none. The caller owns the
 * result. Collective on world, with tables_serve on its servers. */
void tables_new(Tables **tables, const TablesPlan *plan);
/* True if rank 0 has been notified that a server received a stop signal. Not collective. */
bool tables_stop_wanted(Tables *tables);
/* Ends the servers and frees the tables. Collective. */
void tables_free(Tables **tables);
/* arguments of tables_serve */
typedef struct ServerPlan {
    /* borrowed */
    const Config *config;
    /* workers and servers that share the tables; all ranks of the job; borrowed */
    const World *world, *job;
    int servers;
    size_t limit_bytes;
    /* Mode async: folder of the servers' files with the order of requests, borrowed; NULL: none.
     * The order is written, or if `replay` is set it is followed, which gives the same bits. */
    const char *order;
    bool replay;
} ServerPlan;
/* Runs a server, from the workers' tables_new to their tables_free. Returns the status of opening
 * or closing the order file. Collective. */
Status tables_serve(const ServerPlan *plan);
/* Opens the servers' order files, before the first step of a run that has them. step: number of
 * completed steps; start: hash of the parameters; run_text: on rank 0, the configuration that
 * decides the run's bits (config_text). If a file is of another run: ERR_USAGE when it would be
 * written, ERR_DATA or ERR_CONFIG when it would be replayed. Collective; all ranks return the
 * same. */
Status tables_begin(Tables *tables, int64_t step, uint64_t start, const char *run_text);
/* Makes servers start the job's watchdog; the second call makes them free it. Call it on workers
 * just before they do the same, when none of them waits for a message. Not collective. */
void tables_watch(Tables *tables);

/* Returns a source that adds the rows of bags to the micro-batches of `inner`, which is borrowed
 * until tables_forget. The first micro-batch of a step takes all of the step from `inner`; the last
 * one takes the next step, whose ids travel in the background. `inner` must allow tables_micros_out
 * micro-batches to be out at a time. Collective on workers, step by step. */
BatchSource tables_source(Tables *tables, const BatchSource *inner);
/* Waits for the messages in progress and discards the steps that were loaded ahead from `inner`;
 * call it before `inner` is freed. Collective. */
void tables_forget(Tables *tables);
/* Like tables_source, for evaluation: there are no gradients, and no row is created. An id without
 * a row gets the values with which its row would begin. Workers have the same number of
 * micro-batches as in training. */
BatchSource tables_evaluation(Tables *tables, const BatchSource *inner);
/* Bytes for a bag with rows of `width` floats and steps of `ids` ids in `runs` runs of
 * micro-batches, besides the rows themselves. */
size_t tables_buffer_bytes(int width, int64_t ids, int staleness, int runs);
/* Number of steps that are in memory at a time. */
int table_flights(int staleness);
/* Number of micro-batches that a source has out at a time. */
int tables_micros_out(const TablesPlan *plan);

/* Sizes of a bag: number of its tables, floats of a row, and the most ids of one worker in a step
 * and between two sync points. */
typedef struct TableBagSize {
    int tables, width;
    int64_t ids, period_ids;
} TableBagSize;
typedef struct TableTraffic {
    TableMode mode;
    int servers, workers;
    /* modes sync and stale: the gradient's norm is needed at each step (optim.clip) */
    bool clips;
    /* modes sync and stale: runs of micro-batches, for each of which a row has a sum of
     * gradients */
    int runs;
    /* [bags]; borrowed */
    const TableBagSize *bag;
    int bags;
    /* mode async: floats from tables_dense_sizes */
    int64_t values, states;
} TableTraffic;
/* Messages of one kind between one worker and all owners except itself: the most if ids are spread
 * evenly over the owners. at_sync_point: sent at sync points only; else in every step. */
typedef struct TableMessages {
    const char *what;
    bool at_sync_point;
    int64_t messages;
    double bytes;
} TableMessages;
enum { TABLE_MESSAGES = 8 };
int tables_messages(const TableTraffic *of, TableMessages out[TABLE_MESSAGES]);
/* Number of requests of all workers in a step, counted like OwnerReport.requests. It is an upper
 * bound in modes geo and async, which send no request without ids. */
int64_t tables_requests(const TableTraffic *of);
/* Mode async: computes the number of floats of all dense parameters and of their optimizer state on
 * the servers. */
void tables_dense_sizes(const TableDense *param, int count, const Config *config, int owners,
                        int64_t *values, int64_t *states);

/* Sends the gradients of a step to the owners, who add them; call it after backward. This function
 * and the following ones are collective unless they say otherwise. */
void tables_reduce(Tables *tables);
/* out[i] = the sum of squares of the gradient of the graph's table i, the same on all ranks; 0 for
 * tables of other stages. Not for mode geo. */
void tables_grad_squares(Tables *tables, double *out);
/* Updates the rows of the step's ids, and creates those that do not exist. lr is the rate from
 * lr_at; gradients are multiplied by grad_scale first. An owner without memory for a new row ends
 * the job with ERR_MEMORY. */
void tables_update(Tables *tables, double lr, double grad_scale);
/* Mode stale, in which an update is made `staleness` steps later. Before each step call
 * tables_set_sync_point: the step ends at a sync point or not. After a step that does, call
 * tables_apply_deferred, which makes all deferred updates. */
void tables_set_sync_point(Tables *tables, bool at_sync_point);
void tables_apply_deferred(Tables *tables);
/* Mode geo, in which gradients and updates of a step are local to a worker: adds what all workers
 * have changed since the last sync point. */
void tables_exchange(Tables *tables);
/* Mode async: copies the servers' current values of the dense parameters to `params`. Functions of
 * this mode are not collective, except tables_wait_at_sync_point. */
void tables_dense_pull(Tables *tables, float *params);
/* Sends the gradients of a step. Servers update rows and dense parameters at once, in the order in
 * which workers' requests come. */
void tables_push(Tables *tables, const float *grads, double lr, double grad_scale);
/* Mode async: waits until all workers have called it and servers have done all that was sent to
 * them. step: number of completed steps, or -1 before the first; last: it is the run's last step.
 * Returns true where a replay has to stop. */
bool tables_wait_at_sync_point(Tables *tables, int64_t step, bool last);
/* Mode async: values and optimizer state of the dense parameters. tables_dense_put sends rank 0's
 * to the servers, tables_dense_get fetches the servers'. state[s] is the arena of slot s, in which
 * parameter i begins at at[i][s] (-1: it has no such slot). updates: number of updates made, for
 * rules that count them. */
typedef struct TableDenseState {
    float *params, *const *state;
    int64_t (*at)[OPTIM_SLOTS];
    int64_t updates;
} TableDenseState;
void tables_dense_put(Tables *tables, const TableDenseState *from);
void tables_dense_get(Tables *tables, const TableDenseState *to);
/* Removes all rows. */
void tables_clear(Tables *tables);

/* True if this rank has the graph's table number `table`. Not collective. */
bool tables_here(const Tables *tables, int table);
/* Number of floats of a row with its state. Not collective. */
int tables_floats(const Tables *tables, int table);
/* shard[ROW_SHARDS]: the number of rows of each shard. */
void tables_count(Tables *tables, int table, int64_t *shard);
/* Collects the rows of shards first .. end - 1, sorted by (shard, id), on worker `root`: floats
 * from .. from + count - 1 of each row, or, if count is 0, the ids, 8 bytes each. `out` has room
 * for all of them on the root. */
typedef struct TablePart {
    int table, first, end, from, count;
} TablePart;
void tables_collect(Tables *tables, TablePart part, int root, void *out);
/* Sends rows with their state to the owners of their ids. Each worker calls tables_put as often as
 * it likes between tables_put_begin and tables_put_end. Ends the job with ERR_MEMORY where an owner
 * has no room. tables_put is not collective. */
void tables_put_begin(Tables *tables);
void tables_put(Tables *tables, int table, const uint64_t *id, const float *row, int64_t count);
void tables_put_end(Tables *tables);
/* counts of one owner */
typedef struct OwnerReport {
    /* rows, and bytes of rows, in the owner's memory */
    int64_t rows;
    size_t bytes;
    /* since the start: requests, and rows that they asked for */
    int64_t requests, rows_requested;
    /* server: seconds since its start, and seconds in which it slept */
    double up_s, slept_s;
} OwnerReport;
/* Fills report[owners], allocated for the caller, and returns the number of owners. */
int tables_report(Tables *tables, OwnerReport **report);

#endif
