/* Fills the rows of micro-batches: reads, decodes and augments samples, and mixes images. Until
 * images are mixed, a row depends only on its sample, its epoch and the seed, so any thread may
 * fill rows in any order. */
#include "fill.h"

#include <string.h>

enum {
    /* largest number of bytes that evaluation reads at once, unless a sample is larger */
    READ_BYTES = 4 << 20,
    /* number of rows that are prefetched ahead if samples have at most SMALL_SAMPLE bytes */
    PREFETCH_SMALL = 8,
    /* number of rows that are prefetched ahead if samples are larger, or tokens */
    PREFETCH_LARGE = 1,
    /* bytes */
    SMALL_SAMPLE = 1024
};

void fill_scratch_init(FillScratch *scratch, const Fill *f)
{
    bool tokens = data_has_tokens(&f->set);
    int64_t rows = f->plan.micro_batch, bytes = f->set.x.sample_bytes;
    int64_t samples = f->plan.training ? 1 : READ_BYTES / bytes;
    *scratch = (FillScratch){.raw_items = samples < 1 ? 1 : samples < rows ? samples : rows};
    if (tokens) scratch->raw_items = f->set.context + 1;
    if (f->needs_picture_converter && !f->plan.skips_inputs)
        scratch->converter = picture_converter_new(&f->set, f->config);
    else if (tokens || (!f->plan.skips_inputs && !data_has_fields(&f->set)))
        scratch->raw = mem_new((size_t)(scratch->raw_items * bytes));
    if (f->set.fields > 0)
        scratch->sample_id_first = mem_new((size_t)(f->set.fields + 1) * sizeof(int32_t));
    if (f->mixes_images && !f->plan.skips_inputs)
        scratch->spare = mem_new((size_t)f->sample_floats * sizeof *scratch->spare);
}

void fill_scratch_fini(FillScratch *scratch)
{
    picture_converter_free(&scratch->converter);
    mem_free(&scratch->raw);
    mem_free(&scratch->sample_id_first);
    mem_free(&scratch->spare);
}

Status fill_weights_init(Fill *fill)
{
    Fill *f = fill;
    const DataSet *set = &f->set;
    FieldReader *reader = reader_fields(f->reader);
    const FieldSet *fields = &set->field_set;
    if (!reader || f->plan.skips_labels || !field_loss_has_weights(fields)) return OK;
    TRY(field_weights_init(&f->pixel_weights, set, reader, fields->latitude_weights));
    f->weights_vary = field_loss_weights_vary(fields);
    if (f->weights_vary) return OK;
    f->weights = mem_new((size_t)set->target_width * sizeof *f->weights);
    return field_loss_weights(&f->pixel_weights, set, reader, 0, 0, f->weights);
}

void fill_weights_fini(Fill *fill)
{
    field_weights_fini(&fill->pixel_weights);
    mem_free(&fill->weights);
}

/* Returns ERR_DATA, with the message that the sample has a value that is not finite. Such values
 * are refused because a NaN would spread to all parameters, and a relu could hide it from the
 * loss. */
static Status not_finite_fail(const Fill *f, const DataArray *array, int64_t sample)
{
    return fail(ERR_DATA,
                "%s: sample %lld of %s holds a value that is not %s; correct the data set, `weft "
                "data check` reads all of it",
                f->set.path, (long long)sample, array->name, element_finite_text(array->type));
}

/* Reads the ids of row r to b->ids[r * ids_per_sample_max], and sets id_first[r * fields + i + 1]
 * to the number of ids of field i. join_ids later completes both arrays. */
static Status read_ids(const Fill *f, FillScratch *s, MicroBatch *b, int64_t r)
{
    int64_t fields = f->set.fields;
    TRY(reader_get_ids(f->reader, b->sample[r], b->ids + r * f->set.ids_per_sample_max,
                       s->sample_id_first));
    for (int64_t i = 0; i < fields; ++i)
        b->id_first[r * fields + i + 1] = s->sample_id_first[i + 1] - s->sample_id_first[i];
    return OK;
}

/* Moves the ids of all rows together, and replaces the numbers of ids in id_first by indices. */
static void join_ids(const Fill *f, MicroBatch *b)
{
    int64_t fields = f->set.fields;
    int32_t at = 0;
    b->id_first[0] = 0;
    for (int64_t r = 0; r < f->plan.micro_batch; ++r) {
        int32_t begin = at, *first = b->id_first + r * fields + 1;
        for (int64_t i = 0; i < fields; ++i) first[i] = at += first[i];
        if (begin != r * f->set.ids_per_sample_max)
            memmove(b->ids + begin, b->ids + r * f->set.ids_per_sample_max,
                    (size_t)(at - begin) * sizeof *b->ids);
    }
}

/* Reads the ids and the label or the targets of row r, and writes its boxes; each only if the batch
 * has memory for it. ERR_DATA: a target is not finite. */
