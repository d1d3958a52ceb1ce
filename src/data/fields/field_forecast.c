/* Names of channels, values in the variables' units, and sums for forecasts that need no model:
 * the climatology, which is the mean of each pixel over a set, and persistence, which is the
 * last input. */
#include "fields_private.h"

#include <math.h>
#include <string.h>

/* ---- channels ---- */

double field_level(const FieldVariable *v, int level)
{
    return isnan(v->level_value[level]) ? v->level[level] : v->level_value[level];
}

FieldLabel field_label(const FieldSet *f, FieldRole role, const FieldChannel *channel)
{
    const FieldVariable *v = &f->variable[channel->variable];
    FieldLabel label = {.level = NAN};
    char level[24] = "";
    snprintf(label.variable, sizeof label.variable, "%s%s",
             v->made ? field_extra_part(v, channel->level) : "", v->name);
    snprintf(label.units, sizeof label.units, "%s", v->units);
    if (!v->made && v->size[FIELD_LEVEL] > 1) {
        label.level = field_level(v, channel->level);
        snprintf(level, sizeof level, "_%.9g", label.level);
    }
    if (!v->is_static) field_offset_text(f, f->offset[role][channel->offset], label.lead);
    snprintf(label.name, sizeof label.name, "%s%s%s%s", label.variable, level,
             v->is_static ? "" : "_", label.lead);
    return label;
}

bool field_is_same(const FieldSet *f, const FieldChannel *a, const FieldChannel *b)
{
    const FieldVariable *v = &f->variable[a->variable], *w = &f->variable[b->variable];
    return !v->is_static && !w->is_static && v->is_scalar == w->is_scalar && v->made == w->made &&
           !strcmp(v->name, w->name) && v->level[a->level] == w->level[b->level];
}

int field_last_input(const FieldSet *f, int target)
{
    for (int k = 0; k < f->inputs; ++k)
        if (f->input[k].offset == f->offsets[FIELD_INPUT] - 1 &&
            field_is_same(f, &f->input[k], &f->target[target]))
            return k;
    return -1;
}

void field_target_scale(const DataSet *set, int target, double *mean, double *deviation)
{
    const FieldSet *f = &set->field_set;
    const int from = f->change_from[target];
    *mean = 0;
    *deviation = 1;
    if (!set->has_stats) return;
    *mean = (double)(from >= 0 ? set->mean[from] : f->target_mean[target]);
    *deviation = (double)(from >= 0 ? set->std[from] : f->target_std[target]);
}

void field_restore(const DataSet *set, const float *x, float *target)
{
    const FieldSet *f = &set->field_set;
    const int64_t pixels = set->y.dim[2] * set->y.dim[3];
    for (int i = 0; i < f->targets; ++i) {
        const double mean = set->has_stats ? (double)f->target_mean[i] : 0;
        const double std = set->has_stats ? (double)f->target_std[i] : 1;
        const float *from = f->change_from[i] >= 0 ? x + f->change_from[i] * pixels : NULL;
        float *to = target + i * pixels;
        for (int64_t k = 0; k < pixels; ++k) {
            const double value = (double)to[k] * std + mean;
            to[k] = (float)(from ? value + (double)from[k] : value);
        }
    }
}

/* ---- baselines ---- */

void field_baselines_init(FieldBaselines *b, const DataSet *set, int first, int targets)
{
    const size_t n = (size_t)targets;
    *b = (FieldBaselines){
        .first = first, .targets = targets, .pixels = set->y.dim[2] * set->y.dim[3]};
    b->sum = mem_new(n * (size_t)b->pixels * sizeof *b->sum);
    b->count = mem_new(n * (size_t)b->pixels * sizeof *b->count);
    b->error = mem_new(n * sizeof *b->error);
    b->weight = mem_new(n * sizeof *b->weight);
}

void field_baselines_fini(FieldBaselines *b)
{
    mem_free(&b->sum);
    mem_free(&b->count);
    mem_free(&b->error);
    mem_free(&b->weight);
}

