/* Places storages in memory. A storage is in its micro-batch's slot if it is alive in several
 * passes, or if it is sent or received (also by a copy between two chunks of the stage) and other
 * tasks may run between this transfer and the pass. Any other storage is in a part of the slot that
 * is free during its life or, if there is none, in scratch memory. First the storages of the slot
 * are placed, then the others; both largest first, each at the lowest free offset. If the stage has
 * one chunk with one slot, all storages are in the slot, which needs the least memory. Storages in
 * the previous chunk's slot have their places already. */
#include "chunk.h"

#include <stdlib.h>

int storage_new(Planner *p, size_t bytes)
{
    if (p->storage_count == p->storage_capacity) {
        p->storage_capacity = p->storage_capacity ? 2 * p->storage_capacity : 64;
        p->storage = mem_resize(p->storage, (size_t)p->storage_capacity * sizeof *p->storage);
    }
    p->storage[p->storage_count] = (Storage){.bytes = place_align(bytes),
                                             .first = -1,
                                             .last = -1,
                                             .reader = NO_NODE,
                                             .back_first = INT_MAX,
                                             .input_last = NO_NODE};
    return p->storage_count++;
}

void storage_use(Planner *p, int storage)
{
    if (storage < 0) return;
    Storage *s = &p->storage[storage];
    if (s->first < 0) s->first = p->tick;
    s->last = p->tick;
}

static int by_size(const void *a, const void *b)
{
    const Storage *x = *(Storage *const *)a, *y = *(Storage *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : 1;
}

/* Returns the lowest offset >= from at which s does not overlap a placed storage that is alive at
 * the same time. The tree's ticks are larger by 1, because unused storages have tick -1. */
static int64_t first_fit(const PlaceTree *placed, const Storage *s, int64_t from)
{
    return place_tree_lowest(placed, s->first + 1, s->last + 1, from, (int64_t)s->bytes);
}

/* Places s at offset `at` and returns the end of its bytes. */
static int64_t place(PlaceTree *placed, Storage *s, int64_t at)
{
    int64_t end = at + (int64_t)s->bytes;
    s->offset = at;
    place_tree_add(placed, s->first + 1, s->last + 1, (Span){at, end});
    return end;
}

/* Returns true if the storage is alive in more than one pass. */
static bool crosses_pass(const Planner *p, const Storage *s)
{
    for (int i = 0; i < PASSES; ++i)
        if (s->first < p->boundary[i] && s->last >= p->boundary[i]) return true;
    return false;
}

void storages_lay(Planner *p)
{
    Storage **order = mem_new((size_t)(p->storage_count + 1) * sizeof *order);
    int64_t kept = 0, top = 0;
    int count = 0;
    bool one_slot = p->chunk->slots == 1 && p->schedule->shape.chunks_per_stage == 1;
    for (int i = 0; i < p->storage_count; ++i) {
        if (p->storage[i].in_previous) continue;
        order[count] = &p->storage[i];
        order[count]->kept = order[count]->kept || one_slot || crosses_pass(p, order[count]);
        ++count;
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    PlaceTree *placed = place_tree_new(p->tick + 2);
    for (int i = 0; i < count; ++i) {
        if (!order[i]->kept) continue;
        int64_t end = place(placed, order[i], first_fit(placed, order[i], 0));
        kept = end > kept ? end : kept;
    }
    for (int i = 0; i < count; ++i) {
        if (order[i]->kept) continue;
        int64_t at = first_fit(placed, order[i], 0);
        if (at + (int64_t)order[i]->bytes > kept) at = first_fit(placed, order[i], kept);
        int64_t end = place(placed, order[i], at);
        top = end > top ? end : top;
    }
    p->chunk->kept_bytes = (size_t)kept;
    p->chunk->scratch_bytes = (size_t)(top > kept ? top - kept : 0);
    mem_free(&order);
    place_tree_free(&placed);
}

int64_t storage_offset(const Planner *p, int storage)
{
    return storage == STORAGE_INPUT ? OFFSET_INPUT
           : storage < 0            ? OFFSET_NONE
                                    : p->storage[storage].offset;
}
