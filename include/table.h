/* table: sparse tables. The rows of a table are on the ranks that own them: on all ranks that
 * compute (workers), or on servers. A worker looks up the ids of all its micro-batches of a step
 * together. It sends each distinct id to the owner of the id's row and receives the row. After
 * backward it sends the sum of the row's gradients to the owner, and the owner updates the row. The
 * owner of a row depends only on its id and the number of owners. The gradient of a row is summed
 * over the tree of micro-batches and ranks; a leaf without the id is left out. In modes sync and
 * stale the results therefore have the same bits on every grid and with any number of servers. */
#ifndef WEFT_TABLE_H
#define WEFT_TABLE_H

#include "optim.h"
#include "pipeline.h"

/* Returns the number of the owner, 0 .. owners - 1, that has the rows of a shard. */
static inline int table_owner(int shard, int owners)
{
    return (int)((int64_t)shard * owners >> ROW_SHARD_BITS);
}

/* Values of grid.mode: when updates of parameters and tables are applied. */
#define UPDATE_MODE_WORDS(W)                                                                       \
    W(UPDATE_SYNC, "sync") W(UPDATE_ASYNC, "async") W(UPDATE_GEO, "geo") W(UPDATE_STALE, "stale")
typedef enum UpdateMode { UPDATE_MODE_WORDS(LIST_CONSTANT) } UpdateMode;
extern const char *const update_mode_names[];
/* Returns true for modes in which workers make their steps independently of each other. */
static inline bool update_mode_is_local(UpdateMode mode)
{
    return mode == UPDATE_GEO || mode == UPDATE_ASYNC;
}
/* Returns the number of steps by which updates are deferred; 0 except in mode stale. */
static inline int table_staleness(const Config *config)
{
    return config->grid.mode == UPDATE_STALE ? (int)config->grid.staleness : 0;
}
enum { TABLE_WORDS = 1 };
extern const ConfigWords table_words[TABLE_WORDS];

typedef struct Tables Tables;

/* A dense parameter, for mode async, in which servers also have the dense parameters. offset: first
 * float in the arena of parameters; gradient: first float in the arena of gradients; elements:
 * number of floats. */
typedef struct TableDense {
    int64_t offset, gradient, elements;
    /* number of the parameter's update rule (optim_rule) */
    int rule_number;
    /* factor on the rule's learning rate */
    double lr_scale;
    /* true: weight decay applies */
    bool decay;
} TableDense;

/* Arguments of tables_new. */
typedef struct TablesPlan {
    /* borrowed during the call */
    const Config *config;
    /* borrowed */
    const Graph *graph;
    /* uses_node[i] is true if this rank uses the tables of node i; borrowed during the call */
    const bool *uses_node;
    /* the workers and the servers; borrowed */
    const World *world;
    /* number of servers: the last `servers` ranks of world own the rows, the other ranks are
     * workers; 0: every rank is a worker and an owner */
    int servers;
    UpdateMode mode;
    /* number of steps by which updates are deferred (table_staleness) */
    int staleness;
    /* update rule of each table of the graph; borrowed during the call */
    const OptimRule *rule;
    /* number of each rule in `rule`, an argument of optim_rule; borrowed during the call */
    const int *rule_number;
    uint64_t seed;
    /* mode async: all dense parameters, [dense_count]; borrowed during the call */
    const TableDense *dense;
    int dense_count;
    /* order in which gradients of micro-batches are added (Plan.deal) */
    Deal deal;
    /* micro_batches: number of micro-batches of one worker in a step */
    int micro_batches;
    /* micro_batch: number of samples of a micro-batch; id_most: largest number of ids of a
     * sample */
    int64_t micro_batch, id_most;
    /* number of fields of ids in the data */
    int64_t fields;
    /* largest number of bytes of all rows of an owner; 0: no limit */
    size_t limit_bytes;
} TablesPlan;

/* Makes the tables of this rank's nodes; *tables is NULL if there are none. The caller owns
 * *tables. Collective on plan->world, whose servers call tables_serve instead. */
void tables_new(Tables **tables, const TablesPlan *plan);
/* Returns true on rank 0 if a server has reported that it received a stop signal. Not
 * collective. */
bool tables_stop_wanted(Tables *tables);
/* Ends the servers and frees the tables. Collective. */
void tables_free(Tables **tables);
/* Arguments of tables_serve. */
typedef struct ServerPlan {
    /* borrowed */
    const Config *config;
    /* world: the workers and the servers of the tables; job: all ranks of the job; borrowed */
    const World *world, *job;
    /* number of servers, and limit of an owner's rows: the members of TablesPlan with these
     * names */
    int servers;
    size_t limit_bytes;
    /* mode async: path of the folder of the servers' files with the order of requests; borrowed;
     * NULL: there are no such files */
    const char *order;
    /* true: the server follows the recorded order, which gives the same bits; false: it records
     * the order */
    bool replay;
} ServerPlan;
/* Runs a server, from the workers' tables_new to their tables_free. Returns the status of opening
 * or closing the order file. Collective, together with these two calls. */
