/* Measures mean and deviation of each variable and level of a set of fields, and of each change
 * that the set predicts, over all frames of its segments. A row of the statistics is one FieldStat.
 * Frames are measured in blocks, and blocks are joined in their order (Chan, Golub & LeVeque 1983),
 * so results have the same bits with any number of threads and ranks. */
#include "fields_private.h"

#include <math.h>
#include <string.h>

enum {
    /* number of frames of a block */
    BLOCK = 16,
    /* smallest number of threads, which mostly wait for files */
    READERS = 16
};

typedef struct Measuring {
    FieldReader *reader;
    const FieldSet *f;
    /* the rows of the statistics */
    const FieldStats *rows;
    /* number of the first block that is measured here */
    int64_t first_block;
    /* moments of each block, for each row of the statistics, [blocks][rows->count]; borrowed */
    FieldMoments *moments;
} Measuring;

static void join(FieldMoments *a, const FieldMoments *b)
{
    const double count = a->count + b->count, distance = b->mean - a->mean;
    if (b->count == 0) return;
    a->squares += b->squares + distance * distance * (a->count * b->count / count);
    a->mean += distance * (b->count / count);
    a->count = count;
}

/* Returns the moments of n values, or of their differences value - before if `before` is not NULL.
 * Missing values and differences are left out. */
static FieldMoments moments_of(const double *value, const double *before, int64_t n)
{
    FieldMoments m = {0};
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double v = before ? value[i] - before[i] : value[i];
        if (!isnan(v)) sum += v, ++m.count;
    }
    if (m.count == 0) return m;
    m.mean = sum / m.count;
    for (int64_t i = 0; i < n; ++i) {
        const double v = before ? value[i] - before[i] : value[i];
        const double distance = isnan(v) ? 0 : v - m.mean;
        m.squares += distance * distance;
    }
    return m;
}

/* ---- rows ---- */

static void add_row(FieldStats *stats, FieldStat row)
{
    for (int i = 0; i < stats->count; ++i) {
        const FieldStat *r = &stats->row[i];
        if (r->variable == row.variable && r->level == row.level && r->change == row.change) return;
    }
    stats->row[stats->count++] = row;
}

/* Returns the number of frames over which target i is a change; 0: target i is a value. */
static int change_of(const FieldSet *f, int i)
{
    if (f->change_from[i] < 0) return 0;
    return f->offset[FIELD_TARGET][f->target[i].offset] -
           f->offset[FIELD_INPUT][f->input[f->change_from[i]].offset];
}

void data_fields_list_stats(const DataSet *set, FieldStats *stats)
{
    const FieldSet *f = &set->field_set;
    stats->count = 0;
    for (int i = 0; i < f->step_inputs; ++i)
        if (!f->variable[f->input[i].variable].extra_kind)
            add_row(stats, (FieldStat){f->input[i].variable, f->input[i].level, 0, 0, 0});
    for (int i = 0; f->classes.count == 0 && i < f->step_targets; ++i)
        add_row(stats,
                (FieldStat){f->target[i].variable, f->target[i].level, change_of(f, i), 0, 0});
}

/* Returns whether the statistics have a row of the variable. They have none of an extra variable,
 * nor of one that is only the mask or the label field. */
static bool is_measured(const FieldStats *rows, int variable)
{
    int i = 0;
    while (i < rows->count && rows->row[i].variable != variable) ++i;
    return i < rows->count;
}

int data_fields_measured(const DataSet *set)
{
    FieldStats *rows = mem_new(sizeof *rows);
    int measured = 0;
    data_fields_list_stats(set, rows);
    for (int i = 0; i < set->field_set.variables; ++i) measured += is_measured(rows, i);
    mem_free(&rows);
    return measured;
}

/* ---- measuring ---- */

int64_t data_fields_blocks(const DataSet *set)
{
    const FieldSet *f = &set->field_set;
    int64_t frames = 0;
    for (int i = 0; i < f->segments; ++i) frames += f->segment[i].frames;
    return (frames + BLOCK - 1) / BLOCK;
}

/* Adds the values of a variable at a frame, and its changes from this frame to later ones, to the
 * moments of the variable's rows. now, then: scratch memory for the values at this frame and at a
 * later frame. */
static Status measure_frame(const Measuring *m, int variable, const FieldSegment *s, int64_t frame,
                            double *now, double *then, FieldMoments *moments)
{
    const FieldVariable *v = &m->f->variable[variable];
    const int64_t pixels = v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
    int read = 0;
    TRY(field_read_variable(m->reader, variable, frame, now));
    for (int i = 0; i < m->rows->count; ++i) {
        const FieldStat *row = &m->rows->row[i];
        const int64_t to = frame + row->change, at = row->level * pixels;
        if (row->variable != variable || to < s->first || to >= s->first + s->frames) continue;
        if (row->change != 0 && row->change != read)
            TRY(field_read_variable(m->reader, variable, to, then));
        if (row->change != 0) read = row->change;
        const FieldMoments one = row->change ? moments_of(then + at, now + at, pixels)
                                             : moments_of(now + at, NULL, pixels);
        join(&moments[i], &one);
    }
    return OK;
}

