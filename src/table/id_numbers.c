/* Gives numbers to distinct (table, id) pairs, and sums over a tree of which leaves may be
 * absent. */
#include "id_numbers.h"

#include <string.h>

void id_numbers_init(IdNumbers *numbers, int64_t capacity)
{
    int64_t slots = 64;
    while (slots < 2 * capacity) slots *= 2;
    *numbers = (IdNumbers){.slot = mem_new((size_t)slots * sizeof *numbers->slot),
                           .mask = (uint64_t)slots - 1,
                           .id = mem_new((size_t)(capacity + 1) * sizeof *numbers->id),
                           .table = mem_new((size_t)(capacity + 1) * sizeof *numbers->table)};
    id_numbers_clear(numbers);
}

void id_numbers_fini(IdNumbers *numbers)
{
    mem_free(&numbers->slot);
    mem_free(&numbers->id);
    mem_free(&numbers->table);
}

void id_numbers_clear(IdNumbers *numbers)
{
    memset(numbers->slot, 0xff, (size_t)(numbers->mask + 1) * sizeof *numbers->slot);
    numbers->count = 0;
}

void sparse_tree_sum(int32_t *position, float **value, int count, int width)
{
    while (count > 1) {
        int left = 0;
        for (int k = 0; k < count; ++k) {
            int32_t parent = position[k] / 2;
            if (left > 0 && position[left - 1] == parent) {
                float *to = value[left - 1];
                const float *from = value[k];
                for (int c = 0; c < width; ++c) to[c] += from[c];
                continue;
            }
            position[left] = parent;
            value[left++] = value[k];
        }
        count = left;
    }
}
