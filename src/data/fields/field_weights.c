/* Computes the weights of a set's targets. There are three kinds: weights of rows, which are the
 * cosines of their latitudes; weights of pixels, which are the mask (data.mask); and weights of
 * variables and levels. Losses use all three kinds; metrics use only the first two. */
#include "field_patch.h"

#include <math.h>
#include <string.h>

Status field_weights_set(FieldSet *f, const Config *config, const ConfigVariable *entry, int first,
                         int end)
{
    const ConfigList *weights = &entry->weights;
    if (weights->count > 1 && weights->count != end - first)
        return config_fail_key(config, "data.variables",
                               "%s has %d weights for %d level%s: give weight, one for all, or "
                               "weights, one for each",
                               entry->name, weights->count, end - first,
                               end - first == 1 ? "" : "s");
    for (int i = first; i < end; ++i) {
        const int k = weights->count > 1 ? i - first : 0;
        f->target_weight[i] = weights->count > 0 ? (float)weights->value[k] : 1;
    }
    return OK;
}

Status field_weights_check(FieldSet *f, const Config *config, int64_t height, int64_t width)
{
    const FieldVariable *mask = f->mask >= 0 ? &f->variable[f->mask] : NULL;
    float most = 0;
    for (int i = 0; i < f->targets; ++i) most = fmaxf(most, f->target_weight[i]);
    if (most == 0)
        return config_fail_key(config, "data.variables",
                               "all targets have the weight 0: nothing would be learnt");
    f->latitude_weights = config->train.latitude_weights;
    if (f->latitude_weights && !field_rows_have_latitudes(f))
        return config_fail_key(config, "train.latitude_weights",
                               "the rows of targets in %s have no latitudes, that is, no "
                               "coordinate with the units degrees_north: remove this key",
                               field_path(f, 0));
    if (!mask) return OK;
    if (mask->levels != 1)
        return config_fail_key(config, "data.mask",
                               "%s has %d levels: a mask has one weight for each pixel", mask->name,
                               mask->levels);
    if (mask->size[FIELD_ROW] == height && mask->size[FIELD_COLUMN] == width) return OK;
    return config_fail_key(config, "data.mask",
                           "%s has fields of %lldx%lld, and targets are of %lldx%lld: a mask has "
                           "the size of the targets",
                           mask->name, (long long)mask->size[FIELD_ROW],
                           (long long)mask->size[FIELD_COLUMN], (long long)height,
                           (long long)width);
}

bool field_rows_have_latitudes(const FieldSet *f)
{
    return f->target_rows.degrees && f->target_rows.count > 0;
}

double *field_row_weights(const DataSet *set, bool latitude)
{
    const FieldSet *f = &set->field_set;
    const int64_t rows = f->variable[f->target[0].variable].size[FIELD_ROW];
    const double degree = 3.14159265358979323846 / 180;
    double *weight = mem_new((size_t)rows * sizeof *weight);
    latitude = latitude && field_rows_have_latitudes(f);
    for (int64_t i = 0; i < rows; ++i) /* the cosine of 90 degrees is not exactly 0 */
        weight[i] = latitude ? fmax(cos((double)f->target_rows.value[i] * degree), 0) : 1;
    return weight;
}

/* Returns whether the set has a mask that varies in time. */
static bool mask_varies(const FieldSet *f)
{
    return f->mask >= 0 && !f->variable[f->mask].is_static;
}

/* Multiplies the weights of pixels by the mask at a frame. A missing value of the mask counts as 0.
 * ERR_DATA: a value of the mask is not from 0 to 1. */
