/* Measures mean and deviation of fields on all ranks: each rank reads a part of the frames. */
#include "train.h"

Status train_measure_fields(const World *world, const DataSet *set, FieldStats *stats, int threads)
{
    const int64_t blocks = data_fields_blocks(set);
    const int64_t first = blocks * world->rank / world->size;
    const int64_t end = blocks * (world->rank + 1) / world->size;
    data_fields_list_stats(set, stats);
    FieldMoments *moments = mem_new((size_t)(blocks * stats->count) * sizeof *moments);
    const Status mine = data_fields_measure_blocks(set, stats, threads, first, end - first,
                                                   moments + first * stats->count);
    Status st = status_agree(world, mine);
    if (st == OK)
        world_allreduce_disjoint(world, &moments->count,
                                 blocks * stats->count *
                                     (int64_t)(sizeof *moments / sizeof(double)));
    if (st == OK) data_fields_join(stats, moments, blocks);
    mem_free(&moments);
    return st;
}
