/* Declares a rank's lookup in the tables of one bag for one step: the distinct ids of its
 * micro-batches, grouped by owner, the rows that the owners answer with, and the sums of the rows'
 * gradients. Sends no messages. */
#ifndef WEFT_TABLE_LOOKUP_H
#define WEFT_TABLE_LOOKUP_H

#include "id_numbers.h"
#include "table.h"

/* A bag: the fields of the data that it reads, and its tables. Does not change during training. */
typedef struct Bag {
    /* OpSpec.bag */
    int number;
    /* first_field: the first field of the data that the bag reads; fields: number of fields */
    int first_field, fields;
    /* first_table: index in the graph of the bag's first table; tables: number of its tables,
     * either 1 or one for each field */
    int first_table, tables;
    /* floats of a row */
    int width;
    /* How the micro-batches of a step are dealt to the workers. This also divides each worker's
     * micro-batches into runs (MicroRun). A row has one sum of gradients for each run. */
    Deal deal;
    /* number of micro-batches of each worker in a step */
    int micro_batches;
    /* [tables]; borrowed from the graph */
    const SparseTable *table;
    /* hash of each table's name, [tables]; owned */
    uint64_t *hash;
} Bag;

/* Returns how many runs of consecutive micro-batches (MicroRun) a worker has in a step. */
static inline int bag_runs(const Bag *bag)
{
    return deal_runs(bag->deal, bag->micro_batches);
}

/* The ids of one micro-batch. */
typedef struct LookupMicro {
    /* the arrays first and row of this micro-batch's BagInput; owned */
    int32_t *first, *row;
    /* place (see Lookup) of each distinct id of the micro-batch, [rows]; owned. While
     * lookup_find_ids runs, it has the number of each distinct id instead. */
    int32_t *at;
    /* number of distinct ids */
    int rows;
    /* gradient of each row, [rows][width], from mem_pages_new; owned; NULL in evaluation */
    float *grad;
} LookupMicro;

/* A distinct id of the step has two indices: its number, which counts ids in the order in which
 * they first occur, and its place, which counts ids sorted by (owner, table). */
typedef struct Lookup {
    /* borrowed */
    const Bag *bag;
    /* owners: number of owners; micro_batches: number of this worker's micro-batches in a step */
    int owners, micro_batches;
    /* largest number of samples in a micro-batch */
    int64_t micro_batch;
    /* largest number of ids in a micro-batch */
    int64_t micro_ids;
    /* gives each distinct id of the step a number */
    IdNumbers numbers;
    /* [micro_batches]; owned */
    LookupMicro *micro;
    /* place of each number; owned */
    int32_t *place;
    /* owner of each number; owned */
    int32_t *owner_of;
    /* id at each place; owned */
    uint64_t *id;
    /* number of distinct ids of each table at each owner, [owners][tables]; owned */
    int32_t *count;
    /* first place of each owner, [owners + 1]; begin[owners] is the number of distinct ids;
     * owned */
    int32_t *begin;
    /* row at each place, [ids][width], from mem_pages_new; owned */
    float *value;
    /* for each place, the row's gradients summed over each run of micro-batches,
     * [ids][runs][width], from mem_pages_new; owned; NULL in evaluation */
    float *sum;
    /* mode geo: the worker's local row for each place; the array is owned */
    float **local_row;
    /* last micro-batch that has the id of each number; -1: none yet; owned */
    int32_t *seen;
    /* index in this micro-batch of the id's row, for each number; owned */
    int32_t *seen_row;
    /* scratch of lookup_sum_gradients: gradients sorted by (place, micro-batch); owned */
    float **leaf;
    /* scratch: micro-batch of each gradient in leaf; owned */
    int32_t *leaf_micro;
    /* scratch: index in leaf of the first gradient of each place; owned */
    int32_t *leaf_begin;
} Lookup;

/* Allocates a lookup. owners: number of owners; micro_batches: micro-batches of this worker in a
 * step; micro_batch: samples in a micro-batch; id_most: largest number of ids that a sample has for
 * this bag; gradients: true allocates memory for gradients, too. */
void lookup_init(Lookup *look, const Bag *bag, int owners, int micro_batches, int64_t micro_batch,
                 int64_t id_most, bool gradients);
void lookup_fini(Lookup *look);
/* Finds the distinct ids of a step and sorts them by (owner, table). batch: the step's
 * micro-batches, [micro_batches]; fields: number of fields of the data; shard_owner: owner of each
 * shard, [ROW_SHARDS]. Ends the job with ERR_DATA if an id is out of its table's range. */
void lookup_find_ids(Lookup *look, const MicroBatch *batch, int fields, const int16_t *shard_owner);
/* Returns the input of the bag for micro-batch i. */
BagInput lookup_bag_input(const Lookup *look, int i);
/* Writes the sum of each row's gradients in each run of micro-batches to look->sum. The gradients
 * are added in the order of a binary tree over the micro-batches of the run; the sum is -0 if there
 * are none. Overwrites the gradients. */
void lookup_sum_gradients(Lookup *look);

#endif
