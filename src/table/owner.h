/* What an owner has of a bag's tables, and what it does with what the ranks ask of it in one step.
 * No messages here. */
#ifndef WEFT_TABLE_OWNER_H
#define WEFT_TABLE_OWNER_H

#include "lookup.h"

/* Rows of one table, and the rule that updates them. A row is its values, then its state. */
typedef struct TableStore {
    /* owned */
    RowStore *rows;
    /* borrowed */
    const SparseTable *of;
    OptimRule rule;
    RowState state;
    uint64_t hash;
    int floats;
} TableStore;

/* What one rank asks in a step: ids by table, each once, the rows that answer, the sums of their
 * gradients. Borrowed: [ids], [ids][width]; where this rank asks itself they are its lookup's. */
typedef struct OwnerPart {
    int32_t ids;
    /* owned: of each table */
    int32_t *count;
    uint64_t *id;
    float *value, *grad;
    /* the rows themselves; NULL: the id has none yet */
    float **row;
} OwnerPart;

/* A row that the step updates. */
typedef struct OwnerRow {
    float *row, *grad;
    uint64_t id;
    int32_t table;
    /* its gradients, by rank: numbers in Owner.next, which ends with -1 */
    int32_t first, last;
} OwnerRow;

typedef struct Owner {
    /* borrowed; store: one a table of the bag */
    const Bag *bag;
    TableStore *store;
    uint64_t seed;
    /* for all rows of this rank, 0: no limit; what all its tables take now */
    size_t limit_bytes;
    size_t (*held_bytes)(const void *user);
    const void *user;
    /* who ask; which of them this rank is, -1: none */
    int ranks, own;
    /* owned: [ranks] */
    OwnerPart *part;
    /* Owned, what parts point to: for so many ids, of which there may be more in a later step;
     * values and gradients where they are other ranks'. */
    int64_t most;
    uint64_t *id;
    float *value, *grad, **row;
    /* owned: the step's rows */
    OwnerRow *update;
    int updates;
    /* so far: times that a rank has asked for rows, and how many */
    int64_t requests, asked;
    /* owned, for joins */
    Intern names;
    int32_t *next, *position;
    float **leaf;
} Owner;

/* Adds rows, as row_store_add; all tables of a rank, which take held_bytes together, share
 * limit_bytes (0: no limit). Ends the job with ERR_MEMORY where they have no room. */
void store_add(TableStore *store, size_t limit_bytes, size_t held_bytes, const uint64_t *id,
               int64_t count, float **row, bool *is_new);
/* One row by the table's rule, unless it is frozen; its state, where the rule has any, is behind
 * its values. */
void store_update(const TableStore *store, float *row, const float *grad, double lr,
                  double grad_scale);
void owner_init(Owner *owner, const Bag *bag, TableStore *store, uint64_t seed, int ranks, int own);
void owner_fini(Owner *owner);
/* All counts are there: what parts point to. look: this rank's own, if it asks. Memory grows where
 * there are more ids than ever before. */
void owner_fit(Owner *owner, const Lookup *look);
/* Finds the rows of all parts' ids, and writes their values. */
void owner_answer(Owner *owner);
/* The same of one part, which need not be the owner's own. */
void owner_answer_part(Owner *owner, OwnerPart *part);
/* Finds the rows alone, of gradients that come without a question. */
void owner_find(Owner *owner);
/* All gradients are there: one sum for each row, by the tree of ranks. */
void owner_join(Owner *owner);
/* lr of the optimizer; ends the job with ERR_MEMORY where a new row has no room. */
void owner_update(Owner *owner, double lr, double grad_scale);
/* Adds the sums, times factor, to the rows themselves. Likewise. */
void owner_add(Owner *owner, float factor);
/* shard[ROW_SHARDS * t + s]: of table t of the bag, the sum of squares of its rows' gradients of
 * shard s, in the order of ids. */
void owner_squares(const Owner *owner, double *shard);

#endif
