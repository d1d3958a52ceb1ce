/* Computes metrics of predicted fields. A rank that has the model's outputs makes a record of each
 * of its samples: for each target, SUMS weighted sums over its pixels in double precision. Rank 0
 * gathers the records and adds them in the order of samples, so the bits depend neither on the grid
 * nor on the number of threads. Climatology (the mean field of the set) and persistence (the
 * prediction that repeats the last input) do not depend on the model: they are computed once, from
 * BLOCKS parts of the set, whose sums are added in order. Missing values and pixels whose mask
 * (data.mask) is 0 are left out. */
#include "field_scores.h"

#include "scores.h"

#include <math.h>
#include <string.h>

enum {
    /* number of parts into which the set is divided */
    BLOCKS = 16,
    /* Most bytes of the sums for climatology and persistence. They are computed for as many targets
     * at a time as fit, at least for one. */
    PART_BYTES = 64 << 20
};
/* Weighted sums over the pixels of one target in a sample. SUM_VALUES is the number of the pixels,
 * without weights. SUM_ERROR, SUM_ABSOLUTE and SUM_SQUARE add the error (prediction minus truth),
 * its absolute value and its square. The other names give one or two factors. P, T: prediction and
 * truth, each minus the target's mean. A, B: prediction and truth, each minus the climatology. */
enum {
    SUM_VALUES,
    SUM_WEIGHT,
    SUM_ERROR,
    SUM_ABSOLUTE,
    SUM_SQUARE,
    SUM_P,
    SUM_T,
    SUM_PP,
    SUM_TT,
    SUM_PT,
    SUM_AA,
    SUM_BB,
    SUM_AB,
    SUMS
};

/* Returns whether the set's targets are fields of numbers. */
static bool is_scored(const Trainer *t, const DataSet *set)
{
    return data_has_fields(set) && loss_info(t->config)->reads == LOSS_READS_TARGETS;
}

bool field_scores_collects(const Trainer *t, const DataSet *set)
{
    return is_scored(t, set) && train_collects_outputs(t);
}

bool field_scores_needs_inputs(const Trainer *t, const DataSet *set)
{
    bool change = false;
    for (int i = 0; i < set->field_set.targets; ++i) change |= set->field_set.change_from[i] >= 0;
    return change && field_scores_collects(t, set);
}

void field_scoring_free(FieldScoring **scoring)
{
    if (!*scoring) return;
    field_weights_fini(&(*scoring)->weights);
    mem_free(&(*scoring)->climatology);
    mem_free(scoring);
}

/* ---- climatology and persistence ---- */

static void add_to(double *sum, const double *part, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) sum[i] += part[i];
}

/* Adds the sums of block `block` of the set to *sum on every rank. One rank reads the block.
 * Collective. */
static Status add_block(const Trainer *t, const FieldScoring *s, const DataSet *set,
                        FieldReader *reader, int block, FieldBaselines *sum)
{
    const World *world = t->world;
    const int owner = block % world->size;
    const int64_t first = set->samples * block / BLOCKS, end = set->samples * (block + 1) / BLOCKS;
    const int64_t values = sum->targets * sum->pixels;
    FieldBaselines part;
    Status st = OK;
    field_baselines_init(&part, set, sum->first, sum->targets);
    if (world->rank == owner) st = field_baselines_add(&part, reader, set, &s->weights, first, end);
    st = status_agree(world, st);
    if (st == OK) {
        world_bcast(world, part.sum, (size_t)values * sizeof *part.sum, owner);
        world_bcast(world, part.count, (size_t)values * sizeof *part.count, owner);
        world_bcast(world, part.error, (size_t)sum->targets * sizeof *part.error, owner);
        world_bcast(world, part.weight, (size_t)sum->targets * sizeof *part.weight, owner);
        add_to(sum->sum, part.sum, values);
        add_to(sum->count, part.count, values);
        add_to(sum->error, part.error, sum->targets);
        add_to(sum->weight, part.weight, sum->targets);
    }
    field_baselines_fini(&part);
    return st;
}

/* Computes persistence and climatology of some targets from their sums. */
static void take_baselines(FieldScoring *s, const FieldBaselines *sum)
{
    const int64_t values = sum->targets * sum->pixels;
    double *persistence = s->persistence + sum->first;
    for (int i = 0; i < sum->targets; ++i)
        persistence[i] = sum->weight[i] > 0 ? sqrt(sum->error[i] / sum->weight[i]) : (double)NAN;
    if (!s->climatology) return;
    float *mean = s->climatology + sum->first * sum->pixels;
    for (int64_t i = 0; i < values; ++i) mean[i] = (float)(sum->sum[i] / sum->count[i]);
}

