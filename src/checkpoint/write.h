/* Writes the tensors of a checkpoint that has been laid out, on all ranks. */
#ifndef WEFT_CHECKPOINT_WRITE_H
#define WEFT_CHECKPOINT_WRITE_H

#include "checkpoint.h"

#include <sys/types.h>

/* A save; equal on all ranks except for the fields of this rank's own tensors. */
typedef struct Save {
    const World *world;
    const CheckpointIo *io;
    const CheckpointMeta *meta;
    /* final path; owned */
    char *path;
    /* path until the rename; unique, so that no host has a stale entry for it; owned */
    char *part;
    /* inode of `part` */
    ino_t inode;
    /* rank that hashes and writes each tensor, [count]; owned */
    int *owner;
    /* the tensors, turn by turn (owners.h), [count]; owned */
    int *order;
    /* index in `order` of each turn's first tensor, [turns + 1]; owned */
    int *turn;
    int turns;
    /* checksum of each tensor, [count]; until share_hashes (save.c) 0 for tensors of other ranks;
     * owned */
    uint64_t *hash;
    /* offset of each tensor's bytes in the file, [count]; owned */
    int64_t *offset;
    /* buffer for any tensor of this rank, which io->get may fill; owned */
    float *plain;
    size_t plain_bytes;
    /* bytes of this rank's tensors that do not fill a page, kept when the whole pages are written
     * (write.c); owned */
    char *edges;
    /* on rank 0: the edges of all ranks; owned */
    char *all_edges;
} Save;

/* Calls visit for each of this rank's tensors, in the order of turns. In each turn all ranks
 * collect their tensors at the same time before they visit them, so that no rank waits for
 * another's work. Collective if tensors are collected. */
typedef void (*SaveVisit)(void *user, int i, const float *plain);
void save_visit(const Save *save, SaveVisit visit, void *user);
/* Opens the part file, which rank 0 has created, with the flags of open(2). ERR_IO: it cannot be
 * opened, or this host sees another file under its name. *fd is -1 on error. */
Status save_open(const Save *save, int flags, int *fd);
/* Writes the whole pages of this rank's tensors and syncs the file; keeps the tensors' edges.
 * Collective if tensors are collected. */
Status save_write_pages(Save *save);
/* Gathers all edges on rank 0. Collective. */
void save_collect_edges(Save *save);
/* Writes all edges on rank 0 and syncs. */
Status save_write_edges(Save *save);
/* Reads the file back: rank 0 reads the table, each rank reads a share of the tensors. If there are
 * several nodes with equally many ranks, a rank reads tensors that another node has written.
 * ERR_IO: the content is not what was written. */
Status save_read_back(Save *save);

/* Writes the bytes of `from` to a new file `to`, syncs it and reads it back. `to` must not
 * exist. */
Status save_copy_file(const char *from, const char *to);

#endif
