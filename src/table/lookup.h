/* A rank's lookup in the tables of one bag for one step: the distinct ids of its micro-batches,
 * grouped by owner, the rows that the owners answer with, and the sums of their gradients. Sends no
 * messages. */
#ifndef WEFT_TABLE_LOOKUP_H
#define WEFT_TABLE_LOOKUP_H

#include "id_numbers.h"
#include "table.h"

/* A bag: the fields of the data that it reads, and its tables. Constant during a run. */
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
    /* How the micro-batches of a step are dealt to the workers, and their number on each worker. A
     * row has one sum of gradients for each run of consecutive micro-batches (deal_runs). */
    Deal deal;
    int micros;
    /* [tables]; borrowed from the graph */
    const SparseTable *table;
    /* hash of each table's name, [tables]; owned */
    uint64_t *hash;
} Bag;

static inline int bag_runs(const Bag *bag)
{
    return deal_runs(bag->deal, bag->micros);
}

/* The ids of one micro-batch. */
typedef struct LookupMicro {
    /* see BagRun.first and BagRun.row; owned */
    int32_t *first, *row;
    /* place of each distinct id of the micro-batch, [rows]; owned. While lookup_find_ids runs, the
     * number of each distinct id instead. */
    int32_t *at;
    /* number of distinct ids */
    int rows;
    /* gradient of each row, [rows][width], from mem_pages_new; owned; NULL in evaluation */
    float *grad;
} LookupMicro;

typedef struct Lookup {
    /* the bag; borrowed */
    const Bag *bag;
    int owners, micros;
    /* most samples, and most ids, of one micro-batch */
    int64_t micro_batch, most;
    /* gives each distinct id of the step a number */
    IdNumbers numbers;
    /* [micros]; owned */
    LookupMicro *micro;
    /* A distinct id has two indices: its number, in the order in which ids first occur, and its
     * place when ids are sorted by (owner, table). place, owner_of: place and owner of each number;
     * owned */
    int32_t *place, *owner_of;
    /* id at each place; owned */
    uint64_t *id;
    /* number of distinct ids of each table at each owner, [owners][tables]; owned */
    int32_t *count;
    /* first place of each owner; begin[owners] is the number of distinct ids; owned */
    int32_t *begin;
    /* rows by place, [ids][width], and sums of their gradients over each run of micro-batches,
     * [ids][runs][width]; from mem_pages_new; owned */
    float *value, *sum;
    /* mode geo: the worker's local row for each place; the array is owned */
    float **local_row;
    /* for each number: the last micro-batch that has the id, and the index of the id's row in this
     * micro-batch; owned */
    int32_t *seen, *seen_row;
    /* scratch of lookup_sum_gradients: gradients sorted by (place, micro-batch), their
     * micro-batches, and the index of the first gradient of each place; owned */
    float **leaf;
    int32_t *leaf_micro, *leaf_begin;
} Lookup;

/* owners: number of owners; micros: micro-batches of a step; micro_batch: samples of a micro-batch;
 * id_most: most ids of a sample for this bag. gradients: also allocates memory for gradients. */
void lookup_init(Lookup *look, const Bag *bag, int owners, int micros, int64_t micro_batch,
                 int64_t id_most, bool gradients);
void lookup_fini(Lookup *look);
/* Finds the distinct ids of a step and sorts them by (owner, table). batch: the step's
 * micro-batches, [micros]. fields: number of the data's fields. shard_owner[ROW_SHARDS]: owner of
 * each shard. Ends the job with ERR_DATA if an id is out of its table's range. */
void lookup_find_ids(Lookup *look, const Batch *batch, int fields, const int16_t *shard_owner);
/* Returns the input of the bag for micro-batch i. */
BagRun lookup_bag_input(const Lookup *look, int i);
/* For each row and each run of micro-batches, writes the sum of the row's gradients in the run to
 * look->sum, added in the order of a binary tree over the run's micro-batches; -0 if there are
 * none. Overwrites the gradients. */
void lookup_sum_gradients(Lookup *look);

#endif
