/* Cuts patches out of fields (data.patch). In training the place of a sample's patch is drawn from
 * (seed, epoch, sample), so it is the same on any grid of ranks. In evaluations the fields are
 * covered by tiles, row by row. Along an axis of H pixels, with patches of p pixels:
 *
 *     0   p   2p H-p
 *     |---|---|-|--|
 *
 * Each tile begins p pixels after the tile before it, but the last tile ends at the end of the
 * field. Pixels that two tiles have in common are counted in the first of the two. The grids of
 * inputs and targets may differ by an integer factor; both are cut at the same place. */
#include "field_patch.h"

#include <math.h>

/* ---- keys ---- */

/* Finds the factor between the grids along one axis, which have `inputs` and `targets` rows (or
 * columns). Sets *input and *target to the numbers of rows of the inputs and of the targets that
 * have the same length; one of the two numbers is 1. Returns false if there is no integer
 * factor. */
static bool find_factor(int64_t inputs, int64_t targets, int64_t *input, int64_t *target)
{
    *input = inputs > targets ? inputs / targets : 1;
    *target = targets > inputs ? targets / inputs : 1;
    return inputs * *target == targets * *input;
}

Status data_set_take_patch(DataSet *set, const Config *config, bool tiles)
{
    FieldSet *f = &set->field_set;
    FieldPatch *p = &f->patch;
    const ConfigPatch *key = &config->data.patch;
    const int64_t size[] = {key->rows, key->columns};
    const int64_t inputs[] = {set->height, set->width}, targets[] = {set->y.dim[2], set->y.dim[3]};
    if (key->rows == 0) return OK;
    if (!data_has_fields(set))
        return config_fail_key(config, "data.patch", "%s holds no fields: remove it", set->path);
    for (int i = 0; i < 2; ++i) {
        const char *name = i == 0 ? "rows" : "columns";
        if (size[i] > inputs[i])
            return config_fail_key(config, "data.patch",
                                   "has %lld %s, but the inputs of %s have %lld",
                                   (long long)size[i], name, set->path, (long long)inputs[i]);
        if (!find_factor(inputs[i], targets[i], &p->input_unit[i], &p->target_unit[i]))
            return config_fail_key(config, "data.patch",
                                   "the inputs of %s have %lld %s and the targets %lld, of which "
                                   "neither is a multiple of the other: such fields cannot be cut "
                                   "alike",
                                   set->path, (long long)inputs[i], name, (long long)targets[i]);
        if (size[i] % p->input_unit[i] != 0)
            return config_fail_key(config, "data.patch",
                                   "has %lld %s, which must be a multiple of %lld: the inputs have "
                                   "%lld times the %s of the targets",
                                   (long long)size[i], name, (long long)p->input_unit[i],
                                   (long long)p->input_unit[i], name);
        p->size[i] = size[i];
        p->field_size[i] = inputs[i];
        p->tiles[i] = tiles ? (inputs[i] + size[i] - 1) / size[i] : 0;
    }
    p->seed = (uint64_t)config->run.seed;
    if (tiles) set->samples *= p->tiles[0] * p->tiles[1];
    field_set_sizes(set, size[0], size[1], size[0] / p->input_unit[0] * p->target_unit[0],
                    size[1] / p->input_unit[1] * p->target_unit[1]);
    return OK;
}

int64_t data_tiles(const DataSet *set)
{
    const FieldPatch *p = &set->field_set.patch;
    return p->tiles[0] > 0 ? p->tiles[0] * p->tiles[1] : 1;
}

void data_set_drop_patch(DataSet *set)
{
    const FieldPatch p = set->field_set.patch;
    if (p.size[0] == 0) return;
    set->samples /= data_tiles(set);
    set->field_set.patch = (FieldPatch){.field_size = {p.field_size[0], p.field_size[1]}};
    field_set_sizes(set, p.field_size[0], p.field_size[1],
                    p.field_size[0] / p.input_unit[0] * p.target_unit[0],
                    p.field_size[1] / p.input_unit[1] * p.target_unit[1]);
}

/* ---- places ---- */

/* Returns the first row (or column) of a patch's inputs along an axis. In an evaluation the patch
 * is tile number `tile` of the axis; in training its place is drawn by `key`. *before: number of
 * the patch's first rows of targets that belong to the tile before it. */
static int64_t begin_of(const FieldPatch *p, int axis, int64_t tile, RngKey key, int64_t *before)
{
    const int64_t unit = p->input_unit[axis], room = p->field_size[axis] - p->size[axis];
    *before = 0;
    if (p->tiles[axis] == 0)
        return (int64_t)draw_below(rng_u32(key, (uint64_t)axis), room / unit + 1) * unit;
    const int64_t begin = tile * p->size[axis] < room ? tile * p->size[axis] : room;
    *before = (tile * p->size[axis] - begin) / unit * p->target_unit[axis];
    return begin;
}

FieldPlace field_place(const FieldSet *f, int64_t epoch, int64_t sample)
{
    const FieldPatch *p = &f->patch;
    const int64_t tiles = p->tiles[0] > 0 ? p->tiles[0] * p->tiles[1] : 1;
    FieldPlace place = {.frame = field_sample_frame(f, sample / tiles)};
    const FieldVariable *y = &f->variable[f->target[0].variable];
    if (p->size[0] == 0) {
        place.input.rows = p->field_size[0], place.input.columns = p->field_size[1];
        place.target.rows = y->size[FIELD_ROW], place.target.columns = y->size[FIELD_COLUMN];
        return place;
    }
    const RngKey key = rng_key(p->seed, RNG_PATCH, (uint64_t)epoch, (uint64_t)sample);
    const int64_t tile[] = {sample % tiles / (p->tiles[1] > 0 ? p->tiles[1] : 1),
                            sample % tiles % (p->tiles[1] > 0 ? p->tiles[1] : 1)};
    int64_t begin[2], before[2];
    for (int i = 0; i < 2; ++i) begin[i] = begin_of(p, i, tile[i], key, &before[i]);
    place.rows_before = before[0];
    place.columns_before = before[1];
    place.input = (FieldRect){begin[0], begin[1], p->size[0], p->size[1]};
    place.target = (FieldRect){begin[0] / p->input_unit[0] * p->target_unit[0],
                               begin[1] / p->input_unit[1] * p->target_unit[1],
                               p->size[0] / p->input_unit[0] * p->target_unit[0],
                               p->size[1] / p->input_unit[1] * p->target_unit[1]};
    return place;
}

void field_patch_leave_out(const FieldPlace *place, double *plane)
{
    const int64_t rows = place->target.rows, columns = place->target.columns;
    for (int64_t i = 0; i < rows * columns; ++i)
        if (i / columns < place->rows_before || i % columns < place->columns_before) plane[i] = NAN;
}

int64_t data_sample_place(const DataSet *set, int64_t sample, int64_t *row, int64_t *column)
{
    const FieldPlace place = field_place(&set->field_set, 0, sample);
    *row = place.target.row;
    *column = place.target.column;
    return place.frame;
}