static Status read_ids_and_y(const Fill *f, FillScratch *s, MicroBatch *b, int64_t r)
{
    if (b->ids) TRY(read_ids(f, s, b, r));
    if (b->box_start) fill_boxes(f, b, r);
    int64_t width = f->set.target_width;
    float *target = b->targets ? b->targets + r * width : NULL;
    TRY(reader_get(f->reader, b->sample[r], NULL, b->labels ? b->labels + r : NULL, target));
    if (target && element_find_not_finite(ELEM_F32, target, width) >= 0)
        return not_finite_fail(f, &f->set.y, b->sample[r]);
    return OK;
}

/* Converts x of a sample, as it is stored, to row r of b->x. ERR_DATA: a value is not finite. */
static Status convert_x(const Fill *f, MicroBatch *b, int64_t r, const uint8_t *raw)
{
    if (element_find_not_finite(f->set.x.type, raw, f->sample_floats) >= 0)
        return not_finite_fail(f, &f->set.x, b->sample[r]);
    augment_sample(&f->set, f->config, f->plan.training, b->epoch, b->sample[r], raw,
                   b->x + r * f->sample_floats);
    return OK;
}

/* Reads the `context` tokens of row r, and its labels, which begin one token later. Checks every
 * token, since it selects a row of the embedding. */
static Status read_tokens(const Fill *f, FillScratch *s, MicroBatch *b, int64_t r)
{
    const DataArray *x = &f->set.x;
    int64_t context = f->set.context, first = b->sample[r] * context + (b->tokens ? 0 : 1);
    int64_t count = context + (b->tokens && b->labels ? 1 : 0);
    const uint8_t *labels = s->raw + (b->tokens ? x->sample_bytes : 0);
    if (!b->tokens && !b->labels) return OK;
    TRY(reader_get_rows(f->reader, first, count, s->raw));
    int64_t bad = element_find_outside(x->type, s->raw, count, f->set.vocab);
    if (bad >= 0) return token_fail(&f->set, first + bad, s->raw + bad * x->sample_bytes);
    if (b->tokens) element_int32(x->type, b->tokens + r * context, s->raw, context);
    if (b->labels) element_int32(x->type, b->labels + r * context, labels, context);
    return OK;
}

/* Reads row r of a set of fields: its inputs, and its targets or labels, either of the whole sample
 * or of the patch that is cut from it in this epoch. */
static Status read_fields(const Fill *f, MicroBatch *b, int64_t r)
{
    float *x = b->x ? b->x + r * f->sample_floats : NULL;
    float *target = b->targets ? b->targets + r * f->set.target_width : NULL;
    int32_t *label = b->labels ? b->labels + r * f->sample_labels : NULL;
    TRY(reader_get_fields(f->reader, b->epoch, b->sample[r], x, label, target));
    if (target && b->weights_stride > 0)
        TRY(field_loss_weights(&f->pixel_weights, &f->set, reader_fields(f->reader), b->epoch,
                               b->sample[r], b->target_weights + r * b->weights_stride));
    if (x && element_find_not_finite(f->set.x.type, x, f->sample_floats) >= 0)
        return not_finite_fail(f, &f->set.x, b->sample[r]);
    return OK;
}

static Status fill_row(const Fill *f, FillScratch *s, MicroBatch *b, int r)
{
    if (data_has_fields(&f->set)) return read_fields(f, b, r);
    if (b->x && s->converter && data_has_boxes(&f->set)) {
        TRY(picture_prepare_scene(s->converter, f->reader, &f->boxes, f->plan.training, b->epoch,
                                  b->sample[r], b->x + r * f->sample_floats));
    } else if (b->x && s->converter) {
        TRY(picture_prepare_sample(s->converter, f->reader, f->plan.training, b->epoch,
                                   b->sample[r], b->x + r * f->sample_floats));
    } else if (b->x) {
        TRY(reader_get(f->reader, b->sample[r], s->raw, NULL, NULL));
        TRY(convert_x(f, b, r, s->raw));
    }
    return read_ids_and_y(f, s, b, r);
}

static Status fill_one_by_one(const Fill *f, FillScratch *s, MicroBatch *b, int first, int count,
                              int *bad_row)
{
    bool tokens = data_has_tokens(&f->set), prefetch = (tokens || b->x) && !f->set.encoded;
    int end = first + count, prefetched = first;
    int ahead = tokens || f->set.x.sample_bytes > SMALL_SAMPLE ? PREFETCH_LARGE : PREFETCH_SMALL;
    for (int r = first; r < end; ++r) {
        *bad_row = r;
        for (; prefetch && prefetched < end && prefetched <= r + ahead; ++prefetched)
            reader_prefetch(f->reader, b->sample[prefetched]);
        TRY(tokens ? read_tokens(f, s, b, r) : fill_row(f, s, b, r));
    }
    return OK;
}

/* Fills rows whose samples are consecutive in the set. One read fetches x of up to raw_items
 * samples. */