Status tables_serve(const ServerPlan *plan);
/* Opens the servers' order files. Call it before the first step of a run that has such files. step:
 * number of completed steps; params_hash: hash of the parameters; run_text: on rank 0, the
 * configuration on which the bits of the run depend (config_text). If a file belongs to another
 * run, fails with ERR_USAGE when recording, and with ERR_DATA or ERR_CONFIG in a replay.
 * Collective; all ranks return the same Status. */
Status tables_begin(Tables *tables, int64_t step, uint64_t params_hash, const char *run_text);
/* The first call makes the servers start the job's watchdog, the second call makes them free it.
 * Call it just before the workers start or free their watchdog, while no worker waits for a
 * message. Not collective. */
void tables_toggle_watchdog(Tables *tables);

/* Returns a source that adds the rows of bags to the micro-batches of `inner`, which is borrowed
 * until tables_forget. Before it returns the first micro-batch of a step, it fetches all
 * micro-batches of the step from `inner`. When it returns the last micro-batch, it fetches the
 * micro-batches of the next step (in mode stale of the next two steps) if it has not fetched them
 * yet; their ids are sent in the background. `inner` must allow tables_micro_batches_out
 * micro-batches that are not released. Collective on workers in each step. */
BatchSource tables_source(Tables *tables, const BatchSource *inner);
/* Waits for the messages in progress, and discards the steps that were fetched ahead from `inner`
 * and, in mode stale, deferred updates. Call it before `inner` is freed. Collective. */
void tables_forget(Tables *tables);
/* Does what tables_source does, for evaluation: there are no gradients, and no row is created. An
 * id without a row gets the initial values of its row. Each worker has the same number of
 * micro-batches in a step as in training. */
BatchSource tables_evaluation(Tables *tables, const BatchSource *inner);
/* Returns the bytes of all buffers of a bag, without the rows themselves. width: number of floats
 * of a row; ids: largest number of ids of a step; runs: number of runs of micro-batches that a
 * worker has in a step (deal_runs). */
size_t tables_buffer_bytes(int width, int64_t ids, int staleness, int runs);
/* Returns the number of steps whose buffers are in memory at the same time. */
int table_steps_in_memory(int staleness);
/* Returns the number of micro-batches that a source fetches before it releases the first. */
int tables_micro_batches_out(const TablesPlan *plan);

/* Sizes of a bag. tables: number of its tables; width: number of floats of a row; ids: largest
 * number of ids of one worker in a step; period_ids: largest number of ids of one worker between
 * two sync points. */
typedef struct TableBagSize {
    int tables, width;
    int64_t ids, period_ids;
} TableBagSize;
/* The properties of a run on which the messages of its tables depend. */
typedef struct TableTraffic {
    UpdateMode mode;
    int servers, workers;
    /* true: the gradient's norm is needed at each step (optim.clip); modes sync and stale */
    bool clips;
    /* modes sync and stale: number of runs of micro-batches of a worker (deal_runs); a row has a
     * sum of gradients for each run */
    int runs;
    /* [bags]; borrowed */
    const TableBagSize *bag;
    int bags;
    /* mode async: the numbers that tables_dense_sizes computes */
    int64_t dense_values, dense_states;
} TableTraffic;
/* The messages of one kind between one worker and all other ranks that own rows. */
typedef struct TableMessages {
    /* content of the messages, as text; static */
    const char *what;
    /* true: the messages are sent at sync points; false: in every step */
    bool at_sync_point;
    /* largest number of messages */
    int64_t messages;
    /* largest number of bytes of all these messages, if ids are spread evenly over the owners */
    double bytes;
} TableMessages;
/* largest number of kinds of messages */
enum { TABLE_MESSAGES = 8 };
/* Computes the messages of each kind, and returns the number of kinds. */
int tables_messages(const TableTraffic *of, TableMessages out[TABLE_MESSAGES]);
/* Returns the number of requests of all workers in a step, counted as in OwnerReport.requests. In
 * modes geo and async the number is an upper limit, since a worker sends requests only to the
 * owners from which it needs rows. */
int64_t tables_requests(const TableTraffic *of);
/* Mode async: computes the number of floats of all dense parameters, and of their optimizer state,
 * on all servers together. */
void tables_dense_sizes(const TableDense *param, int count, const Config *config, int owners,
                        int64_t *values, int64_t *states);

