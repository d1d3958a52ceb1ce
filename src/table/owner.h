/* An owner's rows of one bag, and its work on the ranks' requests in one step: answers, sums of
 * gradients, updates. Sends no messages. */
#ifndef WEFT_TABLE_OWNER_H
#define WEFT_TABLE_OWNER_H

#include "lookup.h"

/* The rows of one table and the rule that updates them. A row is its values, then its optimizer
 * state. */
typedef struct TableStore {
    /* NULL on a rank that owns no rows; owned */
    RowStore *rows;
    /* borrowed */
    const SparseTable *table;
    OptimRule rule;
    /* layout of the optimizer state in a row */
    RowState state;
    /* hash of the table's name */
    uint64_t hash;
    /* floats of a row: values and state */
    int floats;
} TableStore;

/* One rank's request in a step. `count` is owned. `row` is borrowed from Owner; id, value and grad
 * are borrowed from Owner or, if the request is this rank's own, from its Lookup. */
typedef struct OwnerRequest {
    /* ids: number of distinct ids of all tables; count: number of distinct ids of each table of the
     * bag */
    int32_t ids;
    int32_t *count;
    /* distinct ids, grouped by table */
    uint64_t *id;
    /* value: the values that answer the request, [ids][width]. grad: sums of the gradients of each
     * id over each run of micro-batches, [ids][runs][width] */
    float *value, *grad;
    /* row of each id, or NULL if the row does not exist yet */
    float **row;
} OwnerRequest;

/* One row that the step updates. row is NULL until it exists. grad is the sum of the row's
 * gradients; it overwrites one of them. */
typedef struct RowUpdate {
    float *row, *grad;
    uint64_t id;
    int32_t table;
    /* first and last gradient of the row, as indices of Owner.leaf and Owner.position. Owner.next
     * links all gradients of the row in the order of ranks; -1 ends the list */
    int32_t first, last;
} RowUpdate;

typedef struct Owner {
    /* borrowed; store has an entry for each table of the bag */
    const Bag *bag;
    TableStore *store;
    uint64_t seed;
    /* limit_bytes: most bytes of all rows of this rank, or 0 for no limit; rows_bytes: returns the
     * bytes in use when called with `user` */
    size_t limit_bytes;
    size_t (*rows_bytes)(const void *user);
    const void *user;
    /* ranks: number of ranks that send requests; this_rank: index of this rank among them, or -1 if
     * it sends none */
    int ranks, this_rank;
    /* requests, [ranks]; owned */
    OwnerRequest *request;
    /* arrays that requests point to; owned. They have room for `most` ids and grow if a step has
     * more. id, value and grad are used only for requests of other ranks */
    int64_t most;
    uint64_t *id;
    float *value, *grad, **row;
    /* rows that the step updates, [updates]; owned */
    RowUpdate *update;
    int updates;
    /* number of requests answered since the start, and of ids in them */
    int64_t requests_answered, rows_answered;
    /* scratch of owner_sum_gradients; owned */
    IdNumbers numbers;
    int32_t *next, *position;
    float **leaf;
} Owner;

/* Adds `count` rows like row_store_add. rows_bytes: present bytes of all tables of this rank;
 * limit_bytes: the most bytes that the tables may have, or 0 for no limit. Ends the job with
 * ERR_MEMORY if the tables would exceed the limit. */
void store_add(TableStore *store, size_t limit_bytes, size_t rows_bytes, const uint64_t *id,
               int64_t count, float **row, bool *is_new);
/* Updates one row by the table's rule. Does nothing if the table is frozen. In `row` the rule's
 * state follows the values. lr, grad_scale: as in owner_update. */
void store_update(const TableStore *store, float *row, const float *grad, double lr,
                  double grad_scale);
void owner_init(Owner *owner, const Bag *bag, TableStore *store, uint64_t seed, int ranks,
                int this_rank);
void owner_fini(Owner *owner);
/* Call it when the counts of all requests are set: points each request to its range of the arrays,
 * which grow if there are more ids than ever before. look: the lookup that is this rank's own
 * request, or NULL if it sends none. */
void owner_place_requests(Owner *owner, const Lookup *look);
/* Finds the rows of all requests and writes their values. */
void owner_answer(Owner *owner);
/* Finds the rows of one request and writes their values. The request need not be one of
 * owner->request. */
void owner_answer_request(Owner *owner, OwnerRequest *request);
/* Finds the rows of all requests without writing values, for gradients that were pushed without a
 * request. */
void owner_find(Owner *owner);
/* Call it when all gradients have arrived: adds the gradients of each row over all ranks, in the
 * order of a binary tree over the ranks or, with several runs of micro-batches, over the
 * micro-batches. */
void owner_sum_gradients(Owner *owner);
/* Updates the rows, and creates those that do not exist. lr: the optimizer's rate; gradients are
 * multiplied by grad_scale. Ends the job with ERR_MEMORY if there is no memory for a new row. */
void owner_update(Owner *owner, double lr, double grad_scale);
/* Adds each row's sum, times factor, to the row's values; creates rows that do not exist. Ends the
 * job like owner_update. Both functions leave rows of frozen tables unchanged. */
void owner_add(Owner *owner, float factor);
/* Adds to shard[ROW_SHARDS * t + s] the squares of the summed gradients of table t's rows in shard
 * s, in the order of ids. */
void owner_squares(const Owner *owner, double *shard);

#endif
