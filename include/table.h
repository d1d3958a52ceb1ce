/* table: sparse tables, whose rows lie on the ranks that own them: on all that compute, or on
 * servers. A rank's micro-batches of a step are looked at together: their ids, each once, go to the
 * owners of their rows, the rows come back, and after backward the sum of each row's gradients goes
 * to its owner, who updates it. Who owns a row depends on its id alone and the number of owners; a
 * gradient is the sum over the tree of micro-batches and ranks in which those without the id are
 * left out. So the same bits come out on every grid, and with any number of servers. */
#ifndef WEFT_TABLE_H
#define WEFT_TABLE_H

#include "optim.h"
#include "pipeline.h"

/* The owner, of so many, whose rows of that shard are. */
static inline int table_owner(int shard, int owners)
{
    return (int)((int64_t)shard * owners >> ROW_SHARD_BITS);
}

/* The words of grid.mode. */
#define TABLE_MODE_WORDS(W)                                                                        \
    W(TABLE_SYNC, "sync") W(TABLE_ASYNC, "async") W(TABLE_GEO, "geo") W(TABLE_STALE, "stale")
typedef enum TableMode { TABLE_MODE_WORDS(LIST_CONSTANT) } TableMode;
extern const char *const table_mode_names[];
/* A rank makes its steps by itself. */
static inline bool table_mode_is_local(TableMode mode)
{
    return mode == TABLE_GEO || mode == TABLE_ASYNC;
}
/* Steps by which updates are late; 0 but in mode stale. */
static inline int table_staleness(const Config *config)
{
    return config->grid.mode == TABLE_STALE ? (int)config->grid.staleness : 0;
}
enum { TABLE_WORDS = 1 };
extern const ConfigWords table_words[TABLE_WORDS];

typedef struct Tables Tables;

/* In mode async servers have the other parameters, too: one of them, where it lies in the arena of
 * parameters, and of gradients. */
typedef struct TableDense {
    int64_t offset, gradient, elements;
    /* number of its rule, and a factor on its rate */
    int rule_number;
    double lr_scale;
    bool decay;
} TableDense;

typedef struct TablesPlan {
    /* borrowed for the call */
    const Config *config;
    /* borrowed; its tables of bags in nodes that `here` says, one a node, are this rank's */
    const Graph *graph;
    const bool *here;
    /* borrowed: ranks that have micro-batches of every step, and behind them `servers`, who own the
     * rows; 0: all ranks do */
    const World *world;
    int servers;
    TableMode mode;
    /* table_staleness */
    int staleness;
    /* borrowed for the call, one a table of the graph: who updates it, and its number */
    const OptimRule *rule;
    const int *rule_number;
    uint64_t seed;
    /* borrowed for the call: mode async; 0: none */
    const TableDense *dense;
    int dense_count;
    /* a step's micro-batches of this rank, samples of one, ids of a sample at most, its fields */
    int micros;
    int64_t micro_batch, id_most, fields;
    /* of an owner, for rows; 0: all that there is */
    size_t limit_bytes;
} TablesPlan;

/* *tables NULL where there are no tables here. Owner: the caller. Collective on world, with
 * tables_serve on its servers. */
void tables_new(Tables **tables, const TablesPlan *plan);
/* Has a signal asked a server to stop, as far as rank 0 knows? Not collective. */
bool tables_stop_wanted(Tables *tables);
/* Servers go home. */
void tables_free(Tables **tables);
/* A server's life, from tables_new of those who compute to their tables_free. Collective. */
typedef struct ServerPlan {
    /* borrowed; job: all ranks, of which the world's have to do with these tables */
    const Config *config;
    const World *world, *job;
    int servers;
    size_t limit_bytes;
    /* Borrowed: mode async, a folder for the ranks whose requests each server has answered, in
     * their order: written, or with `replay` followed, which gives the same bits. NULL: neither. */
    const char *order;
    bool replay;
} ServerPlan;
/* An error is one of the order's. */
Status tables_serve(const ServerPlan *plan);
/* Of a run with such an order, before its first step: servers open it. step: steps that have been
 * made; start: a hash of the parameters; of: on rank 0, what else decides the bits, as config_text.
 * A file of another run: ERR_USAGE where it is written, ERR_DATA or ERR_CONFIG where it is
 * followed. Collective; all agree. */
Status tables_begin(Tables *tables, int64_t step, uint64_t start, const char *of);
/* Of those who compute, before they call watchdog_new on the job, and then watchdog_free: servers
 * do the same. Once all have come so far, with nothing under way that they wait for. Not
 * collective. */
void tables_watch(Tables *tables);

/* Micro-batches of `inner`, which is borrowed until tables_forget, with their bags. The first one
 * of a step takes all of the step's out of it, and the last one those of the next step, whose ids
 * then travel while it is worked on: `inner` must have so many out at a time (tables_held).
 * Collective on those who compute, step by step. */
BatchSource tables_source(Tables *tables, const BatchSource *inner);
/* What was taken goes back, before inner goes. Collective. */
void tables_forget(Tables *tables);
/* The same for evaluation, where no gradients follow, and no row is made: an id that has none is
 * given the values that its row would begin with. Micro-batches go by the same numbers. */
