/* Private header of the table module: the state of a rank's sparse tables, commands to servers, and
 * the functions of each file. */
#ifndef WEFT_TABLE_TABLES_H
#define WEFT_TABLE_TABLES_H

#include "owner.h"

/* One step in flight. On a worker: its micro-batches and the lookups of their bags. On an owner:
 * the requests for its rows. */
typedef struct Flight {
    /* worker: micro-batches of the step, [micro_batches]; owned */
    MicroBatch *batch;
    /* worker: input of each bag for each micro-batch, [micro_batches][bags of the graph]; owned */
    BagInput *bag_input;
    /* worker: lookup of each bag, [bags]; owned */
    Lookup *look;
    /* owner: the requests for its rows, [bags]; owned */
    Owner *owner;
    /* true: `batch` has the micro-batches of a step that has not begun */
    bool loaded;
    /* true: the rows of a step that has not begun have been requested */
    bool requested;
    /* result of loading the micro-batches */
    Status status;
    /* message of a failed load; owned */
    char *error;
    /* arguments of stream_update, if the step's update is deferred */
    double lr, grad_scale;
} Flight;

/* The steps in flight of training or of evaluation. Training loads the micro-batches of later steps
 * ahead. */
typedef struct TableStream {
    /* borrowed; NULL if this stream has not been made */
    Tables *tables;
    /* worker: source of the micro-batches */
    BatchSource inner;
    /* [flights], used in turn; owned */
    Flight *flight;
    int flights;
    /* current: index of the current step's flight; handed_out: number of this step's micro-batches
     * that next() in tables.c has returned */
    int current, handed_out;
    /* number of steps that are loaded ahead of the current one (table_steps_ahead); 0 in
     * evaluation */
    int ahead;
    /* pending: number of deferred updates; oldest: index of the flight whose update was deferred
     * first */
    int pending, oldest;
    /* exchange of the ids of all bags together; owned */
    WorldSparse *ids;
    /* rows: exchange of rows for each bag; gradients: exchange of gradients for each bag; [bags],
     * owned */
    WorldAlltoall **rows, **gradients;
    /* flights of the exchanges in progress: of ids (ids_of), of rows (rows_of) and of gradients
     * (gradients_of); NULL: no such exchange is in progress */
    Flight *ids_of, *rows_of, *gradients_of;
    /* messages of one exchange to each rank (`to`) and from each rank (`from`), [ranks of world];
     * scratch, owned */
    MemoryRange *to, *from;
    /* send buffer for ids; owned */
    char *out;
    /* size of `out` in bytes */
    size_t out_room;
} TableStream;

/* Ids of a store and pointers to their rows, sorted by (shard, id). Shard s has entries first[s] ..
 * first[s + 1] - 1. */
typedef struct SortedRows {
    int64_t first[ROW_SHARDS + 1];
    /* id of each row, [rows]; owned */
    uint64_t *id;
    /* pointer to each row, [rows]; the array is owned, the rows belong to the store */
    const float **row;
} SortedRows;

