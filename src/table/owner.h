/* Declares an owner's rows of one bag, and its work on the ranks' requests in one step: answers,
 * sums of gradients, updates. Sends no messages. */
#ifndef WEFT_TABLE_OWNER_H
#define WEFT_TABLE_OWNER_H

#include "lookup.h"

/* The rows of one table and the rule that updates them. The floats of a row are its values, then
 * its optimizer state. */
typedef struct TableStore {
    /* owned; NULL: this rank owns no rows */
    RowStore *rows;
    /* borrowed */
    const SparseTable *table;
    OptimRule rule;
    /* layout of the optimizer state in a row */
    RowState state;
    /* hash of the table's name */
    uint64_t hash;
    /* number of floats of a row, values and state together */
    int floats;
} TableStore;

/* One rank's request in a step. The array `count` is owned, and `row` is borrowed from Owner. The
 * other arrays are borrowed from Owner or, if the request is this rank's own, from its Lookup. */
typedef struct OwnerRequest {
    /* number of distinct ids of all tables of the bag */
    int32_t ids;
    /* number of distinct ids of each table of the bag, [tables] */
    int32_t *count;
    /* distinct ids, grouped by table, [ids] */
    uint64_t *id;
    /* values that answer the request, [ids][width] */
    float *value;
    /* for each id, its gradients summed over each run of micro-batches, [ids][runs][width] */
    float *grad;
    /* row of each id, [ids]; an entry is NULL if the row does not exist yet */
    float **row;
} OwnerRequest;

/* One row that the step updates. */
typedef struct RowUpdate {
    /* borrowed from the store; NULL: the row does not exist yet */
    float *row;
    /* sum of the row's gradients, in the memory of the first of the gradients; borrowed */
    float *grad;
    uint64_t id;
    /* index of the table in the bag */
    int32_t table;
    /* first and last gradient of the row, as indices of Owner.leaf and Owner.position. Owner.next
     * links all gradients of the row in the order of ranks; -1 ends the list */
    int32_t first, last;
} RowUpdate;

typedef struct Owner {
    /* borrowed */
    const Bag *bag;
    /* a store for each table of the bag, [tables]; borrowed */
    TableStore *store;
    uint64_t seed;
    /* largest number of bytes that all rows of this rank may have; 0: no limit */
    size_t limit_bytes;
    /* returns the bytes of all rows of this rank; its argument is `user` */
    size_t (*rows_bytes)(const void *user);
    const void *user;
    /* ranks: number of ranks that send requests; this_rank: index of this rank among them, or -1 if
     * it sends none */
    int ranks, this_rank;
    /* request of each rank, [ranks]; owned */
    OwnerRequest *request;
    /* number of ids for which the arrays below have memory; they grow if a step has more */
    int64_t room;
    /* memory for the arrays of the same names in requests; owned. id, value and grad are used only
     * for requests of other ranks */
    uint64_t *id;
    float *value, *grad, **row;
    /* rows that the step updates, [updates]; owned */
    RowUpdate *update;
    int updates;
    /* requests_answered: number of requests answered since the start; rows_answered: number of ids
     * in them */
    int64_t requests_answered, rows_answered;
    /* The fields below are scratch of owner_sum_gradients; owned. numbers: the index in `update` of
     * each (table, id) */
    IdNumbers numbers;
    /* next: index of the next gradient of the same row, -1: none; position: rank that has sent the
     * gradient */
    int32_t *next, *position;
    /* gradients of all requests */
    float **leaf;
} Owner;

/* Adds `count` rows to the store; id, row and is_new are those of row_store_add. rows_bytes: bytes
 * that all tables of this rank have now; limit_bytes: largest number of bytes that they may have;
 * 0: no limit. Ends the job with ERR_MEMORY if the tables would exceed the limit. */
void store_add(TableStore *store, size_t limit_bytes, size_t rows_bytes, const uint64_t *id,
               int64_t count, float **row, bool *is_new);
/* Updates one row, which is its values and then its state, by the table's rule. Does nothing if the
 * table is frozen. lr, grad_scale: as in owner_update. */
void store_update(const TableStore *store, float *row, const float *grad, double lr,
                  double grad_scale);
void owner_init(Owner *owner, const Bag *bag, TableStore *store, uint64_t seed, int ranks,
                int this_rank);
void owner_fini(Owner *owner);
/* Points each request to its part of the owner's arrays, which grow if there are more ids than ever
 * before. Call it when `count` of all requests is set. look: the lookup that is this rank's own
 * request; NULL: this rank sends none. */
void owner_place_requests(Owner *owner, const Lookup *look);
/* Finds the rows of all requests, and writes their values to the requests. */
void owner_answer(Owner *owner);
/* Finds the rows of one request, and writes their values to it. The request need not be one of
 * owner->request. */
void owner_answer_request(Owner *owner, OwnerRequest *request);
/* Finds the rows of all requests, but writes no values: for gradients that were pushed without a
 * request. */
void owner_find(Owner *owner);
/* Adds the gradients of each row over all ranks, in the order of a binary tree: over the ranks or,
 * if there are several runs of micro-batches, over the micro-batches. Call it when all gradients
 * have arrived. */
void owner_sum_gradients(Owner *owner);
/* Updates the rows by their sums of gradients, and creates rows that do not exist, except in frozen
 * tables. lr: the optimizer's rate; gradients are multiplied by grad_scale. Ends the job with
 * ERR_MEMORY if there is no memory for a new row. */
void owner_update(Owner *owner, double lr, double grad_scale);
/* Adds each row's sum of gradients, times `factor`, to the row's values, and creates rows that do
 * not exist, except in frozen tables. Ends the job with ERR_MEMORY if there is no memory for a new
 * row. */
void owner_add(Owner *owner, float factor);
/* For each row that the step updates, adds the sum of squares of its summed gradient to
 * shard[ROW_SHARDS * t + s], where t is the row's table and s its shard. Rows are added in the
 * order of ids. */
void owner_squares(const Owner *owner, double *shard);

#endif
