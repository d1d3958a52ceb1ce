/* Assigns tensors to ranks by bytes, greedily, largest first, and divides them into turns. */
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

static void list_pieces(const CheckpointIo *io, Piece *piece)
{
    for (int i = 0; i < io->count; ++i) piece[i] = (Piece){shape_count(io->tensor[i].shape), i};
}

void checkpoint_owners(const CheckpointIo *io, int ranks, int *owner)
{
    Piece *piece = mem_new((size_t)(io->count + 1) * sizeof *piece);
    int64_t *load = mem_new((size_t)ranks * sizeof *load);
    list_pieces(io, piece);
    qsort(piece, (size_t)io->count, sizeof *piece, larger_first);
    for (int i = 0; i < io->count; ++i) {
        const CheckpointTensor *tensor = &io->tensor[piece[i].index];
        bool limited = tensor->rank_count > 0;
        int least = limited ? tensor->rank_first : 0;
        int end = limited ? least + tensor->rank_count : ranks;
        /* stops at a rank without tensors, because no rank has less */
        for (int r = least + 1; r < end && load[least] > 0; ++r)
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
    size_t room = (size_t)io->count + 1;
    Piece *piece = mem_new(room * sizeof *piece);
    int *next = mem_new((size_t)ranks * sizeof *next);
    int *turn = mem_new(room * sizeof *turn), turns = 0;
    list_pieces(io, piece);
    for (int i = 0, end, least = 0; i < io->count; least = turns) {
        /* tensors i to end - 1 may share turns */
        for (end = i + 1; end < io->count && !begins_blocks(&io->tensor[end]);) ++end;
        qsort(piece + i, (size_t)(end - i), sizeof *piece, larger_first);
        for (; i < end; ++i) {
            int *of_owner = &next[owner[piece[i].index]];
            int at = *of_owner > least ? *of_owner : least;
            turn[piece[i].index] = at;
            *of_owner = at + 1;
            if (at == turns) ++turns;
        }
    }
    /* After the sums first[t] is the end of turn t; the loop that counts down moves it to the
     * turn's beginning. */
    memset(first, 0, room * sizeof *first);
    for (int i = 0; i < io->count; ++i) ++first[turn[i]];
    for (int t = 1; t <= turns; ++t) first[t] += first[t - 1];
    for (int i = io->count; i-- > 0;) order[--first[turn[i]]] = i;
    mem_free(&turn);
    mem_free(&next);
    mem_free(&piece);
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
