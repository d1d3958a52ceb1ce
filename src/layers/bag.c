/* bag: looks up the data's ids in sparse tables. There is one bag for each field or, with the
 * attribute `together`, one bag for all fields. The output is (N, bags*width) or, with mode concat,
 * (N, bags*ids*width). The layer has no parameters: its tables belong to the graph
 * (SparseTable). */
#include "kinds.h"

static const char *const attrs[] = {"width", "vocab",    "hashed", "fields", "first_field", "mode",
                                    "ids",   "together", "tables", "init",   "init_std",    NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    /* Rows are initialised during steps. Uniform numbers are the default because they are fast:
     * they need no logarithms. */
    size->init = INIT_UNIFORM;
    size->init_std = 0.01f;
}

/* Sets the number of fields, if the attribute `fields` is not given, and checks it. */
static Status set_fields(OpSpec *spec, const LayerSize *size)
{
    if (size->fields == 0)
        return fail(ERR_CONFIG, "bag needs data with ids, and the data has none");
    if (spec->bag_fields == 0) spec->bag_fields = (int)size->fields - spec->bag_first;
    if (spec->bag_fields < 1 || spec->bag_first + spec->bag_fields > size->fields)
        return fail(
            ERR_CONFIG,
            "bag needs %d fields from field %d on, but the data has %lld fields, counted from 0",
            spec->bag_fields < 1 ? 1 : spec->bag_fields, spec->bag_first, (long long)size->fields);
    return OK;
}

static Status check_attrs(const OpSpec *spec, const LayerSize *size)
{
    if (size->width < 1) return fail(ERR_CONFIG, "bag needs width, the number of values in a row");
    if (size->hashed && size->rows < 1)
        return fail(ERR_CONFIG, "bag: hashed needs vocab, the number of rows that ids share");
    if (size->rows > 0 && !size->hashed && size->id_limit > (uint64_t)size->rows)
        return fail(
            ERR_CONFIG,
            "bag: ids go up to %llu, but vocab is only %lld: raise it, leave it out for one "
            "row per id, or set hashed: true",
            (unsigned long long)(size->id_limit - 1), (long long)size->rows);
    if ((spec->bag_mode == BAG_CONCAT) != (spec->bag_ids > 0))
        return fail(ERR_CONFIG, "bag: mode: concat needs ids, the largest number in a field, and "
                                "ids needs mode: concat");
    if (size->init == INIT_HE_NORMAL)
        return fail(ERR_CONFIG, "bag: init: 'he' is none of uniform, normal, zero");
    return OK;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)param;
    TRY(check_floats(spec, "bag", 2, 4, "the data"));
    TRY(set_fields(spec, size));
    TRY(check_attrs(spec, size));
    /* bags: number of bags of a sample; rows: number of vectors in the output of a bag */
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
    .channels = CHANNELS_FIXED,
    .help = "looks up rows of sparse tables by the ids in the data",
    .defaults = defaults,
    .infer = infer,
};
