/* Mean and deviation of each channel of a set of fields, over all samples. A block of BLOCK samples
 * is summed in the order of its values; blocks are joined in their order (Chan, Golub & LeVeque
 * 1983), so the number of threads changes no bit. */
#include "fields_private.h"

#include <math.h>

enum { BLOCK = 16 };

/* Moments of some values: their number, mean, and sum of squared distances from the mean. */
typedef struct Moments {
    double count, mean, squares;
} Moments;

typedef struct Measuring {
    FieldReader *reader;
    const DataSet *set;
    /* owned: moments of each block and channel, inputs and then targets */
    Moments *moments;
    int channels;
} Measuring;

static void join(Moments *a, const Moments *b)
{
    const double count = a->count + b->count, distance = b->mean - a->mean;
    if (b->count == 0) return;
    a->squares += b->squares + distance * distance * (a->count * b->count / count);
    a->mean += distance * (b->count / count);
    a->count = count;
}

/* Returns the moments of the values that are not missing. */
static Moments moments_of(const float *value, int64_t n)
{
    Moments m = {0};
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
        if (!isnan(value[i])) sum += (double)value[i], ++m.count;
    if (m.count == 0) return m;
    m.mean = sum / m.count;
    for (int64_t i = 0; i < n; ++i) {
        const double distance = isnan(value[i]) ? 0 : (double)value[i] - m.mean;
        m.squares += distance * distance;
    }
    return m;
}

/* Measures the samples of one block. */
static Status measure_block(void *user, int worker, int64_t block)
{
    Measuring *m = user;
    const DataSet *set = m->set;
    const FieldSet *f = &set->field_set;
    const int64_t x_pixels = set->height * set->width, y_pixels = set->y.dim[2] * set->y.dim[3];
    const int64_t end = (block + 1) * BLOCK < set->samples ? (block + 1) * BLOCK : set->samples;
    float *x = mem_new((size_t)set->x.sample_bytes), *y = mem_new((size_t)set->y.sample_bytes);
    Moments *moments = m->moments + block * m->channels;
    Status st = OK;
    (void)worker;
    for (int64_t i = block * BLOCK; st == OK && i < end; ++i) {
        /* without means and deviations, normalised targets are values and changes as they are */
        st = field_read(m->reader, i, false, x, NULL);
        if (st == OK) st = field_read(m->reader, i, true, NULL, y);
        for (int k = 0; st == OK && k < f->inputs; ++k) {
            const Moments one = moments_of(x + k * x_pixels, x_pixels);
            join(&moments[k], &one);
        }
        for (int k = 0; st == OK && k < f->targets; ++k) {
            const Moments one = moments_of(y + k * y_pixels, y_pixels);
            join(&moments[f->inputs + k], &one);
        }
    }
    mem_free(&x);
    mem_free(&y);
    return st;
}

/* Gives channels of one variable and level at several offsets the same statistics. */
static void share_offsets(const FieldChannel *list, int count, Moments *moments)
{
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < i; ++k)
            if (list[k].variable == list[i].variable && list[k].level == list[i].level) {
                moments[i] = moments[k];
                break;
            }
}

static Status take(const FieldSet *f, const FieldChannel *list, int count, const Moments *moments,
                   float *mean, float *std)
{
    for (int i = 0; i < count; ++i) {
        const double deviation =
            moments[i].count > 0 ? sqrt(moments[i].squares / moments[i].count) : 0;
        if (moments[i].count == 0)
            return fail(ERR_DATA, "%s: %s has no value that is not missing", f->file[0].path,
                        f->variable[list[i].variable].name);
        mean[i] = (float)moments[i].mean;
        /* a constant is only moved to 0 */
        std[i] = deviation > 1e-12 * fabs(moments[i].mean) ? (float)deviation : 1;
    }
    return OK;
}

Status data_fields_measure(DataSet *set, int threads)
{
    FieldSet *f = &set->field_set;
    const int64_t blocks = (set->samples + BLOCK - 1) / BLOCK;
    Measuring m = {.set = set, .channels = f->inputs + f->targets};
    set->has_stats = false;
    TRY(field_reader_new(&m.reader, set));
    m.moments = mem_new((size_t)(blocks * m.channels) * sizeof *m.moments);
    Status st = worker_pool_run(threads, blocks, measure_block, &m);
    for (int64_t i = 1; st == OK && i < blocks; ++i)
        for (int k = 0; k < m.channels; ++k) join(&m.moments[k], &m.moments[i * m.channels + k]);
    share_offsets(f->input, f->inputs, m.moments);
    if (st == OK) st = take(f, f->input, f->inputs, m.moments, set->mean, set->std);
    if (st == OK)
        st = take(f, f->target, f->targets, m.moments + f->inputs, f->target_mean, f->target_std);
    set->has_stats = st == OK;
    set->stats_count = f->inputs;
    mem_free(&m.moments);
    field_reader_free(&m.reader);
    return st;
}
