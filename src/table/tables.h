/* Private header of the table module: the state of a rank's sparse tables, commands to servers, and
 * the functions of each file. */
#ifndef WEFT_TABLE_TABLES_H
#define WEFT_TABLE_TABLES_H

#include "owner.h"

/* One step in flight. On a worker: its micro-batches and the lookups of their bags. On an owner:
 * the requests for its rows. */
typedef struct Flight {
    /* worker: micro-batches [micros], inputs of bags [micros][bags of the graph], lookups [bags];
     * owned */
    Batch *batch;
    BagRun *run;
    Lookup *look;
    /* requests to this owner, [bags]; owned */
    Owner *owner;
    /* loaded: true if `batch` has the micro-batches of a step; requested: true if their rows have
     * been requested; both false once the step has begun */
    bool loaded, requested;
    /* result of loading the micro-batches, and the error message, owned */
    Status status;
    char *error;
    /* arguments of the deferred update */
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
    /* now: index of the current step's flight; handed_out: number of its micro-batches that `next`
     * (tables.c) has returned */
    int now, handed_out;
    /* number of steps that are loaded ahead of the current one (table_steps_ahead); 0 in
     * evaluation */
    int ahead;
    /* pending: number of deferred updates; oldest: index of the oldest one's flight */
    int pending, oldest;
    /* ids: exchange of the ids of all bags together; rows, gradients: exchanges for each bag,
     * [bags]; owned */
    WorldSparse *ids;
    WorldSwap **rows, **gradients;
    /* flights whose ids, rows and gradients are being exchanged, or NULL */
    Flight *ids_of, *rows_of, *gradients_of;
    /* scratch: messages of one exchange to and from each rank, [ranks of world]; owned */
    WorldPart *to, *from;
    /* send buffer for ids, of out_room bytes; owned */
    char *out;
    size_t out_room;
} TableStream;

/* Ids of a store and pointers to their rows, sorted by (shard, id); shard s has entries first[s] ..
 * first[s + 1] - 1. */
typedef struct SortedRows {
    int64_t first[ROW_SHARDS + 1];
    /* [rows]; the arrays are owned, the rows are the store's */
    uint64_t *id;
    const float **row;
} SortedRows;

struct Tables {
    TablesPlan plan;
    /* is_worker: this rank computes; is_owner: this rank owns rows. Workers are ranks 0 .. workers
     * - 1, owners are ranks first_owner .. first_owner + owners - 1. */
    bool is_worker, is_owner;
    int workers, owners, first_owner;
    /* this rank's bags, [bags]; owned */
    Bag *bag;
    int bags;
    /* stores of the bags' tables, [stores]; those of bag b begin at store[first[b]]; owned */
    TableStore *store;
    int stores, *first;
    /* number of the owner of each shard, from 0 */
    int16_t owner[ROW_SHARDS];
    TableStream training, evaluation;
    /* true: the current step ends at a sync point, where no update stays deferred */
    bool sync_point;
    /* number of rows of all owners in each shard of each store at the last count,
     * [stores][ROW_SHARDS]; owned */
    int64_t *shard_rows;
    /* the rows of store number sorted_store, sorted; sorted_store is -1 if they are out of date */
    SortedRows sorted;
    int sorted_store;
    /* clock_s when the tables were made */
    double begun_s;
    /* Each server reports once whether it received a stop signal, at the latest when it ends.
     * stop_reports: on rank 0 the number of servers that have reported, on a server 1 after its
     * report. stop_requested: true if a server has received a signal. */
    int stop_reports;
    bool stop_requested;
    /* server: its tables, and their names; owned */
    SparseTable *server_tables;
    /* server: its watchdog, owned, or NULL */
    Watchdog *watchdog;
    /* mode async: the dense parameters; owned */
    struct DensePart *dense;
    /* server in mode async. waits: true for each worker that waits in tables_wait_at_sync_point,
     * owned; waiting: number of waiting workers */
    bool *waits;
    int waiting;
    /* server: true if the replay stops at this sync point */
    bool stops_replay;
    /* server in mode async: owner state for the request of one worker, [bags]; owned */
    Owner *request_owner;
    /* worker in mode geo: its local copies of rows, a store for each table, [stores]; a row has the
     * current values, then the values at the last sync point. Owned */
    RowStore **local;
    /* worker in mode geo: the latest request for new rows, [bags]; owned */
    struct RowRequest *request;
    /* server in modes geo and async: answers being sent, [workers][bags]; owned */
    struct Answer *answer;
    /* server in mode geo. pushed: changes that each worker has pushed at this sync point,
     * [workers][bags], owned; pushed_by: number of workers that have pushed all their changes */
    struct Pushed *pushed;
    int pushed_by;
};

