/* Assigning tensors to ranks by bytes: greedy, largest first. */
#include "owners.h"

#include <stdlib.h>
#include <string.h>

typedef struct Piece {
    int64_t elements;
    int index;
} Piece;

static int larger_first(const void *a, const void *b)
{
    const Piece *x = a, *y = b;
    if (x->elements != y->elements) return x->elements < y->elements ? 1 : -1;
    return x->index - y->index;
}

void owners_assign(const CheckpointIo *io, int ranks, bool holders, int *owner)
{
    Piece *piece = mem_new((size_t)(io->count + 1) * sizeof *piece);
    int64_t *load = mem_new((size_t)ranks * sizeof *load);
    for (int i = 0; i < io->count; ++i) piece[i] = (Piece){shape_count(io->tensor[i].shape), i};
    qsort(piece, (size_t)io->count, sizeof *piece, larger_first);
    for (int i = 0; i < io->count; ++i) {
        const CheckpointTensor *tensor = &io->tensor[piece[i].index];
        bool some = holders && tensor->rank_count > 0;
        int least = some ? tensor->rank_first : 0;
        int end = some ? least + tensor->rank_count : ranks;
        for (int r = least + 1; r < end; ++r)
            if (load[r] < load[least]) least = r;
        load[least] += piece[i].elements;
        owner[piece[i].index] = least;
    }
    mem_free(&load);
    mem_free(&piece);
}

static bool begins_blocks(const CheckpointTensor *tensor)
{
    const char *block = tensor->block ? strrchr(tensor->path, CHECKPOINT_BLOCK) : NULL;
    return block && atoi(block + 1) == 0;
}

int owners_turns(const CheckpointIo *io, const int *owner, int ranks, int *order, int *first)
{
    int *next = mem_new((size_t)ranks * sizeof *next);
    int *turn = mem_new((size_t)(io->count + 1) * sizeof *turn), least = 0, turns = 0;
    for (int i = 0; i < io->count; ++i) {
        int *of_owner = &next[owner[i]];
        if (begins_blocks(&io->tensor[i])) least = turns;
        turn[i] = *of_owner > least ? *of_owner : least;
        *of_owner = turn[i] + 1;
        if (*of_owner > turns) turns = *of_owner;
    }
    /* where a turn ends, and from there down to where it begins */
    memset(first, 0, (size_t)(io->count + 1) * sizeof *first);
    for (int i = 0; i < io->count; ++i) ++first[turn[i]];
    for (int t = 1; t <= turns; ++t) first[t] += first[t - 1];
    for (int i = io->count; i-- > 0;) order[--first[turn[i]]] = i;
    mem_free(&turn);
    mem_free(&next);
    return turns;
}

int64_t owners_largest(const CheckpointIo *io, const int *owner, int rank)
{
    int64_t largest = 1;
    for (int i = 0; i < io->count; ++i) {
        int64_t elements = shape_count(io->tensor[i].shape);
        if ((!owner || owner[i] == rank) && elements > largest) largest = elements;
    }
    return largest;
}
