/* bag: looks up the data's ids in sparse tables, field by field: (N, fields*width); (N,
 * fields*ids*width) with mode concat; (N, width) if all fields are taken together. It has no
 * parameters: its tables belong to the graph (SparseTable). */
#include "kinds.h"

static const char *const attrs[] = {"width", "vocab",    "hashed", "fields", "first_field", "mode",
                                    "ids",   "together", "tables", "init",   "init_std",    NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    /* rows are initialised during a step, so without logarithms */
    size->init = INIT_UNIFORM;
    size->init_std = 0.01f;
}

static Status take_fields(OpSpec *spec, const LayerSize *size)
{
    if (size->fields == 0)
        return fail(ERR_CONFIG, "bag needs data with ids, and the data has none");
    if (spec->bag_fields == 0) spec->bag_fields = (int)size->fields - spec->bag_first;
    if (spec->bag_fields < 1 || spec->bag_first + spec->bag_fields > size->fields)
        return fail(
            ERR_CONFIG, "bag: %d fields from number %d on, but the data has %lld, from 0 on",
            spec->bag_fields < 1 ? 1 : spec->bag_fields, spec->bag_first, (long long)size->fields);
    return OK;
}

static Status check(const OpSpec *spec, const LayerSize *size)
{
    if (size->width < 1) return fail(ERR_CONFIG, "bag needs width, how many numbers a row has");
    if (size->hashed && size->vocab < 1)
        return fail(ERR_CONFIG, "bag: hashed needs vocab, how many rows the ids share");
    if (size->vocab > 0 && !size->hashed && size->id_rows > (uint64_t)size->vocab)
        return fail(ERR_CONFIG,
                    "bag: ids go up to %llu, vocab is only %lld: raise it, leave it out, so that "
                    "there are as many rows as ids, or say hashed: true",
                    (unsigned long long)(size->id_rows - 1), (long long)size->vocab);
    if ((spec->bag_mode == BAG_CONCAT) != (spec->bag_ids > 0))
        return fail(ERR_CONFIG,
                    "bag: mode concat and ids, how many a field has at most, go together");
    if (size->init == INIT_HE_NORMAL)
        return fail(ERR_CONFIG, "bag: init: 'he' is none of uniform, normal, zero");
    return OK;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)param;
    TRY(need_floats(spec, "bag", 2, 4, "the data"));
    TRY(take_fields(spec, size));
    TRY(check(spec, size));
    int64_t bags = spec->bag_together ? 1 : spec->bag_fields;
    int64_t rows = spec->bag_mode == BAG_CONCAT ? spec->bag_ids : 1;
    spec->row_width = (int)size->width;
    spec->y = desc_plain(shape_of(2, spec->x[0].shape.dim[0], bags * rows * size->width, 1, 1),
                         DTYPE_F32);
    return OK;
}

const LayerKind kind_bag = {
    .name = "bag",
    .op = OP_BAG,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_WHOLE,
    .help = "looks up rows of sparse tables by the ids in the data",
    .defaults = defaults,
    .infer = infer,
};
