/* An owner's rows of one bag, and what it computes from the ranks' requests in one step: answers,
 * sums of gradients, updates. Sends no messages. */
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

/* One rank's request in a step. Its arrays are borrowed from Owner, or for this rank's own request
 * from its Lookup; `count` is owned. */
typedef struct OwnerRequest {
    /* number of distinct ids, of all tables and of each table of the bag */
    int32_t ids;
    int32_t *count;
    /* distinct ids, grouped by table */
    uint64_t *id;
    /* values that answer the request, [ids][width], and sums of its ids' gradients over each run of
     * micro-batches, [ids][runs][width] */
    float *value, *grad;
    /* row of each id; NULL: it does not exist yet */
    float **row;
} OwnerRequest;

/* One row that the step updates; row is NULL until it exists. */
typedef struct RowUpdate {
    float *row, *grad;
    uint64_t id;
    int32_t table;
    /* list of the row's gradients in the order of ranks: indices of Owner.leaf and .position,
     * linked by Owner.next; -1 ends it */
    int32_t first, last;
} RowUpdate;

typedef struct Owner {
    /* borrowed; store: one for each table of the bag */
    const Bag *bag;
    TableStore *store;
    uint64_t seed;
    /* most bytes of all rows of this rank (0: no limit), and a function that returns the bytes in
     * use, called with `user` */
    size_t limit_bytes;
    size_t (*rows_bytes)(const void *user);
    const void *user;
    /* number of ranks that send requests; this rank among them, or -1 */
    int ranks, this_rank;
    /* requests, [ranks]; owned */
    OwnerRequest *request;
    /* arrays that requests point to; owned. They have room for `most` ids and grow when a step has
     * more. value and grad are for the requests of other ranks */
    int64_t most;
    uint64_t *id;
    float *value, *grad, **row;
    /* rows that the step updates, `updates` of them; owned */
    RowUpdate *update;
    int updates;
    /* since the start: number of requests answered, and of ids in them */
    int64_t requests_answered, rows_answered;
    /* scratch of owner_sum_gradients; owned */
    IdNumbers numbers;
    int32_t *next, *position;
    float **leaf;
} Owner;

/* Adds rows like row_store_add. rows_bytes: bytes of all tables of this rank now; limit_bytes: the
 * most that they may have (0: no limit). Ends the job with ERR_MEMORY if they would exceed it. */
void store_add(TableStore *store, size_t limit_bytes, size_t rows_bytes, const uint64_t *id,
               int64_t count, float **row, bool *is_new);
/* Updates one row by the table's rule, unless the table is frozen. The rule's state follows the
 * values in the row. */
void store_update(const TableStore *store, float *row, const float *grad, double lr,
                  double grad_scale);
void owner_init(Owner *owner, const Bag *bag, TableStore *store, uint64_t seed, int ranks,
                int this_rank);
void owner_fini(Owner *owner);
/* Call it when the counts of all requests are set: points each request to its range of the arrays,
 * which grow if there are more ids than ever before. look: the lookup that is this rank's own
 * request; NULL if it sends none. */
void owner_place_requests(Owner *owner, const Lookup *look);
/* Finds the rows of all requests and writes their values. */
void owner_answer(Owner *owner);
/* Finds the rows of one request and writes their values; it need not be one of owner->request. */
void owner_answer_request(Owner *owner, OwnerRequest *request);
/* Finds the rows without writing values, for gradients that no request precedes. */
void owner_find(Owner *owner);
/* Call it when all gradients have arrived: adds each row's gradients of all ranks, in the order of
 * a binary tree over the ranks or, with several runs, over the micro-batches. */
void owner_sum_gradients(Owner *owner);
/* Updates the rows, with lr from the optimizer. Ends the job with ERR_MEMORY if there is no
 * memory for a new row. */
void owner_update(Owner *owner, double lr, double grad_scale);
/* Adds each row's sum, times factor, to the row. Ends the job like owner_update. */
void owner_add(Owner *owner, float factor);
/* shard[ROW_SHARDS * t + s] gets the sum of squares of the gradients of table t's rows in shard s,
 * added in the order of ids. */
void owner_squares(const Owner *owner, double *shard);

#endif
