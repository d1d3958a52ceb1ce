/* Checks the 64-bit ids of tables, and reports errors with file, sample and field. Compares what
 * identifies the ids of two sets, and computes the memory of a micro-batch's ids. */
#include "../data_private.h"

#include <string.h>

Status ids_fail(const DataSet *set, int64_t sample, int64_t field)
{
    /* The last entry of the index is the end of the last sample's last field. */
    if (sample == set->samples) --sample, field = set->fields;
    if (field == set->fields) --field;
    return fail(ERR_DATA,
                "%s: sample %lld, field %lld: /sparse_offset does not rise, points beyond the %lld "
                "ids, or gives a sample more than id_most (%lld) ids; make the file again",
                set->path, (long long)sample, (long long)field, (long long)set->ids.dim[0],
                (long long)set->ids_per_sample_max);
}

DataIds data_set_ids(const DataSet *set)
{
    return (DataIds){set->id_limit, set->field_first_hash, set->vocabulary_hash};
}

static bool known_and_different(uint64_t a, uint64_t b)
{
    return a && b && a != b;
}

bool data_ids_match(DataIds set, DataIds model)
{
    return !known_and_different(set.id_limit, model.id_limit) &&
           !known_and_different(set.field_first_hash, model.field_first_hash) &&
           !known_and_different(set.vocabulary_hash, model.vocabulary_hash);
}

Status ids_range_check(const DataSet *set, int64_t sample, const uint64_t *ids,
                       const int32_t *first)
{
    if (set->id_limit == 0) return OK;
    for (int64_t f = 0; f < set->fields; ++f)
        for (int32_t i = first[f]; i < first[f + 1]; ++i)
            if (ids[i] >= set->id_limit)
                return fail(ERR_DATA,
                            "%s: sample %lld, field %lld: its id is %llu, but ids are below "
                            "id_rows (%llu); correct the data set",
                            set->path, (long long)sample, (long long)f, (unsigned long long)ids[i],
                            (unsigned long long)set->id_limit);
    return OK;
}

Status ids_check(const DataSet *set, Reader *reader)
{
    if (set->fields == 0) return OK;
    uint64_t *ids = mem_new((size_t)(set->ids_per_sample_max + 1) * sizeof *ids);
    int32_t *first = mem_new((size_t)(set->fields + 1) * sizeof *first);
    Status st = OK;
    for (int64_t i = 0; st == OK && i < set->samples; ++i)
        st = reader_get_ids(reader, i, ids, first);
    mem_free(&ids);
    mem_free(&first);
    return st;
}

size_t data_ids_bytes(const DataSet *set, int64_t samples)
{
    if (set->fields == 0) return 0;
    return (size_t)(samples * set->ids_per_sample_max) * sizeof(uint64_t) +
           (size_t)(samples * set->fields + 1) * sizeof(int32_t);
}
