/* What a rank's micro-batches of one step ask of a bag's tables, and the gradients that they leave:
 * ids, each once, in slices for their owners. No messages here. */
#ifndef WEFT_TABLE_LOOKUP_H
#define WEFT_TABLE_LOOKUP_H

#include "intern.h"
#include "table.h"

/* A bag, the same at every step. */
typedef struct Bag {
    /* OpSpec.bag; of the data's fields; its tables: one for all of its fields, or one each */
    int number, first_field, fields, table, tables;
    int width;
    /* borrowed from the graph: its first table; owned: hash of each one's name */
    const SparseTable *of;
    uint64_t *hash;
} Bag;

/* A micro-batch's part. */
typedef struct LookupMicro {
    /* owned: as BagRun's; at: number of the row in Lookup.names, then its place */
    int32_t *first, *row, *at;
    int rows;
    /* owned, of mem_pages: rows x width; NULL: no gradients */
    float *grad;
} LookupMicro;

typedef struct Lookup {
    /* borrowed */
    const Bag *bag;
    int owners, micros;
    int64_t micro_batch, most;
    Intern names;
    /* owned: [micros] */
    LookupMicro *micro;
    /* Ids lie by (owner, table), then as they first came: owned, place[number] is an id's place,
     * id[place], owner_of[number]; count[owner * tables + t]: how many; begin[owner], and the end
     */
    int32_t *place, *owner_of, *count;
    uint64_t *id;
    int32_t *begin;
    /* owned, of mem_pages: [place][width], the rows, and the sums of their gradients */
    float *value, *sum;
    /* owned: mode geo, this rank's own row of each place */
    float **own;
    /* owned: which micro-batch has seen a number last, and its row there */
    int32_t *seen, *seen_row;
    /* owned, for joins: leaves of each number, one behind the other: */
    int32_t *leaf_begin, *leaf_micro;
    float **leaf;
} Lookup;

/* id_most: ids of a sample for this bag at most. */
void lookup_init(Lookup *look, const Bag *bag, int owners, int micros, int64_t micro_batch,
                 int64_t id_most, bool gradients);
void lookup_fini(Lookup *look);
/* Takes a step's micro-batches, `micros` of them, with ids of `fields` fields. shard_owner: of each
 * of ROW_SHARDS. */
void lookup_take(Lookup *look, const Batch *batch, int fields, const int16_t *shard_owner);
/* What micro-batch i's bag reads. */
BagRun lookup_run(const Lookup *look, int i);
/* sum[place]: of each row's gradients, which micro-batches have left, by the tree of their
 * numbers. */
void lookup_join(Lookup *look);

#endif