/* Computes climatology and persistence of all targets, some targets at a time. Collective. */
static Status compute_baselines(const Trainer *t, FieldScoring *s, const DataSet *set,
                                FieldReader *reader)
{
    const int64_t pixels = set->y.dim[2] * set->y.dim[3];
    const int64_t fit = PART_BYTES / (2 * (int64_t)sizeof(double) * pixels);
    const int targets = set->field_set.targets;
    const int part = fit < 1 ? 1 : fit > targets ? targets : (int)fit;
    Status st = OK;
    for (int first = 0; st == OK && first < targets; first += part) {
        FieldBaselines sum;
        field_baselines_init(&sum, set, first, targets - first < part ? targets - first : part);
        for (int i = 0; st == OK && i < BLOCKS; ++i) st = add_block(t, s, set, reader, i, &sum);
        if (st == OK) take_baselines(s, &sum);
        field_baselines_fini(&sum);
    }
    return st;
}

/* Makes t->field_scoring: reads the set, and computes climatology and persistence. tiles: the set
 * itself; its samples may be patches of fields. Collective; all ranks return the same Status. */
static Status scoring_make(Trainer *t, const DataSet *tiles)
{
    FieldScoring *s = mem_new(sizeof *s);
    FieldReader *reader = NULL;
    const double begun = clock_s();
    /* a copy without tiles, which borrows the arrays of the set */
    DataSet *set = mem_new(sizeof *set);
    *set = *tiles;
    data_set_drop_patch(set);
    s->columns = set->y.dim[3];
    s->pixels = set->y.dim[2] * s->columns;
    if (field_scores_collects(t, set))
        s->climatology = mem_new((size_t)set->target_width * sizeof *s->climatology);
    Status st = field_reader_new(&reader, set);
    if (st == OK) st = field_weights_init(&s->weights, set, reader, t->config->train.eval_latitude);
    st = status_agree(t->world, st);
    if (st == OK) st = compute_baselines(t, s, set, reader);
    field_reader_free(&reader);
    if (st != OK) {
        field_scoring_free(&s);
        mem_free(&set);
        return st;
    }
    const FieldSet *f = &set->field_set;
    s->metrics.targets = f->targets;
    s->metrics.latitude = t->config->train.eval_latitude && field_rows_have_latitudes(f);
    for (int i = 0; i < f->targets; ++i)
        s->metrics.target[i].label = field_channel_name(f, FIELD_TARGET, &f->target[i]);
    if (t->world->rank == 0)
        log_info("%s: climatology and persistence computed over %lld samples in %.1f s", set->path,
                 (long long)set->samples, clock_s() - begun);
    t->field_scoring = s;
    mem_free(&set);
    return OK;
}

/* ---- sums of an evaluation ---- */

static int64_t record_doubles(const DataSet *set)
{
    return 1 + (int64_t)set->field_set.targets * SUMS;
}

Status field_scores_init(FieldScores *scores, Trainer *t, const DataSet *set)
{
    *scores = (FieldScores){.trainer = t, .set = set};
    if (!is_scored(t, set)) return OK;
    if (!t->field_scoring) TRY(scoring_make(t, set));
    scores->scoring = t->field_scoring;
    scores->collects = field_scores_collects(t, set);
    if (!scores->collects) return OK;
    scores->x = mem_new((size_t)set->x.sample_bytes);
    scores->predicted = mem_new((size_t)set->y.sample_bytes);
    scores->truth = mem_new((size_t)set->y.sample_bytes);
    if (!scores->scoring->weights.vary) return OK;
    const int64_t planes = set->field_set.offsets[FIELD_TARGET];
    scores->pixel_weight = mem_new((size_t)(planes * scores->scoring->pixels) * sizeof(double));
    error_keep(&scores->error, field_reader_new(&scores->reader, set));
    return OK;
}

void field_scores_fini(FieldScores *scores)
{
    mem_free(&scores->record);
    mem_free(&scores->x);
    mem_free(&scores->predicted);
    mem_free(&scores->truth);
    mem_free(&scores->pixel_weight);
    mem_free(&scores->error.message);
    field_reader_free(&scores->reader);
}