/* Returns the index of the store of the graph's table number `table`, or -1 if this rank does not
 * have the table. */
int tables_store(const Tables *tables, int table);

/* Commands to servers. Rank 0 sends a command, then all workers and servers carry it out together.
 * A command "from any worker" is sent by each worker independently. */
typedef enum CommandKind {
    /* the server calls the function of stream.c of the same name (stream_ids) */
    COMMAND_IDS,
    COMMAND_ROWS,
    COMMAND_GRADIENTS,
    COMMAND_SQUARES,
    COMMAND_UPDATE,
    /* the server calls stream_settle */
    COMMAND_FORGET,
    /* the server calls the function of contents.c of the same name (contents_clear) */
    COMMAND_CLEAR,
    COMMAND_COUNT,
    COMMAND_COLLECT,
    COMMAND_PUT,
    COMMAND_REPORT,
    /* all ranks of the job start their watchdogs, or free them */
    COMMAND_WATCH,
    COMMAND_END,
    /* modes geo and async, from any worker: requests rows of a bag. The numbers of ids of the bag's
     * tables follow, then the ids. */
    COMMAND_PULL,
    /* mode geo, from any worker: pushes changes of rows, which follow the numbers and ids */
    COMMAND_PUSH,
    /* mode async, from any worker: pushes gradients of rows, which follow the numbers and ids and
     * are applied at once */
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
    /* evaluation: 1 for the stream of evaluation, 0 for that of training; flight: index in this
     * stream */
    int evaluation, flight;
    /* COMMAND_COLLECT: the rank that collects */
    int root;
    /* COMMAND_COUNT, COMMAND_COLLECT: part.table is the index of a store */
    TablePart part;
    /* COMMAND_UPDATE, COMMAND_PUSH_NOW, COMMAND_DENSE_PUSH */
    double lr, grad_scale;
    /* COMMAND_PULL, COMMAND_PUSH, COMMAND_PUSH_NOW: bag, and number of ids */
    int bag, ids;
    /* COMMAND_BEGIN, COMMAND_SYNC_POINT: number of completed steps, -1 before the first */
    int64_t step;
    /* COMMAND_SYNC_POINT: true if the run ends there */
    bool last;
    /* COMMAND_BEGIN: hash of the parameters */
    uint64_t start;
} Command;
/* Sends the command to all servers. Does nothing without servers, and on ranks other than 0. */
void command_servers(const Tables *tables, Command what);

/* Set-up and release, for workers and servers. The caller has set plan and is_worker. table[count]:
 * all tables of this rank; borrowed. */
void tables_init(Tables *tables, const SparseTable *table, int count);
void tables_fini(Tables *tables);
/* Returns the bytes of all rows on this rank. tables: a Tables. */
size_t tables_bytes(const void *tables);
/* stream.c. Returns the number of steps that training loads ahead; in modes sync and stale their
 * ids are also sent ahead. */
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
/* Worker: geo_request requests from the servers the rows of a step that are new in the period;
 * servers do not change rows within a period. geo_rows then copies the values of all ids of the
 * step from the worker's local rows, and geo_update updates the local rows. */
void geo_request(Tables *tables, Flight *flight);
void geo_rows(Tables *tables, Flight *flight);
void geo_update(Tables *tables, Flight *flight, double lr, double grad_scale);
/* Server: carries out a command of worker `from`. */
void geo_pull(Tables *tables, int from, const Command *what);
void geo_push(Tables *tables, int from, const Command *what);
/* Sends a command of this kind with the counts and ids of a bag to one owner. `more` has the
 * command's other fields. The ids are borrowed until world_send_wait(sending), or, if sending is
 * NULL, during the call. */
void send_ids_command(const Tables *tables, CommandKind kind, int bag, int owner,
                      const int32_t *count, const uint64_t *id, Command more, WorldSend *sending);
/* async.c: mode async */
void async_init(Tables *tables, const TableDense *param, int count, const Config *config);
void async_fini(Tables *tables);
/* Worker: requests the values of a step's ids and waits for them. */
void async_rows(Tables *tables, Flight *flight);
/* Server: carries out a command of worker `from` that belongs to mode async. */
void async_serve(Tables *tables, int from, const Command *what);
/* contents.c: access to all rows, for checkpoints and reports. contents_count, contents_collect and
 * contents_report are collective on workers and servers; only servers call contents_put. */
void contents_clear(Tables *tables);
/* Call it when rows change: frees the sorted rows. */
void contents_changed(Tables *tables);
void contents_count(Tables *tables, int store);
void contents_collect(Tables *tables, TablePart part, int root, void *out);
void contents_put(Tables *tables);
void contents_report(Tables *tables, OwnerReport *report);

#endif
