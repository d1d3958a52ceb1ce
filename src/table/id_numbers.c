/* Numbers for (table, id) pairs, and sums over a tree. */
#include "id_numbers.h"

#include <string.h>

void id_numbers_init(IdNumbers *names, int64_t most)
{
    int64_t places = 64;
    while (places < 2 * most) places *= 2;
    *names = (IdNumbers){.place = mem_new((size_t)places * sizeof *names->place),
                         .mask = (uint64_t)places - 1,
                         .id = mem_new((size_t)(most + 1) * sizeof *names->id),
                         .table = mem_new((size_t)(most + 1) * sizeof *names->table)};
    id_numbers_clear(names);
}

void id_numbers_fini(IdNumbers *names)
{
    mem_free(&names->place);
    mem_free(&names->id);
    mem_free(&names->table);
}

void id_numbers_clear(IdNumbers *names)
{
    memset(names->place, 0xff, (size_t)(names->mask + 1) * sizeof *names->place);
    names->count = 0;
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
