/* Private header of the table module: the state of a rank's sparse tables, commands to servers, and
 * the functions of each file. */
#ifndef WEFT_TABLE_TABLES_H
#define WEFT_TABLE_TABLES_H

#include "owner.h"

/* One step in flight: its micro-batches and the lookups of their bags; on an owner also the
 * requests for its rows. */
typedef struct Flight {
    /* worker: micro-batches [micros], inputs of bags [micros][bags of the graph], lookups [bags];
     * owned */
    Batch *batch;
    BagRun *run;
    Lookup *look;
    /* requests to this owner; owned: [bags] */
    Owner *owner;
    /* taken: its micro-batches have been taken; requested: its rows have been requested. status,
     * why: the error if taking failed; why is owned */
    bool taken, requested;
    Status status;
    char *why;
    /* arguments of its deferred update */
    double lr, grad_scale;
} Flight;

/* The steps in flight of training, which takes the next step's micro-batches ahead, or of
 * evaluation. */
typedef struct TableStream {
    /* borrowed; NULL: this stream has not been made */
    Tables *tables;
    BatchSource inner;
    /* owned: [flights], used in turn. now: the current step; handed_out: number of its
     * micro-batches that the executor has received */
    Flight *flight;
    int flights, now, handed_out;
    /* number of steps whose ids are sent ahead */
    int ahead;
    /* number of deferred updates, and the flight of the oldest one */
    int pending, oldest;
    /* Messages in progress: ids of all bags; rows and gradients of each bag, [bags]. ids_of,
     * rows_of, gradients_of: the flight of the messages in progress; NULL: none. to, from:
     * [world.size], scratch */
    WorldSparse *ids;
    WorldSwap **rows, **gradients;
    Flight *ids_of, *rows_of, *gradients_of;
    WorldPart *to, *from;
    /* send buffer for ids; owned */
    char *out;
    size_t out_room;
} TableStream;

/* Rows of a store sorted by (shard, id); shard s has rows first[s] .. first[s + 1] - 1. */
typedef struct SortedRows {
    int64_t first[ROW_SHARDS + 1];
    /* both owned: [rows] */
    uint64_t *id;
    const float **row;
} SortedRows;

struct Tables {
    TablesPlan plan;
    /* is_worker: this rank computes; is_owner: it owns rows. Workers are ranks 0 .. workers - 1,
     * owners begin at rank first_owner. */
    bool is_worker, is_owner;
    int workers, owners, first_owner;
    /* owned: this rank's bags, and the stores of their tables; bag b's begin at store[first[b]] */
    Bag *bag;
    TableStore *store;
    int bags, *first, stores;
    /* owner of each shard */
    int16_t owner[ROW_SHARDS];
    TableStream training, evaluation;
    /* mode stale: the current step ends at a sync point and leaves no update deferred */
    bool sync_point;
    /* owned: number of rows in each shard of each store at the last count, [stores][ROW_SHARDS];
     * the sorted rows of store sorted_store (-1: none) */
    int64_t *shard_rows;
    SortedRows sorted;
    int sorted_store;
    double begun_s;
    /* rank 0: number of servers that have reported whether they received a stop signal, and whether
     * one has. Each server reports once, at the latest when it ends. Server: stop_reports is 1 once
     * it has reported. */
    int stop_reports;
    bool stop_requested;
    /* server: its tables, with their names, owned; its watchdog, owned, or NULL */
    SparseTable *server_tables;
    Watchdog *watchdog;
    /* mode async: the dense parameters. Server: which workers wait in tables_wait_at_sync_point,
     * and how many */
    struct DensePart *dense;
    bool *waits;
    int waiting;
    /* server: the replay stops at this sync point */
    bool stops_replay;
    /* server in mode async: owner state for the request of one worker, [bags]; owned */
    Owner *request_owner;
    /* worker in mode geo: its local copy of rows in each store; a row is its current values, then
     * those of the last sync point. Owned */
    RowStore **local;
    /* worker in mode geo: the new rows that were requested last, [bags] */
    struct RowRequest *request;
    /* server: answers being sent, [workers][bags]; in mode geo what each worker has pushed in this
     * period, and how many workers have pushed everything */
    struct Answer *answer;
    struct Pushed *pushed;
    int pushed_by;
};