static Status multiply_mask(const DataSet *set, FieldReader *reader, int64_t frame, int64_t pixels,
                            double *pixel)
{
    const FieldSet *f = &set->field_set;
    double *mask = mem_new((size_t)pixels * sizeof *mask);
    Status st = field_read_variable(reader, f->mask, frame, mask);
    for (int64_t i = 0; st == OK && i < pixels; ++i) {
        if (mask[i] < 0 || mask[i] > 1)
            st = fail(ERR_DATA,
                      "%s: %s has the value %g, and data.mask needs weights from 0 to 1: divide "
                      "percents by 100",
                      field_path(f, 0), f->variable[f->mask].name, mask[i]);
        pixel[i] *= isnan(mask[i]) ? 0 : mask[i];
    }
    mem_free(&mask);
    return st;
}

Status field_weights_init(FieldWeights *weights, const DataSet *set, FieldReader *reader,
                          bool latitude)
{
    const FieldSet *f = &set->field_set;
    const FieldVariable *target = &f->variable[f->target[0].variable];
    const int64_t rows = target->size[FIELD_ROW], columns = target->size[FIELD_COLUMN];
    const int64_t pixels = rows * columns;
    double *row = field_row_weights(set, latitude), sum = 0;
    Status st = OK;
    *weights = (FieldWeights){.rows = rows,
                              .columns = columns,
                              .pixel = mem_new((size_t)pixels * sizeof *weights->pixel),
                              .vary = mask_varies(f)};
    for (int64_t i = 0; i < pixels; ++i) weights->pixel[i] = row[i / columns];
    mem_free(&row);
    if (f->mask >= 0 && !weights->vary) st = multiply_mask(set, reader, 0, pixels, weights->pixel);
    for (int64_t i = 0; i < pixels; ++i) sum += weights->pixel[i];
    if (st == OK && sum == 0)
        st = f->mask >= 0
                 ? fail(ERR_DATA,
                        "%s: all values of %s are 0 or missing, so data.mask leaves no pixel",
                        field_path(f, 0), f->variable[f->mask].name)
                 : fail(ERR_DATA,
                        "%s: train.latitude_weights: the cosines of the latitudes of %s add up "
                        "to 0: set it to false",
                        field_path(f, 0), target->name);
    if (st != OK) field_weights_fini(weights);
    return st;
}

void field_weights_fini(FieldWeights *weights)
{
    mem_free(&weights->pixel);
}

Status field_weights_at(const FieldWeights *weights, const DataSet *set, FieldReader *reader,
                        int64_t frame, double *pixel)
{
    const int64_t pixels = weights->rows * weights->columns;
    memcpy(pixel, weights->pixel, (size_t)pixels * sizeof *pixel);
    return weights->vary ? multiply_mask(set, reader, frame, pixels, pixel) : OK;
}

bool field_loss_has_weights(const FieldSet *f)
{
    bool has = f->mask >= 0 || f->latitude_weights;
    for (int i = 0; i < f->targets; ++i) has = has || f->target_weight[i] != 1;
    return has;
}

bool field_loss_weights_vary(const FieldSet *f)
{
    return mask_varies(f) || (f->patch.size[0] > 0 && field_loss_has_weights(f));
}

Status field_loss_weights(const FieldWeights *weights, const DataSet *set, FieldReader *reader,
                          int64_t epoch, int64_t sample, float *weight)
{
    const FieldSet *f = &set->field_set;
    const FieldPlace place = field_place(f, epoch, sample);
    const FieldRect *w = &place.target;
    double *pixel = mem_new((size_t)(weights->rows * weights->columns) * sizeof *pixel);
    Status st = OK;
    for (int i = 0; st == OK && i < f->targets; ++i) {
        const int offset = f->target[i].offset;
        if (i == 0 || offset != f->target[i - 1].offset)
            st = field_weights_at(weights, set, reader,
                                  place.frame + f->offset[FIELD_TARGET][offset], pixel);
        for (int64_t k = 0; st == OK && k < w->rows * w->columns; ++k) {
            const int64_t row = w->row + k / w->columns, column = w->column + k % w->columns;
            *weight++ =
                (float)((double)f->target_weight[i] * pixel[row * weights->columns + column]);
        }
    }
    mem_free(&pixel);
    return st;
}