/* Reads the weights of pixels at the times of a sample's targets to s->pixel_weight, if they
 * vary. */
static Status read_weights(const FieldScores *s, int64_t sample)
{
    const FieldSet *f = &s->set->field_set;
    const int64_t pixels = s->scoring->pixels;
    int64_t row, column;
    const int64_t frame = data_sample_place(s->set, sample, &row, &column);
    for (int i = 0; s->pixel_weight && i < f->offsets[FIELD_TARGET]; ++i)
        TRY(field_weights_at(&s->scoring->weights, s->set, s->reader,
                             frame + f->offset[FIELD_TARGET][i], s->pixel_weight + i * pixels));
    return OK;
}

/* Adds the pixels of one target of a sample to `sum`, in their order. */
static void add_target(const FieldScores *s, int64_t sample, int target, double sum[SUMS])
{
    const DataSet *set = s->set;
    const FieldScoring *scoring = s->scoring;
    const int64_t columns = set->y.dim[3], pixels = set->y.dim[2] * columns;
    const double *weight =
        s->pixel_weight ? s->pixel_weight + set->field_set.target[target].offset * scoring->pixels
                        : scoring->weights.pixel;
    const float *p = s->predicted + target * pixels, *t = s->truth + target * pixels;
    const float *c = scoring->climatology + target * scoring->pixels;
    double mean, deviation;
    int64_t first_row, first_column;
    data_sample_place(set, sample, &first_row, &first_column);
    field_target_scale(set, target, &mean, &deviation);
    for (int64_t i = 0; i < pixels; ++i) {
        const int64_t at =
            (first_row + i / columns) * scoring->columns + first_column + i % columns;
        if (isnan(t[i]) || weight[at] == 0) continue;
        const double w = weight[at], error = (double)p[i] - (double)t[i];
        const double x = (double)p[i] - mean, y = (double)t[i] - mean;
        const double a = (double)p[i] - (double)c[at], b = (double)t[i] - (double)c[at];
        sum[SUM_VALUES] += 1;
        sum[SUM_WEIGHT] += w;
        sum[SUM_ERROR] += w * error;
        sum[SUM_ABSOLUTE] += w * fabs(error);
        sum[SUM_SQUARE] += w * error * error;
        sum[SUM_P] += w * x;
        sum[SUM_T] += w * y;
        sum[SUM_PP] += w * x * x;
        sum[SUM_TT] += w * y * y;
        sum[SUM_PT] += w * x * y;
        sum[SUM_AA] += w * a * a;
        sum[SUM_BB] += w * b * b;
        sum[SUM_AB] += w * a * b;
    }
}

/* Converts the normalised inputs x of a sample to the variables' units, in s->x. A missing input
 * becomes the mean; the truth of a change from such an input is missing, too. */
static void restore_inputs(const FieldScores *s, const float *x)
{
    const DataSet *set = s->set;
    const int64_t pixels = set->height * set->width;
    for (int64_t c = 0; c < set->channels; ++c)
        for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i)
            s->x[i] = set->has_stats ? x[i] * set->std[c] + set->mean[c] : x[i];
}

void field_scores_add(FieldScores *s, const MicroBatch *batch)
{
    if (!s->collects) return;
    const DataSet *set = s->set;
    const int targets = set->field_set.targets, threads = s->trainer->backend->options.threads;
    const int64_t width = set->target_width, doubles = record_doubles(set);
    const int64_t inputs = set->channels * set->height * set->width;
    const float *output = executor_logits(s->trainer->executor, 0);
    for (int r = 0; r < batch->rows && s->error.status == OK; ++r, ++s->samples) {
        error_keep(&s->error, read_weights(s, batch->sample[r]));
        if (s->error.status != OK) return;
        if (s->samples == s->capacity) {
            s->capacity = s->capacity ? 2 * s->capacity : 64;
            s->record = mem_resize(s->record, (size_t)(s->capacity * doubles) * sizeof *s->record);
        }
        double *record = s->record + s->samples * doubles;
        memset(record, 0, (size_t)doubles * sizeof *record);
        record[0] = (double)batch->sample[r];
        if (batch->x) restore_inputs(s, batch->x + r * inputs);
        memcpy(s->predicted, output + r * width, (size_t)width * sizeof *output);
        memcpy(s->truth, batch->targets + r * width, (size_t)width * sizeof *output);
        field_denormalise(set, s->x, s->predicted);
        field_denormalise(set, s->x, s->truth);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (int i = 0; i < targets; ++i) add_target(s, batch->sample[r], i, record + 1 + i * SUMS);
    }
}

