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
    /* the table; borrowed */
    const SparseTable *of;
    OptimRule rule;
    RowState state;
    uint64_t hash;
    int floats;
} TableStore;

/* One rank's request in a step: distinct ids, grouped by table; the values that answer it,
 * [ids][width]; the sums of their gradients, [ids][width]. The arrays are borrowed from Owner, or
 * for this rank's own request from its Lookup. */
typedef struct OwnerPart {
    int32_t ids;
    /* number of ids of each table of the bag; owned */
    int32_t *count;
    uint64_t *id;
    float *value, *grad;
    /* row of each id; NULL: it does not exist yet */
    float **row;
} OwnerPart;

/* One row that the step updates. */
typedef struct OwnerRow {
    float *row, *grad;
    uint64_t id;
    int32_t table;
    /* list of the row's gradients in the order of ranks: indices of Owner.leaf and .position,
     * linked by Owner.next; -1 ends it */
    int32_t first, last;
} OwnerRow;

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
    OwnerPart *part;
    /* arrays that requests point to; owned. They have room for `most` ids and grow when a step has
     * more. value and grad are for the requests of other ranks */
    int64_t most;
    uint64_t *id;
    float *value, *grad, **row;
    /* rows that the step updates, `updates` of them; owned */
    OwnerRow *update;
    int updates;
    /* since the start: number of requests, and of ids in them */
    int64_t requests, rows_requested;
    /* scratch of owner_join; owned */
    IdNumbers names;
    int32_t *next, *position;
    float **leaf;
} Owner;

/* Adds rows like row_store_add. All tables of a rank together, now rows_bytes, may take limit_bytes
 * (0: no limit); where they have no room the job ends with ERR_MEMORY. */
void store_add(TableStore *store, size_t limit_bytes, size_t rows_bytes, const uint64_t *id,
               int64_t count, float **row, bool *is_new);
/* Updates one row by the table's rule, unless the table is frozen. The rule's state follows the
 * values in the row. */
void store_update(const TableStore *store, float *row, const float *grad, double lr,
                  double grad_scale);
void owner_init(Owner *owner, const Bag *bag, TableStore *store, uint64_t seed, int ranks,
                int this_rank);
void owner_fini(Owner *owner);
/* Call it when the counts of all requests are set: points the requests to arrays, which grow if
 * there are more ids than ever before. look: this rank's own request; NULL if it sends none. */
void owner_fit(Owner *owner, const Lookup *look);
/* Finds the rows of all requests and writes their values. */
void owner_answer(Owner *owner);
/* The same for one request, which may be in other memory than the owner's. */
void owner_answer_part(Owner *owner, OwnerPart *part);
/* Only finds the rows, for gradients that are sent without a request before. */
void owner_find(Owner *owner);
/* Call it when all gradients have arrived: adds them by the tree of ranks, one sum for each row. */
void owner_join(Owner *owner);
/* Updates the rows, with lr from the optimizer. Ends the job with ERR_MEMORY where a new row has no
 * room. */
void owner_update(Owner *owner, double lr, double grad_scale);
/* Adds each row's sum, times factor, to the row. Ends the job like owner_update. */
void owner_add(Owner *owner, float factor);
/* shard[ROW_SHARDS * t + s] gets the sum of squares of the gradients of table t's rows in shard s,
 * added in the order of ids. */
void owner_squares(const Owner *owner, double *shard);

#endif