/* Returns the store of the graph's table; -1: this rank does not have it. */
int tables_store(const Tables *tables, int table);

/* Commands to servers. Rank 0 sends one before all workers and servers do their parts of it
 * together; those "from any worker" are sent by each worker on its own. */
typedef enum CommandKind {
    /* the functions stream_ids, stream_rows and so on, then those of contents.c */
    COMMAND_IDS,
    COMMAND_ROWS,
    COMMAND_GRADIENTS,
    COMMAND_SQUARES,
    COMMAND_UPDATE,
    COMMAND_FORGET,
    COMMAND_CLEAR,
    COMMAND_COUNT,
    COMMAND_COLLECT,
    COMMAND_PUT,
    COMMAND_REPORT,
    /* all ranks of the job start their watchdogs, or free them */
    COMMAND_WATCH,
    COMMAND_END,
    /* rows of a bag, from any worker: request, or push of changes; followed by the counts of the
     * bag's tables, the ids, and for COMMAND_PUSH the changes */
    COMMAND_PULL,
    COMMAND_PUSH,
    /* mode async, from any worker: gradients of rows; values and gradients of dense parameters;
     * their values and state to a server or back; a worker waits in tables_wait_at_sync_point */
    COMMAND_PUSH_NOW,
    COMMAND_DENSE_PULL,
    COMMAND_DENSE_PUSH,
    COMMAND_DENSE_PUT,
    COMMAND_DENSE_GET,
    COMMAND_SYNC_POINT,
    /* mode async: opens the order file before the first step */
    COMMAND_BEGIN
} CommandKind;
typedef struct Command {
    CommandKind kind;
    /* evaluation, flight: stream and flight; root: the rank that collects; part.table is a store's
     * number */
    int evaluation, flight, root;
    TablePart part;
    double lr, grad_scale;
    /* COMMAND_PULL, COMMAND_PUSH: bag, and number of ids */
    int bag, ids;
    /* COMMAND_BEGIN, COMMAND_SYNC_POINT: number of completed steps, -1 before the first; last: it
     * is the run's last step. start: hash of the parameters (COMMAND_BEGIN) */
    int64_t step;
    bool last;
    uint64_t start;
} Command;
void command_servers(const Tables *tables, Command what);

/* Set-up and release, for workers and servers. */
void tables_init(Tables *tables, const SparseTable *of, int count);
void tables_fini(Tables *tables);
/* Bytes of all rows on this rank. The argument is a Tables. */
size_t tables_bytes(const void *tables);
/* stream.c. Returns the number of steps whose ids are sent ahead. */
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
/* Worker: geo_request requests the ids of a step that are new in the period from servers, whose
 * rows do not change within a period. geo_rows then copies the values of all the step's ids from
 * the worker's local rows, and geo_update updates these. */
void geo_request(Tables *tables, Flight *flight);
void geo_rows(Tables *tables, Flight *flight);
void geo_update(Tables *tables, Flight *flight, double lr, double grad_scale);
/* Server: carries out a command of worker `from`. */
void geo_pull(Tables *tables, int from, const Command *what);
void geo_push(Tables *tables, int from, const Command *what);
/* Sends a command of this kind with the counts and ids of a bag to one owner. `more` has its other
 * fields. The ids are being sent until world_send_wait(sending); if sending is NULL they have left
 * when the call returns. */
void send_ids_command(const Tables *tables, CommandKind kind, int bag, int owner,
                      const int32_t *count, const uint64_t *id, Command more, WorldSend *sending);
/* async.c: mode async */
void async_init(Tables *tables, const TableDense *param, int count, const Config *config);
void async_fini(Tables *tables);
/* Worker: requests the values of a step's ids and waits for them. */
void async_rows(Tables *tables, Flight *flight);
/* Server: carries out a command of worker `from` that belongs to mode async. */
void async_serve(Tables *tables, int from, const Command *what);
/* contents.c: what checkpoints and reports need of the rows */
void contents_clear(Tables *tables);
/* Call it when rows change: frees the sorted rows. */
void contents_changed(Tables *tables);
void contents_count(Tables *tables, int store);
void contents_collect(Tables *tables, TablePart part, int root, void *out);
void contents_put(Tables *tables);
void contents_report(Tables *tables, OwnerReport *report);

#endif
