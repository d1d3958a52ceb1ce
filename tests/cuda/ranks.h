/* Three ranks of a tensor-parallel group in one process, with slices of unequal length, on one
 * backend. The ranks run one after the other, so in the first run no exchange is complete: the data
 * that each rank sends is stored. Then all ranks run again. In the second run the first exchange is
 * complete, in the third run the second exchange, too. */
#ifndef WEFT_TEST_CUDA_RANKS_H
#define WEFT_TEST_CUDA_RANKS_H

#include "cases.h"

enum { SLICES = 3, EXCHANGES = 2, SLICE_ROOM = 1 << 16 };

typedef struct Ranks {
    Rig rig[SLICES];
    Exchange exchange[SLICES];
    /* owned, [SLICE_ROOM] each */
    float *x[SLICES], *dy[SLICES], *out[SLICES];
    /* data that each rank has sent to each exchange; NULL: none yet; owned */
    char *sent[EXCHANGES][SLICES];
    /* number of the next exchange of the rank that is running */
    int next_exchange;
} Ranks;

/* Copies a rank's packed slice to the whole tensor if `into` is true, else from it, on the host. */
static void slice_move(Slices s, int rank, void *whole, void *mine, bool into)
{
    size_t unit = (size_t)s.item_elements * dtype_bytes(s.type);
    size_t first = (size_t)slice_first(s.items, SLICES, rank) * unit;
    size_t run = (size_t)slice_first(s.items, SLICES, rank + 1) * unit - first;
    for (int64_t i = 0; i < s.ranges; ++i) {
        char *here = (char *)whole + (size_t)(i * s.items) * unit + first;
        char *there = (char *)mine + (size_t)i * run;
        memcpy(into ? here : there, into ? there : here, run);
    }
}

static size_t slice_bytes(Slices s, int rank)
{
    int64_t items = slice_first(s.items, SLICES, rank + 1) - slice_first(s.items, SLICES, rank);
    return (size_t)(s.ranges * items * s.item_elements) * dtype_bytes(s.type);
}

static size_t whole_bytes(Slices s)
{
    return (size_t)(s.ranges * s.items * s.item_elements) * dtype_bytes(s.type);
}

/* Stores the data that this rank sends to its next exchange. Returns the data of all ranks,
 * [SLICES]; NULL for a rank that has not sent yet. */
static char **slices_exchange(const Exchange *x, const void *mine, size_t bytes)
{
    Ranks *all = x->user;
    CU_ASSERT_FATAL(all->next_exchange < EXCHANGES);
    char **sent = all->sent[all->next_exchange++];
    mem_free(&sent[x->rank]);
    sent[x->rank] = mem_new(bytes);
    rig_copy(&all->rig[x->rank], sent[x->rank], mine, bytes);
    return sent;
}

static void slices_gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    Ranks *all = x->user;
    char **sent = slices_exchange(x, mine, slice_bytes(s, x->rank)),
         *host = mem_new(whole_bytes(s));
    for (int r = 0; r < SLICES; ++r)
        if (sent[r]) slice_move(s, r, host, sent[r], true);
    rig_copy(&all->rig[x->rank], whole, host, whole_bytes(s));
    mem_free(&host);
}

static float number_in(DType type, const void *from, int64_t i)
{
    if (type == DTYPE_BF16) return bf16_value(((const Bf16 *)from)[i]);
    if (type == DTYPE_F16) return f16_value(((const F16 *)from)[i]);
    return ((const float *)from)[i];
}

static void number_out(DType type, void *to, int64_t i, float value)
{
    if (type == DTYPE_BF16)
        ((Bf16 *)to)[i] = bf16_of(value);
    else if (type == DTYPE_F16)
        ((F16 *)to)[i] = f16_of(value);
    else
        ((float *)to)[i] = value;
}

static void slices_reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    Ranks *all = x->user;
    char **sent = slices_exchange(x, whole, whole_bytes(s)), *host = mem_new(whole_bytes(s));
    for (int64_t i = 0; i < s.ranges * s.items * s.item_elements; ++i) {
        float sum = 0;
        for (int r = 0; r < SLICES; ++r)
            if (sent[r]) sum += number_in(s.type, sent[r], i);
        number_out(s.type, host, i, sum);
    }
    char *part = mem_new(slice_bytes(s, x->rank));
    slice_move(s, x->rank, host, part, false);
    rig_copy(&all->rig[x->rank], mine, part, slice_bytes(s, x->rank));
    mem_free(&part);
    mem_free(&host);
}

static void ranks_forget(Ranks *all)
{
    for (int m = 0; m < EXCHANGES; ++m)
        for (int r = 0; r < SLICES; ++r) mem_free(&all->sent[m][r]);
}

static void ranks_forward(Ranks *all)
{
    for (int turn = 0, reached = 0; turn <= reached; ++turn, reached = all->next_exchange)
        for (int r = 0; r < SLICES; ++r) {
            all->next_exchange = 0;
            rig_set_x(&all->rig[r], 0, all->x[r]);
            rig_poison(&all->rig[r]);
            rig_forward(&all->rig[r]);
        }
    ranks_forget(all);
}

static void ranks_backward(Ranks *all)
{
    for (int turn = 0, reached = 0; turn <= reached; ++turn, reached = all->next_exchange)
        for (int r = 0; r < SLICES; ++r) {
            all->next_exchange = 0;
            rig_backward(&all->rig[r], all->rig[r].run.dy ? all->dy[r] : NULL);
        }
    ranks_forget(all);
}

static void ranks_init(Ranks *all)
{
    *all = (Ranks){0};
    for (int r = 0; r < SLICES; ++r) {
        float **owned[] = {&all->x[r], &all->dy[r], &all->out[r]};
        for (int i = 0; i < 3; ++i) *owned[i] = mem_new(SLICE_ROOM * sizeof(float));
        all->exchange[r] = (Exchange){.rank = r,
                                      .size = SLICES,
                                      .user = all,
                                      .all_gather = slices_gather,
                                      .reduce_scatter = slices_reduce};
    }
}

static void ranks_fini(Ranks *all)
{
    for (int r = 0; r < SLICES; ++r) {
        rig_close(&all->rig[r]);
        mem_free(&all->x[r]);
        mem_free(&all->dy[r]);
        mem_free(&all->out[r]);
    }
}

static TensorSlice rank_slice(int dim, int64_t whole, int rank)
{
    int64_t first = slice_first(whole, SLICES, rank);
    return (TensorSlice){.dim = dim,
                         .rank = rank,
                         .ranks = SLICES,
                         .first = first,
                         .count = slice_first(whole, SLICES, rank + 1) - first,
                         .whole = whole};
}

/* Returns the layout of dense's output, whose rows may be padded. */
static Desc dense_output(const Backend *backend, Shape shape)
{
    Desc d = desc_plain(shape, backend->options.precision);
    int64_t width = shape.dim[shape.ndim - 1];
    if (dtype_bytes(d.dtype) == 2 && width >= 1024 && width % 8) d.block = 64;
    return d;
}

#endif
