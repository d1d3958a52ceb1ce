/* What sparse tables of a run are made of, for the files of the module. */
#ifndef WEFT_TABLE_TABLES_H
#define WEFT_TABLE_TABLES_H

#include "owner.h"

/* A step's micro-batches and what their bags ask; on an owner what is asked of it. */
typedef struct Flight {
    /* Of who asks; owned: [micros], [micros][bags of the graph]; [bags] */
    Batch *batch;
    BagRun *run;
    Lookup *look;
    /* of an owner; owned: [bags] */
    Owner *owner;
    /* its micro-batches are here, its rows have been asked for; owned: why they are not, where one
     * failed */
    bool taken, asked;
    Status status;
    char *why;
    /* what its update was told */
    double lr, grad_scale;
} Flight;

/* Micro-batches on their way: of training, where the next step's are taken ahead, or of
 * evaluation. */
typedef struct TableStream {
    /* borrowed; NULL: not made */
    Tables *tables;
    BatchSource inner;
    /* owned: [flights], steps in turn; the one that is worked on, and how many of its micro-batches
     * are out */
    Flight *flight;
    int flights, now, given;
    /* ids are sent so many steps ahead */
    int ahead;
    /* updates that are still to be made, and which flight's comes first */
    int pending, oldest;
    /* ids of all bags; of each bag, rows and gradients: one step's at a time, and whose they are,
     * while they are on their way; NULL: nobody's */
    WorldSparse *ids;
    WorldSwap **rows, **gradients;
    Flight *ids_of, *rows_of, *gradients_of;
    WorldPart *to, *from;
    /* owned: messages of ids, as they are sent */
    char *out;
    size_t out_room;
} TableStream;

/* Rows of a store, sorted by (shard, id); those of shard s are number first[s] .. first[s + 1]
 * - 1. */
typedef struct SortedRows {
    int64_t first[ROW_SHARDS + 1];
    /* owned, both */
    uint64_t *id;
    const float **row;
} SortedRows;

struct Tables {
    TablesPlan plan;
    /* Does this rank compute, does it own rows? Ranks 0 .. askers - 1 of the world ask; owners are
     * from rank first_owner on. */
    bool asks, owns;
    int askers, owners, first_owner;
    /* owned: bags that are here; their tables' stores, bag by bag: those of bag b from first[b] on
     */
    Bag *bag;
    TableStore *store;
    int bags, *first, stores;
    /* of each shard, its owner */
    int16_t owner[ROW_SHARDS];
    TableStream training, evaluation;
    /* mode stale: no update is left open behind this step */
    bool border;
    /* owned: rows of each shard of each store, as they were counted last; one store's rows, sorted;
     * -1: none */
    int64_t *shard_rows;
    SortedRows sorted;
    int sorted_store;
    double begun_s;
    /* Of rank 0: servers that have said whether they were asked to stop, which each does once, at
     * its end at the latest; has one been? Of a server: 1, it has. */
    int signs;
    bool stop_asked;
    /* on a server; owned, names, too; and who watches it: owned, NULL: nobody */
    SparseTable *made;
    Watchdog *watchdog;
    /* mode async: the other parameters; on a server also who has come to a meeting, and owners of
     * one rank's requests, [bags] */
    struct DensePart *dense;
    bool *met_by;
    int met;
    /* of a server: a replay has to stop where all meet now */
    bool stops;
    Owner *now;
    /* mode geo; owned: of who asks, each store's rows as this rank has changed them: a row is its
     * values, then those that it had before */
    RowStore **local;
    /* [bags]: new rows of the step that was asked for last */
    struct Asked *asked;
    /* of a server: [askers][bags], the answers that are on their way, what has been pushed in this
     * period, and how many ranks have pushed all */
    struct Answer *answer;
    struct Pushed *pushed;
    int pushed_by;
};

/* Of the graph's table: number of its store; -1: it is not here. */
int tables_store(const Tables *tables, int table);

/* What those who compute say to servers, rank 0 for all of them, before all of them and the servers
 * do it. */