typedef struct Adding {
    FieldBaselines *sums;
    FieldReader *reader;
    const DataSet *set;
    const FieldWeights *weights;
    int64_t first, end;
    /* targets of one variable and offset, which are read together: first of each group */
    int group[FIELD_CHANNELS + 1];
} Adding;

/* Adds a target's field, and the error of its last input `from` (NULL: none). pixel: weights. */
static void add_field(const Adding *a, int target, const double *truth, const double *from,
                      const double *pixel)
{
    FieldBaselines *b = a->sums;
    const int at = target - b->first;
    double *sum = b->sum + at * b->pixels, *count = b->count + at * b->pixels;
    for (int64_t i = 0; i < b->pixels; ++i) {
        if (isnan(truth[i])) continue;
        sum[i] += truth[i];
        count[i] += 1;
        if (!from || isnan(from[i])) continue;
        const double weight = pixel[i], error = from[i] - truth[i];
        b->error[at] += weight * error * error;
        b->weight[at] += weight;
    }
}

/* Adds all samples to one group of targets. */
static Status add_group(void *user, int worker, int64_t group)
{
    const Adding *a = user;
    const FieldSet *f = &a->set->field_set;
    const int first = a->group[group], end = a->group[group + 1];
    const FieldChannel *channel = &f->target[first];
    const int last = field_last_input(f, first);
    const int from = last >= 0 ? f->input[last].variable : -1;
    const int64_t pixels = a->sums->pixels;
    double *truth =
        mem_new((size_t)(f->variable[channel->variable].levels * pixels) * sizeof *truth);
    double *input =
        from < 0 ? NULL : mem_new((size_t)(f->variable[from].levels * pixels) * sizeof *input);
    double *pixel = mem_new((size_t)pixels * sizeof *pixel);
    const int *offset = f->offset[FIELD_INPUT];
    Status st = OK;
    (void)worker;
    for (int64_t s = a->first; st == OK && s < a->end; ++s) {
        const int64_t frame = field_sample_frame(f, s);
        const int64_t lead = frame + f->offset[FIELD_TARGET][channel->offset];
        st = field_read_variable(a->reader, channel->variable, lead, truth);
        if (st == OK) st = field_weights_at(a->weights, a->set, a->reader, lead, pixel);
        if (st == OK && input)
            st = field_read_variable(a->reader, from, frame + offset[f->offsets[FIELD_INPUT] - 1],
                                     input);
        for (int i = first; st == OK && i < end; ++i) {
            const int of = field_last_input(f, i);
            add_field(a, i, truth + f->target[i].level * pixels,
                      of >= 0 && f->input[of].variable == from ? input + f->input[of].level * pixels
                                                               : NULL,
                      pixel);
        }
    }
    mem_free(&truth);
    mem_free(&input);
    mem_free(&pixel);
    return st;
}

/* May two targets be read together: the same variable and offset, and their last inputs, too? */
static bool same_group(const DataSet *set, int a, int b)
{
    const FieldSet *f = &set->field_set;
    const int x = field_last_input(f, a), y = field_last_input(f, b);
    const int from = x >= 0 ? f->input[x].variable : -1, other = y >= 0 ? f->input[y].variable : -1;
    return f->target[a].variable == f->target[b].variable &&
           f->target[a].offset == f->target[b].offset && from == other;
}

Status field_baselines_add(FieldBaselines *baselines, FieldReader *reader, const DataSet *set,
                           const FieldWeights *weights, int64_t first, int64_t end, int threads)
{
    Adding a = {.sums = baselines,
                .reader = reader,
                .set = set,
                .weights = weights,
                .first = first,
                .end = end};
    int groups = 0;
    const int last = baselines->first + baselines->targets;
    for (int i = baselines->first; i < last; ++i)
        if (i == baselines->first || !same_group(set, i - 1, i)) a.group[groups++] = i;
    a.group[groups] = last;
    return worker_pool_run(threads, groups, add_group, &a);
}
