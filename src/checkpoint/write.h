/* Writing the tensors of a checkpoint that is laid out, on all ranks. */
#ifndef WEFT_CHECKPOINT_WRITE_H
#define WEFT_CHECKPOINT_WRITE_H

#include "checkpoint.h"

#include <sys/types.h>

/* A save, alike on all ranks but for what is this rank's own. */
typedef struct Save {
    const World *world;
    const CheckpointIo *io;
    const CheckpointMeta *meta;
    /* owned: what it is to be */
    char *path;
    /* owned: the file until it has its name; unique, so that no host has heard of it */
    char *part;
    /* of part */
    ino_t inode;
    /* owned, [count]: rank that hashes and writes each tensor */
    int *owner;
    /* owned: tensors in turns (owners_turns), where each begins, [turns + 1] */
    int *order, *turn;
    int turns;
    /* owned, [count] */
    uint64_t *hash;
    /* owned, [count] */
    int64_t *offset;
    /* owned: this rank's largest tensor, where get fills it */
    float *plain;
    size_t plain_bytes;
    /* owned: what of this rank's tensors fills no page, once they are written; and on rank 0 all
     * ranks' */
    char *edges, *all_edges;
} Save;

/* Each of this rank's tensors, in the order of turns. Turn by turn all ranks collect theirs at the
 * same time, before they visit them, so that nobody waits for another's work. Collective where
 * tensors are collected. */
typedef void (*SaveVisit)(void *user, int i, const float *plain);
void save_visit(const Save *save, SaveVisit visit, void *user);
/* Opens the part file, which rank 0 has made, with open's flags: ERR_IO where this host sees
 * another file under its name. *fd -1 on error. */
Status save_open(const Save *save, int flags, int *fd);
/* Writes the whole pages of this rank's tensors and syncs. It keeps their edges. Collective where
 * tensors are collected. */
Status save_write_pages(Save *save);
/* Brings all edges to rank 0. Collective. */
void save_collect_edges(Save *save);
/* Rank 0 writes them and syncs. */
Status save_write_edges(Save *save);
/* Reads the file back: rank 0 its table, the ranks a share of the tensors each, written by another
 * node where there are several. ERR_IO where something is not what was written. */
Status save_read_back(Save *save);

/* Writes a second file of the same bytes, syncs it and reads it back. */
Status save_copy_file(const char *from, const char *to);

#endif