typedef enum SayKind {
    SAY_IDS,
    SAY_ROWS,
    SAY_GRADIENTS,
    SAY_SQUARES,
    SAY_UPDATE,
    SAY_FORGET,
    SAY_CLEAR,
    SAY_COUNT,
    SAY_COLLECT,
    SAY_PUT,
    SAY_HELD,
    /* all ranks of the job begin to be watched, or end it */
    SAY_WATCH,
    SAY_END,
    /* of anybody, and followed by counts of the bag's tables, ids, and deltas of rows */
    SAY_PULL,
    SAY_PUSH,
    /* of anybody, mode async: rows' gradients; the other parameters' values, gradients, all that a
     * server has of them to it or back; and that a rank has come so far */
    SAY_PUSH_NOW,
    SAY_DENSE_PULL,
    SAY_DENSE_PUSH,
    SAY_DENSE_PUT,
    SAY_DENSE_GET,
    SAY_MEET,
    /* mode async: steps follow, whose order is kept or followed */
    SAY_BEGIN
} SayKind;
typedef struct Say {
    SayKind kind;
    /* which stream and flight it is of; of a part the store, and who gets it */
    int evaluation, flight, root;
    TablePart part;
    double lr, grad_scale;
    /* SAY_PULL, SAY_PUSH: which bag, how many ids */
    int bag, ids;
    /* SAY_BEGIN, SAY_MEET: steps that have been made; of a meeting before the first one -1. Is it
     * the run's last one? And SAY_BEGIN: a hash of the parameters. */
    int64_t step;
    bool last;
    uint64_t start;
} Say;
void say(const Tables *tables, Say what);

/* Of who computes and of servers alike. */
void tables_init(Tables *tables, const SparseTable *of, int count);
void tables_fini(Tables *tables);
/* What rows take on this rank: of a Tables. */
size_t tables_bytes(const void *tables);
/* stream.c. Steps whose ids are sent before theirs: */
int table_steps_ahead(int staleness);
void stream_init(Tables *tables, TableStream *stream, bool gradients);
void stream_fini(TableStream *stream);
void stream_ids(TableStream *stream, Flight *flight);
void stream_rows(TableStream *stream, Flight *flight);
void stream_wait_rows(TableStream *stream);
void stream_gradients(TableStream *stream, Flight *flight);
void stream_squares(TableStream *stream, Flight *flight, double *out);
/* Of an owner: the rows change. */
void stream_update(TableStream *stream, Flight *flight, double lr, double grad_scale);
/* Whatever is on its way arrives. */
void stream_settle(TableStream *stream);
/* geo.c */
void geo_init(Tables *tables);
void geo_fini(Tables *tables);
/* Of who asks: of a step's ids, those that are new in the period go to servers, which do not change
 * in it. Then values for all of them, of this rank's own rows; the step's update of them. */
void geo_ask(Tables *tables, Flight *flight);
void geo_rows(Tables *tables, Flight *flight);
void geo_update(Tables *tables, Flight *flight, double lr, double grad_scale);
/* Of a server: what rank `from` has said. */
void geo_pull(Tables *tables, int from, const Say *what);
void geo_push(Tables *tables, int from, const Say *what);
/* told: ids are on their way until it is waited for; NULL: not behind the call. */
void send_some(const Tables *tables, SayKind kind, int bag, int owner, const int32_t *count,
               const uint64_t *id, Say more, WorldTold *told);
/* async.c */
void async_init(Tables *tables, const TableDense *param, int count, const Config *config);
void async_fini(Tables *tables);
/* Of who asks: values for a step's ids. */
void async_rows(Tables *tables, Flight *flight);
/* Of a server: does what rank `from` has said, which is of this mode. */
void async_serve(Tables *tables, int from, const Say *what);
/* contents.c */
void contents_clear(Tables *tables);
/* Rows change: what has been sorted is forgotten. */
void contents_changed(Tables *tables);
void contents_count(Tables *tables, int store);
void contents_collect(Tables *tables, TablePart part, int root, void *out);
void contents_put(Tables *tables);
void contents_held(Tables *tables, TablesHeld *held);

#endif