/* ---- metrics ---- */

/* Computes the metrics of a target from its sums over all samples. */
static void fill_target(const FieldScoring *s, int target, const double *sum,
                        FieldTargetMetrics *out)
{
    const double w = sum[SUM_WEIGHT], rmse = sqrt(sum[SUM_SQUARE] / w);
    const double mean_p = sum[SUM_P] / w, mean_t = sum[SUM_T] / w;
    const double var_p = sum[SUM_PP] / w - mean_p * mean_p;
    const double var_t = sum[SUM_TT] / w - mean_t * mean_t;
    double *m = out->metric;
    out->values = (int64_t)sum[SUM_VALUES];
    m[FIELD_RMSE] = rmse;
    m[FIELD_MAE] = sum[SUM_ABSOLUTE] / w;
    m[FIELD_BIAS] = sum[SUM_ERROR] / w;
    m[FIELD_CORRELATION] = (sum[SUM_PT] / w - mean_p * mean_t) / sqrt(var_p * var_t);
    m[FIELD_ANOMALY_CORRELATION] = sum[SUM_AB] / sqrt(sum[SUM_AA] * sum[SUM_BB]);
    m[FIELD_SKILL_PERSISTENCE] = 1 - rmse / s->persistence[target];
    m[FIELD_SKILL_CLIMATOLOGY] = 1 - rmse / sqrt(sum[SUM_BB] / w);
    /* A metric is infinite if persistence or climatology has no error; then it is undefined. */
    for (int i = 0; i < FIELD_METRICS; ++i)
        if (isinf(m[i])) m[i] = NAN;
}

/* A mean over the targets for which a metric is defined. */
typedef struct TargetMean {
    double sum;
    int count;
} TargetMean;

static void add_defined(TargetMean *mean, double value)
{
    if (!isfinite(value)) return;
    mean->sum += value;
    ++mean->count;
}

static void fill_metrics(FieldScoring *s, const double *sum)
{
    static const double ROUNDING = 1e-12;
    FieldMetrics *m = &s->metrics;
    TargetMean skill = {0}, normalized = {0};
    for (int i = 0; i < m->targets; ++i, sum += SUMS) {
        FieldTargetMetrics *target = &m->target[i];
        fill_target(s, i, sum, target);
        const double w = sum[SUM_WEIGHT], mean = sum[SUM_T] / w;
        const double square = sum[SUM_TT] / w, variance = square - mean * mean;
        /* the variance of a constant may be a rounding error */
        if (variance > ROUNDING * square)
            add_defined(&normalized, target->metric[FIELD_RMSE] / sqrt(variance));
        add_defined(&skill, target->metric[isnan(s->persistence[i]) ? FIELD_SKILL_CLIMATOLOGY
                                                                    : FIELD_SKILL_PERSISTENCE]);
    }
    m->skill = skill.sum / skill.count;
    m->normalized_rmse = normalized.sum / normalized.count;
}

/* Adds the records in the order of samples. */
static void add_records(const DataSet *set, const double *record, int64_t count, double *sum)
{
    const int64_t doubles = record_doubles(set);
    const double **of = mem_new((size_t)set->samples * sizeof *of);
    for (int64_t i = 0; i < count; ++i) of[(int64_t)record[i * doubles]] = record + i * doubles;
    for (int64_t s = 0; s < set->samples; ++s)
        for (int64_t i = 1; of[s] && i < doubles; ++i) sum[i - 1] += of[s][i];
    mem_free(&of);
}

void field_scores_line(FieldScores *s, EvalLine *line)
{
    line->fields = NULL;
    if (!s->scoring) return;
    const World *world = s->trainer->world;
    const int64_t doubles = record_doubles(s->set);
    size_t bytes = (size_t)(s->samples * doubles) * sizeof *s->record;
    double *all = gather_arrays(world, s->record, &bytes);
    if (world->rank == 0) {
        double *sum = mem_new((size_t)doubles * sizeof *sum);
        add_records(s->set, all, (int64_t)(bytes / sizeof *all) / doubles, sum);
        fill_metrics(s->scoring, sum);
        mem_free(&sum);
    }
    mem_free(&all);
    world_bcast(world, &s->scoring->metrics, sizeof s->scoring->metrics, 0);
    line->fields = &s->scoring->metrics;
}
