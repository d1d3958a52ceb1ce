/* table: sparse tables, whose rows lie on the ranks that share them out. A rank's micro-batches of a
 * step are looked at together: their ids, each once, go to the owners of their rows, the rows come
 * back, and after backward the sum of each row's gradients goes to its owner, who updates it. Who
 * owns a row depends on its id alone and the number of owners; a gradient is the sum over the tree of
 * micro-batches and ranks in which those without the id are left out. So the same bits come out on
 * every grid. */
#ifndef WEFT_TABLE_H
#define WEFT_TABLE_H

#include "optim.h"
#include "pipeline.h"

/* The rank, of so many that share the rows, whose rows of that shard are. */
static inline int table_owner(int shard, int ranks)
{
    return (int)((int64_t)shard * ranks >> ROW_SHARD_BITS);
}

typedef struct Tables Tables;

typedef struct TablesPlan {
    /* borrowed; its tables of bags in nodes that `here` says, one a node, are this rank's */
    const Graph *graph;
    const bool *here;
    /* borrowed: the ranks that share the rows, each of which has micro-batches of every step */
    const World *world;
    /* borrowed, one a table of the graph: who updates it */
    const OptimRule *rule;
    uint64_t seed;
    /* a step's micro-batches of this rank, samples of one, ids of a sample at most, its fields */
    int micros;
    int64_t micro_batch, id_most, fields;
    /* of this rank, for rows; 0: all that there is */
    size_t limit_bytes;
} TablesPlan;

/* NULL where there are no tables here. Owner: the caller. Not collective. */
Tables *tables_new(const TablesPlan *plan);
void tables_free(Tables **tables);

/* Micro-batches of `inner`, which is borrowed until tables_forget, with their bags. The first one of a
 * step takes all of the step's out of it, and the last one those of the next step, whose ids then
 * travel while it is worked on: `inner` must have so many out at a time (tables_held). Collective on
 * world, step by step. */
BatchSource tables_source(Tables *tables, const BatchSource *inner);
/* What was taken goes back, before inner goes. Not collective, but all ranks do so after the same
 * step. */
void tables_forget(Tables *tables);
/* The same for evaluation, where no gradients follow, and no row is made: an id that has none is
 * given the values that its row would begin with. Micro-batches go by the same numbers. */
BatchSource tables_evaluation(Tables *tables, const BatchSource *inner);
/* Micro-batches that a source has out. */
int tables_held(const TablesPlan *plan);

/* After a step's backward: the gradients go to the owners and are summed. Collective. */
void tables_reduce(Tables *tables);
/* out[i] = sum of squares of the gradient of the graph's table i, the same on all ranks; 0 for tables
 * that are not here. Collective. */
void tables_grad_squares(Tables *tables, double *out);
/* Updates the rows of the step's ids, and makes those that were not there. lr as lr_at gives it,
 * grad_scale multiplies gradients first. A rank that has no memory for a new row ends the job, with
 * ERR_MEMORY. Not collective. */
void tables_update(Tables *tables, double lr, double grad_scale);

/* What this rank has of the graph's table number `table`: rows, their bytes in all. Not collective,
 * all that follows. */
int64_t tables_rows(const Tables *tables, int table);
size_t tables_bytes(const Tables *tables);
/* Forgets all rows. */
void tables_clear(Tables *tables);
/* Is the table here, and a row of that shard this rank's? */
bool tables_owns(const Tables *tables, int table, int shard);
/* Floats of a row with its state, and what the state is. */
int tables_floats(const Tables *tables, int table);
RowState tables_state(const Tables *tables, int table);

/* All rows of a table that are here, sorted by (shard, id); those of shard s are number first[s] ..
 * first[s + 1] - 1. */
typedef struct TableRows {
    int64_t first[ROW_SHARDS + 1];
    /* owned, both */
    uint64_t *id;
    const float **row;
} TableRows;
void tables_list(const Tables *tables, int table, TableRows *rows);
void table_rows_fini(TableRows *rows);
/* The rows of ids, which are this rank's, made where there are none. ERR_MEMORY. */
Status tables_put(Tables *tables, int table, const uint64_t *id, int64_t count, float **row);

#endif