/* Measures one variable at the frames of a block. */
static Status measure_variable(const Measuring *m, int variable, int64_t block, double *now,
                               double *then, FieldMoments *moments)
{
    const FieldSet *f = m->f;
    int64_t at = block * BLOCK;
    const int64_t end = at + BLOCK;
    int s = 0;
    if ((f->variable[variable].is_static && block > 0) || !is_measured(m->rows, variable))
        return OK;
    for (int64_t passed = 0; s < f->segments && at < end; ++s) {
        for (; at < end && at - passed < f->segment[s].frames; ++at) {
            const int64_t frame = f->segment[s].first + at - passed;
            TRY(measure_frame(m, variable, &f->segment[s], frame, now, then, moments));
            if (f->variable[variable].is_static) return OK;
        }
        passed += f->segment[s].frames;
    }
    return OK;
}

/* Measures all frames of one variable in a block before the next variable, so that chunks are read
 * once. */
static Status measure_block(void *user, int worker, int64_t block)
{
    const Measuring *m = user;
    FieldMoments *moments = m->moments + block * m->rows->count;
    int64_t most = 0;
    Status st = OK;
    (void)worker;
    for (int i = 0; i < m->f->stored; ++i) {
        const FieldVariable *v = &m->f->variable[i];
        const int64_t values = v->levels * v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
        if (values > most) most = values;
    }
    double *now = mem_new((size_t)(2 * most) * sizeof *now);
    for (int i = 0; st == OK && i < m->f->stored; ++i)
        st = measure_variable(m, i, m->first_block + block, now, now + most, moments);
    mem_free(&now);
    return st;
}

Status data_fields_measure_blocks(const DataSet *set, const FieldStats *rows, int threads,
                                  int64_t first, int64_t count, FieldMoments *moments)
{
    Measuring m = {.f = &set->field_set, .rows = rows, .first_block = first, .moments = moments};
    TRY(field_reader_new(&m.reader, set));
    Status st = worker_pool_run(threads < READERS ? READERS : threads, count, measure_block, &m);
    field_reader_free(&m.reader);
    return st;
}

void data_fields_join(FieldStats *stats, const FieldMoments *moments, int64_t blocks)
{
    for (int k = 0; k < stats->count; ++k) {
        FieldMoments all = {0};
        for (int64_t i = 0; i < blocks; ++i) join(&all, &moments[i * stats->count + k]);
        stats->row[k].mean = all.count > 0 ? all.mean : NAN;
        stats->row[k].deviation = all.count > 0 ? sqrt(all.squares / all.count) : NAN;
    }
}

/* ---- use ---- */

static Status use_row(const FieldSet *f, const FieldStats *stats, const FieldChannel *channel,
                      int change, float *mean, float *std)
{
    int i = 0;
    while (i < stats->count &&
           (stats->row[i].variable != channel->variable || stats->row[i].level != channel->level ||
            stats->row[i].change != change))
        ++i;
    if (i == stats->count) return fail(ERR_BUG, "a channel without statistics");
    const FieldStat *row = &stats->row[i];
    if (isnan(row->mean))
        return fail(ERR_DATA, "%s: %s has only missing %ss", field_path(f, 0),
                    f->variable[channel->variable].name, change ? "change" : "value");
    *mean = (float)row->mean;
    /* a constant value is moved to 0, but not scaled */
    *std = row->deviation > 1e-12 * fabs(row->mean) ? (float)row->deviation : 1;
    return OK;
}

Status data_fields_use(DataSet *set, const FieldStats *stats)
{
    FieldSet *f = &set->field_set;
    for (int i = 0; i < f->step_inputs; ++i) {
        set->mean[i] = 0;
        set->std[i] = 1;
        if (f->variable[f->input[i].variable].extra_kind) continue;
        TRY(use_row(f, stats, &f->input[i], 0, &set->mean[i], &set->std[i]));
    }
    for (int i = 0; f->classes.count == 0 && i < f->step_targets; ++i)
        TRY(use_row(f, stats, &f->target[i], change_of(f, i), &f->target_mean[i],
                    &f->target_std[i]));
    if (f->classes.count > 0) f->target_mean[0] = 0, f->target_std[0] = 1;
    set->has_stats = true;
    set->stats_count = f->step_inputs;
    data_fields_share_stats(set);
    return OK;
}

Status data_fields_measure(DataSet *set, int threads)
{
    const int64_t blocks = data_fields_blocks(set);
    FieldStats *stats = mem_new(sizeof *stats);
    data_fields_list_stats(set, stats);
    FieldMoments *moments = mem_new((size_t)(blocks * stats->count) * sizeof *moments);
    Status st = data_fields_measure_blocks(set, stats, threads, 0, blocks, moments);
    if (st == OK) data_fields_join(stats, moments, blocks);
    if (st == OK) st = data_fields_use(set, stats);
    mem_free(&moments);
    mem_free(&stats);
    return st;
}
