/* What sparse tables of a run are made of, for the files of the module. */
#ifndef WEFT_TABLE_TABLES_H
#define WEFT_TABLE_TABLES_H

#include "owner.h"

/* A step's micro-batches and what their bags ask. */
typedef struct Flight {
    /* owned: [micros], [micros][bags of the graph]; of each bag here */
    Batch *batch;
    BagRun *run;
    Lookup *look;
    Owner *owner;
    /* its micro-batches are here; owned: why they are not, where one failed */
    bool taken;
    Status status;
    char *why;
} Flight;

/* Micro-batches on their way: of training, where the next step's are taken ahead, or of evaluation. */
typedef struct TableStream {
    Tables *tables;
    BatchSource inner;
    Flight flight[2];
    int flights, now, given;
    /* of ids that are sent ahead, of rows and of gradients */
    WorldSwap *ids, *rows;
    WorldPart *to, *from;
} TableStream;

struct Tables {
    TablesPlan plan;
    int bags;
    /* owned: bags that are here; their tables' stores, bag by bag: those of bag b from first[b] on */
    Bag *bag;
    TableStore *store;
    int *first, stores;
    /* owned: of each shard, its owner */
    int16_t owner[ROW_SHARDS];
    TableStream training, evaluation;
};

/* Of the graph's table; NULL: it is not here. */
TableStore *tables_store(const Tables *tables, int table);

#endif