struct Tables {
    TablesPlan plan;
    /* is_worker: true if this rank computes; is_owner: true if this rank owns rows */
    bool is_worker, is_owner;
    /* workers are ranks 0 .. workers - 1, owners are ranks first_owner .. first_owner + owners -
     * 1 */
    int workers, owners, first_owner;
    /* bags whose layers this rank has, [bags]; owned. A server has all bags. */
    Bag *bag;
    int bags;
    /* one store for each table of the bags, [stores]; owned */
    TableStore *store;
    int stores;
    /* index in `store` of the first table of each bag, [bags]; owned */
    int *first_store;
    /* number of the owner of each shard, from 0 */
    int16_t shard_owner[ROW_SHARDS];
    TableStream training, evaluation;
    /* true: the current step ends at a sync point, where no update stays deferred */
    bool sync_point;
    /* number of rows of all owners in each shard of each store at the last count,
     * [stores][ROW_SHARDS]; owned */
    int64_t *shard_rows;
    /* sorted rows of one store */
    SortedRows sorted;
    /* index of the store whose rows `sorted` has; -1: `sorted` is out of date */
    int sorted_store;
    /* clock_s when the tables were made */
    double begun_s;
    /* Each server reports once whether it has received a stop signal, at the latest when it ends.
     * On rank 0 this is the number of servers that have reported, on a server it is 1 after the
     * server's report. */
    int stop_reports;
    /* rank 0: true if a server has reported that it received a stop signal */
    bool stop_requested;
    /* server: all tables, [stores]; owned with their names */
    SparseTable *server_tables;
    /* server: its watchdog, owned; NULL: it does not run */
    Watchdog *watchdog;
    /* mode async: the dense parameters; owned */
    struct DensePart *dense;
    /* server in mode async: true for each worker that waits in tables_wait_at_sync_point,
     * [workers]; owned */
    bool *waits;
    /* server in mode async: number of workers that wait there */
    int waiting;
    /* server in mode async: true if the replay stops at this sync point */
    bool stops_replay;
    /* server in mode async: owner state for the request of one worker, [bags]; owned */
    Owner *request_owner;
    /* worker in mode geo: its local copies of rows, a store for each table, [stores]; owned. A row
     * is its current values, then its values at the last sync point */
    RowStore **local;
    /* worker in mode geo: the latest request for new rows, [bags]; owned */
    struct RowRequest *request;
    /* server in modes geo and async: answers being sent, [workers][bags]; owned */
    struct Answer *answer;
    /* server in mode geo: changes that each worker has pushed at this sync point, [workers][bags];
     * owned */
    struct Pushed *pushed;
    /* server in mode geo: number of workers that have pushed all their changes */
    int pushed_by;
};

/* Returns the index of the store that has the graph's table number `table`; -1: this rank does not
 * have the table. */
int tables_store(const Tables *tables, int table);

/* Commands to servers. Rank 0 sends a command to all servers; then all workers and servers carry it
 * out together. Exceptions are commands "from any worker", which each worker sends to one server at
 * any time. */
typedef enum CommandKind {
    /* The server calls stream_ids, stream_rows, stream_gradients, stream_squares or stream_update,
     * as the command's name says. */
    COMMAND_IDS,
    COMMAND_ROWS,
    COMMAND_GRADIENTS,
    COMMAND_SQUARES,
    COMMAND_UPDATE,
    /* The server calls stream_settle. */
    COMMAND_FORGET,
    /* The server calls contents_clear, contents_count, contents_collect, contents_put or
     * contents_report, as the command's name says. */
    COMMAND_CLEAR,
    COMMAND_COUNT,
    COMMAND_COLLECT,
    COMMAND_PUT,
    COMMAND_REPORT,
    /* The server starts its watchdog or, if that runs, frees it. */
    COMMAND_WATCH,
    /* The server ends. */
    COMMAND_END,
    /* modes geo and async, from any worker: requests rows of a bag. Two messages follow: the number
     * of ids for each table of the bag, and the ids. */
    COMMAND_PULL,
    /* mode geo, from any worker: pushes changes of rows. Numbers and ids follow as for
     * COMMAND_PULL, then the changes. */
    COMMAND_PUSH,
    /* mode async, from any worker: pushes gradients of rows, which the server applies at once.
     * Numbers and ids follow as for COMMAND_PULL, then the gradients. */
    COMMAND_PUSH_NOW,
    /* mode async, from any worker: requests values of the dense parameters */
    COMMAND_DENSE_PULL,
    /* mode async, from any worker: pushes gradients of the dense parameters */
    COMMAND_DENSE_PUSH,
    /* mode async, from rank 0 alone: sets values and state of the dense parameters */
    COMMAND_DENSE_PUT,
    /* mode async, from any worker: requests the state of the dense parameters */
    COMMAND_DENSE_GET,
    /* mode async, from any worker: the worker waits in tables_wait_at_sync_point */
    COMMAND_SYNC_POINT,
    /* mode async: opens the order file before the first step */
    COMMAND_BEGIN
} CommandKind;
typedef struct Command {
    CommandKind kind;
    /* commands for stream.c. evaluation: 1 for the stream of evaluation, 0 for that of training;
     * flight: index of the flight in this stream */
    int evaluation, flight;
    /* COMMAND_COLLECT: rank that collects the rows */
    int root;
    /* COMMAND_COUNT, COMMAND_COLLECT: the rows; part.table is the index of a store */
    TablePart part;
    /* COMMAND_UPDATE, COMMAND_PUSH_NOW, COMMAND_DENSE_PUSH: as in tables_update */
    double lr, grad_scale;
    /* COMMAND_PULL, COMMAND_PUSH, COMMAND_PUSH_NOW. bag: index of the bag; ids: number of ids */
    int bag, ids;
    /* COMMAND_BEGIN, COMMAND_SYNC_POINT: number of completed steps. COMMAND_SYNC_POINT: -1 before
     * the first step */
    int64_t step;
    /* COMMAND_SYNC_POINT: true if the run ends at this sync point */
    bool last;
    /* COMMAND_BEGIN: hash of the parameters */
    uint64_t params_hash;
} Command;
/* On rank 0, sends the command to all servers. Does nothing on other ranks. */
void command_servers(const Tables *tables, Command what);