/* Sends the gradients of a step to the owners, which add them. Call it after backward. This
 * function and the functions after it are collective on the workers unless their comment says
 * otherwise. */
void tables_reduce(Tables *tables);
/* Sets out[i] to the sum of squares of the gradient of table i of the graph, the same on all ranks;
 * 0 for tables of other stages. Only in modes sync and stale. */
void tables_grad_squares(Tables *tables, double *out);
/* Updates the rows of the step's ids, and creates rows that do not exist. lr is the rate from
 * lr_at; gradients are multiplied by grad_scale first. An owner without memory for a new row ends
 * the job with ERR_MEMORY. */
void tables_update(Tables *tables, double lr, double grad_scale);
/* Mode stale, in which an update is made `staleness` steps later. Call tables_set_sync_point before
 * each step, with true if the step ends at a sync point. After such a step call
 * tables_apply_deferred, which makes all deferred updates. */
void tables_set_sync_point(Tables *tables, bool at_sync_point);
void tables_apply_deferred(Tables *tables);
/* Mode geo, in which gradients and updates of a step are local to a worker: combines the changes
 * that all workers have made since the previous sync point. Call it at each sync point. */
void tables_exchange(Tables *tables);
/* Mode async: copies the servers' current values of the dense parameters to `params`. The functions
 * of mode async are not collective, except tables_wait_at_sync_point. */
void tables_dense_pull(Tables *tables, float *params);
/* Mode async: sends the gradients of a step to the servers, which update rows and dense parameters
 * immediately, in the order in which the requests of the workers arrive. */
void tables_push(Tables *tables, const float *grads, double lr, double grad_scale);
/* Mode async: waits until all workers have called it and the servers have carried out all requests
 * of the workers. step: number of completed steps, -1 before the first; last: true if the run ends
 * here. Returns true if a replay must stop here. Collective on the workers. */
bool tables_wait_at_sync_point(Tables *tables, int64_t step, bool last);
/* Mode async: values and optimizer state of the dense parameters. params: arena of the values.
 * state[s]: arena of state slot s; the state of parameter i begins there at float at[i][s], which
 * is -1 if the parameter has no such slot. updates: number of updates made, for rules that count
 * them. */
typedef struct TableDenseState {
    float *params, *const *state;
    int64_t (*at)[OPTIM_SLOTS];
    int64_t updates;
} TableDenseState;
/* tables_dense_put sends this state from rank 0 to the servers; tables_dense_get fetches it from
 * the servers. */
void tables_dense_put(Tables *tables, const TableDenseState *from);
void tables_dense_get(Tables *tables, const TableDenseState *to);
/* Removes all rows. */
void tables_clear(Tables *tables);

/* Returns true if this rank uses table `table` of the graph. Not collective. */
bool tables_is_used(const Tables *tables, int table);
/* Returns the number of floats of a row and its optimizer state. Not collective. */
int tables_floats(const Tables *tables, int table);
/* Fills shard[ROW_SHARDS] with the number of rows in each shard. */
void tables_count(Tables *tables, int table, int64_t *shard);
/* A part of a table: shards first .. end - 1, and of each row the floats float_first .. float_first
 * + float_count - 1 or, if float_count is 0, the id. */
typedef struct TablePart {
    int table, first, end, float_first, float_count;
} TablePart;
/* Collects a part of a table on worker `root`: for each row its float_count floats or its id (8
 * bytes), sorted by (shard, id). On the root `out` must have room for the rows or ids of all shards
 * of the part. tables_count must have counted the table's rows since they last changed. */
void tables_collect(Tables *tables, TablePart part, int root, void *out);
/* Stores `count` rows with their optimizer state at the owners of their ids. Each worker calls
 * tables_put any number of times between tables_put_begin and tables_put_end; tables_put is not
 * collective. With servers it sends each row to its owner. Without servers it stores only the rows
 * that this rank owns, and ignores other rows. An owner that lacks memory for a row ends the job
 * with ERR_MEMORY. */
void tables_put_begin(Tables *tables);
void tables_put(Tables *tables, int table, const uint64_t *id, const float *row, int64_t count);
void tables_put_end(Tables *tables);
/* Counts and times of one owner of rows. */
typedef struct OwnerReport {
    /* rows: number of rows in the owner's memory */
    int64_t rows;
    /* bytes of the owner's rows */
    size_t bytes;
    /* requests: number of requests of training since the start; rows_requested: number of rows that
     * they requested */
    int64_t requests, rows_requested;
    /* servers: up_s: seconds since the start of the server; slept_s: seconds in which it slept */
    double up_s, slept_s;
} OwnerReport;
/* Returns the number of owners, and sets *report to the reports of all owners, owned by the
 * caller. */
int tables_report(Tables *tables, OwnerReport **report);

#endif
