/* A rank's lookup in the tables of one bag for one step: the distinct ids of its micro-batches,
 * grouped by owner, the rows that answer, and the sums of their gradients. Sends no messages. */
#ifndef WEFT_TABLE_LOOKUP_H
#define WEFT_TABLE_LOOKUP_H

#include "id_numbers.h"
#include "table.h"

/* A bag; it does not change during a run. */
typedef struct Bag {
    /* number: OpSpec.bag; first_field, fields: its fields of the data; table, tables: the first of
     * its tables in the graph and their number, 1 for all fields or one for each */
    int number, first_field, fields, table, tables;
    int width;
    /* the bag's first table, borrowed from the graph; hash of each table's name, owned */
    const SparseTable *of;
    uint64_t *hash;
} Bag;

/* The ids of one micro-batch. */
typedef struct LookupMicro {
    /* first, row: arrays of BagRun. at: place of each of the micro-batch's rows (during lookup_take
     * its number). All owned */
    int32_t *first, *row, *at;
    int rows;
    /* gradient of each row, [rows][width], from mem_pages_new; owned; NULL: no gradients are
     * needed */
    float *grad;
} LookupMicro;

typedef struct Lookup {
    /* the bag; borrowed */
    const Bag *bag;
    int owners, micros;
    int64_t micro_batch, most;
    IdNumbers names;
    /* [micros]; owned */
    LookupMicro *micro;
    /* Distinct ids of the step have two numberings: a number in the order in which they first occur
     * (names), and a place when sorted by (owner, table). place[number]; owner_of[number];
     * id[place]; count[owner * tables + table]: how many ids; begin[owner]: the owner's first
     * place, begin[owners]: their end. All owned */
    int32_t *place, *owner_of, *count;
    uint64_t *id;
    int32_t *begin;
    /* rows, and sums of their gradients, by place: [place][width], from mem_pages_new; owned */
    float *value, *sum;
    /* mode geo: the worker's local row for each place; owned */
    float **local_row;
    /* for each number, the last micro-batch that has it, and its row there; owned */
    int32_t *seen, *seen_row;
    /* scratch of lookup_join; owned: the gradients of each place, one place after the other, and
     * their micro-batches */
    int32_t *leaf_begin, *leaf_micro;
    float **leaf;
} Lookup;

/* id_most: most ids of a sample for this bag. gradients: false leaves out memory for gradients. */
void lookup_init(Lookup *look, const Bag *bag, int owners, int micros, int64_t micro_batch,
                 int64_t id_most, bool gradients);
void lookup_fini(Lookup *look);
/* Takes a step's micro-batches, `micros` of them, whose ids are in `fields` fields.
 * shard_owner[ROW_SHARDS]: owner of each shard. */
void lookup_take(Lookup *look, const Batch *batch, int fields, const int16_t *shard_owner);
/* Returns the input of the bag for micro-batch i. */
BagRun lookup_run(const Lookup *look, int i);
/* sum[place] = the sum of each row's gradients in the micro-batches, by the tree of their
 * numbers. */
void lookup_join(Lookup *look);

#endif