/* Sets up, and releases, what workers and servers have in common. The caller has set plan and
 * is_worker before tables_init. table[count]: all tables of this rank; borrowed. */
void tables_init(Tables *tables, const SparseTable *table, int count);
void tables_fini(Tables *tables);
/* Returns the bytes of all rows on this rank. tables: points to a Tables. */
size_t tables_bytes(const void *tables);
/* Functions of stream.c. table_steps_ahead returns the number of steps that training loads ahead.
 * In modes sync and stale training also sends the ids of those steps ahead. */
int table_steps_ahead(int staleness);
void stream_init(Tables *tables, TableStream *stream, bool gradients);
void stream_fini(TableStream *stream);
void stream_ids(TableStream *stream, Flight *flight);
void stream_rows(TableStream *stream, Flight *flight);
void stream_wait_rows(TableStream *stream);
void stream_gradients(TableStream *stream, Flight *flight);
void stream_squares(TableStream *stream, Flight *flight, double *out);
/* Updates the rows on an owner. */
void stream_update(TableStream *stream, Flight *flight, double lr, double grad_scale);
/* Waits for all messages in progress. */
void stream_settle(TableStream *stream);
/* geo.c: mode geo */
void geo_init(Tables *tables);
void geo_fini(Tables *tables);
/* For workers. geo_request requests from the servers the rows of a step that the worker does not
 * have yet; servers do not change rows between two sync points. geo_rows then copies the values of
 * all ids of the step from the worker's local rows. geo_update updates the local rows. */
void geo_request(Tables *tables, Flight *flight);
void geo_rows(Tables *tables, Flight *flight);
void geo_update(Tables *tables, Flight *flight, double lr, double grad_scale);
/* For servers: carry out a command of worker `from`. */
void serve_pull(Tables *tables, int from, const Command *what);
void serve_push(Tables *tables, int from, const Command *what);
/* Sends a command of this kind to one owner, with the numbers of ids and the ids of a bag. count:
 * number of ids of each table of the bag; more: the command's other fields. `count` and `id` are
 * borrowed during the call; if `sending` is not NULL, `id` is borrowed until
 * world_send_wait(sending). */
void send_ids_command(const Tables *tables, CommandKind kind, int bag, int owner,
                      const int32_t *count, const uint64_t *id, Command more, WorldSend *sending);
/* async.c: mode async */
void async_init(Tables *tables, const TableDense *param, int count, const Config *config);
void async_fini(Tables *tables);
/* For workers: requests the values of a step's ids and waits for them. */
void async_rows(Tables *tables, Flight *flight);
/* For servers: carries out a command of worker `from` that only mode async has. */
void async_serve(Tables *tables, int from, const Command *what);
/* contents.c: access to all rows, for checkpoints and reports. contents_count, contents_collect and
 * contents_report are collective on workers and servers; only servers call contents_put. */
void contents_clear(Tables *tables);
/* Frees the sorted rows, which are then out of date. Call it when rows change. */
void contents_changed(Tables *tables);
void contents_count(Tables *tables, int store);
void contents_collect(Tables *tables, TablePart part, int root, void *out);
void contents_put(Tables *tables);
void contents_report(Tables *tables, OwnerReport *report);

#endif