static Status fill_consecutive(const Fill *f, FillScratch *s, MicroBatch *b, int first, int count,
                               int *bad_row)
{
    int end = first + count;
    *bad_row = first;
    for (int64_t at = first; b->x && at < end; at += s->raw_items) {
        int64_t n = end - at < s->raw_items ? end - at : s->raw_items;
        TRY(reader_get_rows(f->reader, b->sample[at], n, s->raw));
        for (int64_t i = 0; i < n; ++i) {
            *bad_row = (int)(at + i);
            TRY(convert_x(f, b, at + i, s->raw + i * f->set.x.sample_bytes));
        }
    }
    for (int r = first; r < end; ++r) {
        *bad_row = r;
        TRY(read_ids_and_y(f, s, b, r));
    }
    return OK;
}

Status fill_rows(const Fill *fill, FillScratch *scratch, MicroBatch *batch, int first, int count,
                 int *bad_row)
{
    const DataKindInfo *kind = data_kind(&fill->set);
    bool consecutive =
        !fill->plan.training && !scratch->converter && kind->x != X_TOKENS && kind->x != X_FIELDS;
    return consecutive ? fill_consecutive(fill, scratch, batch, first, count, bad_row)
                       : fill_one_by_one(fill, scratch, batch, first, count, bad_row);
}

/* Zeroes the padding rows of an array with `width` values per row. They may hold values of an
 * earlier micro-batch. */
static void pad_floats(const Fill *f, const MicroBatch *b, float *array, int64_t width)
{
    int64_t count = (f->plan.micro_batch - b->rows) * width;
    if (array) memset(array + b->rows * width, 0, (size_t)count * sizeof *array);
}

static void pad_integers(const Fill *f, const MicroBatch *b, int32_t *array, int64_t width)
{
    int64_t count = (f->plan.micro_batch - b->rows) * width;
    if (array) memset(array + b->rows * width, 0, (size_t)count * sizeof *array);
}

static void pad(const Fill *f, MicroBatch *b)
{
    pad_floats(f, b, b->x, f->sample_floats);
    pad_integers(f, b, b->tokens, f->set.context);
    pad_integers(f, b, b->labels, f->sample_labels);
    pad_integers(f, b, b->labels_other, f->sample_labels);
    pad_floats(f, b, b->targets, f->set.target_width);
    if (b->box_start) pad_integers(f, b, b->box_start + 1, 1);
    if (b->ids) pad_integers(f, b, b->id_first + 1, f->set.fields);
    for (int64_t r = b->rows; r < f->plan.micro_batch; ++r) b->sample[r] = -1;
}

/* Returns the sample at this position of an epoch of training. */
static int64_t shuffled(const DataSet *set, const Config *config, ShufflePlan plan, int64_t epoch,
                        int64_t position)
{
    uint64_t seed = (uint64_t)config->run.seed;
    if (plan.chunk < 1) return sampler_at(set->samples, seed, epoch, position);
    return sampler_in_chunks(set->samples, plan.chunk, plan.window, seed, epoch, position);
}

int64_t fill_sample_at(const Fill *fill, int64_t epoch, int64_t position)
{
    const Fill *f = fill;
    if (!f->plan.training) return position;
    return shuffled(&f->set, f->config, f->shuffle, epoch, position);
}

int64_t data_sample_at(const DataSet *set, const Config *config, int64_t epoch, int64_t position)
{
    return shuffled(set, config, data_shuffle_plan(set, config), epoch, position);
}

int64_t fill_first_position(const Fill *fill, int64_t epoch, int64_t step)
{
    const LoaderPlan *p = &fill->plan;
    return step * p->batch + (epoch == p->epoch ? p->shift : 0);
}

void fill_begin(Fill *fill, MicroBatch *batch, int64_t epoch, int64_t step, int micro)
{
    const Fill *f = fill;
    const LoaderPlan *p = &f->plan;
    MicroBatch *b = batch;
    const int64_t step_micros = p->batch / p->micro_batch;
    b->epoch = epoch;
    b->step = step;
    b->micro = micro;
    int64_t first = fill_first_position(f, epoch, step) + micro * p->micro_batch,
            left = f->set.samples - first;
    if (micro >= step_micros) left = 0;
    b->rows = (int)(left < 0 ? 0 : left < p->micro_batch ? left : p->micro_batch);
    pad(f, b);
    for (int r = 0; r < b->rows; ++r) b->sample[r] = fill_sample_at(f, epoch, first + r);
    if (b->matches) fill_matches(fill, b);
}

void fill_end(const Fill *fill, FillScratch *scratch, MicroBatch *batch)
{
    batch->label_share = 1;
    if (batch->ids) join_ids(fill, batch);
    if (batch->box_start) fill_join_boxes(fill, batch);
    if (!fill->mixes_images) return;
    Mix mix = mix_choose(&fill->set, fill->config, batch);
    mix_images(&mix, &fill->set, batch, scratch->spare);
    mix_labels(batch);
    batch->label_share = mix.share;
}