BatchSource tables_evaluation(Tables *tables, const BatchSource *inner);
/* What a bag of rows of that width takes for steps with so many ids, beside the rows. */
size_t tables_buffer_bytes(int width, int64_t ids, int staleness);
/* Steps that are there at a time. */
int table_flights(int staleness);
/* Micro-batches that a source has out. */
int tables_held(const TablesPlan *plan);

/* What is sent, for a plan. A bag: its tables and their width; ids of a rank's step, and of its
 * steps between two borders, at most. */
typedef struct TableBagSize {
    int tables, width;
    int64_t ids, period_ids;
} TableBagSize;
typedef struct TableTraffic {
    TableMode mode;
    int servers, askers;
    /* modes sync and stale: each step's gradients have a norm (optim.clip) */
    bool clips;
    /* borrowed */
    const TableBagSize *bag;
    int bags;
    /* mode async: tables_dense_sizes */
    int64_t values, states;
} TableTraffic;
/* Between one rank that computes and all owners but itself, of one kind: at most, where ids are
 * owned evenly. In a step, or at a border. */
typedef struct TableMessages {
    const char *what;
    bool border;
    int64_t messages;
    double bytes;
} TableMessages;
enum { TABLE_MESSAGES = 8 };
int tables_messages(const TableTraffic *of, TableMessages out[TABLE_MESSAGES]);
/* In a step of all ranks, as TablesHeld counts them: at most in mode geo, and in mode async, which
 * has none where there are no ids. */
int64_t tables_requests(const TableTraffic *of);
/* Mode async: floats of all values and of all state that servers have of the other parameters. */
void tables_dense_sizes(const TableDense *param, int count, const Config *config, int owners,
                        int64_t *values, int64_t *states);

/* After a step's backward: the gradients go to the owners and are summed. Collective, all that
 * follows, but where it says so. */
void tables_reduce(Tables *tables);
/* out[i] = sum of squares of the gradient of the graph's table i, the same on all ranks; 0 for
 * tables that are not here. Not in mode geo. */
void tables_grad_squares(Tables *tables, double *out);
/* Updates the rows of the step's ids, and makes those that were not there. lr as lr_at gives it,
 * grad_scale multiplies gradients first. An owner that has no memory for a new row ends the job,
 * with ERR_MEMORY. */
void tables_update(Tables *tables, double lr, double grad_scale);
/* Mode stale, where that is done `staleness` steps later: before each step, are all updates made
 * behind it? And behind such a step: makes those that are left. */
void tables_border(Tables *tables, bool border);
void tables_catch_up(Tables *tables);
/* Mode geo, where a step's gradients and its update are this rank's own: what all ranks have
 * changed since the last time comes together. */
void tables_exchange(Tables *tables);
/* Mode async: this rank's values of the other parameters become the servers' of now. Not
 * collective, but tables_meet. */
void tables_dense_pull(Tables *tables, float *params);
/* A step's gradients: servers update at once, rows and other parameters, in the order in which
 * ranks come. */
void tables_push(Tables *tables, const float *grads, double lr, double grad_scale);
/* All ranks have come so far, and servers have done what they were sent. step: that many have been
 * made, and is it the run's last one; -1: before the first. true: a replay stops here. */
bool tables_meet(Tables *tables, int64_t step, bool last);
/* Values and state of the other parameters, of rank 0 to servers, or of servers to every rank that
 * asks. state[s] has slot s, where its place is param[i].state[s]; -1: there is none. updates: so
 * many have been made, where a rule counts them. */
typedef struct TableDenseState {
    float *params, *const *state;
    int64_t (*at)[OPTIM_SLOTS];
    int64_t updates;
} TableDenseState;
void tables_dense_put(Tables *tables, const TableDenseState *from);
void tables_dense_get(Tables *tables, const TableDenseState *to);
/* Forgets all rows. */
void tables_clear(Tables *tables);

/* Is the graph's table number `table` here? Floats of its row with its state. Not collective. */
bool tables_here(const Tables *tables, int table);
int tables_floats(const Tables *tables, int table);
/* shard[ROW_SHARDS]: rows of each shard. */
void tables_count(Tables *tables, int table, int64_t *shard);
/* Rows of shards first .. end - 1, sorted by (shard, id), to rank `root` of those who compute:
 * floats `from` .. from + count - 1 of each row, or where count is 0 their ids, 8 bytes each. out
 * has room for all of them there. */
typedef struct TablePart {
    int table, first, end, from, count;
} TablePart;
void tables_collect(Tables *tables, TablePart part, int root, void *out);
/* Rows of ids, with their state, to their owners: each rank puts what it likes, between two calls
 * of tables_put_begin and tables_put_end. ERR_MEMORY ends the job. Not collective, tables_put. */
void tables_put_begin(Tables *tables);
void tables_put(Tables *tables, int table, const uint64_t *id, const float *row, int64_t count);
void tables_put_end(Tables *tables);
/* What an owner has; and so far, requests and rows that it has answered with; of a server, how long
 * it has been there and has slept. */
typedef struct TablesHeld {
    int64_t rows;
    size_t bytes;
    int64_t requests, asked;
    double up_s, slept_s;
} TablesHeld;
/* held[owners]; returns how many owners there are. */
int tables_held_by(Tables *tables, TablesHeld **held);

#endif
