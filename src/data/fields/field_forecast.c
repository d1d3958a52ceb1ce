/* Names channels, converts outputs to the variables' units, and sums the values and errors of two
 * forecasts that need no model: the climatology, which is the mean of each pixel over a set, and
 * persistence, which is the last input. */
#include "fields_private.h"

#include <math.h>
#include <string.h>

/* ---- channels ---- */

double field_level(const FieldVariable *v, int selected)
{
    return isnan(v->level_value[selected]) ? v->level_index[selected] : v->level_value[selected];
}

FieldChannelName field_channel_name(const FieldSet *f, FieldRole role, const FieldChannel *channel)
{
    const FieldVariable *v = &f->variable[channel->variable];
    FieldChannelName label = {.level = NAN};
    char level[24] = "";
    snprintf(label.variable, sizeof label.variable, "%s%s",
             v->extra_kind ? field_extra_part(v, channel->level) : "", v->name);
    snprintf(label.units, sizeof label.units, "%s", v->units);
    if (!v->extra_kind && v->size[FIELD_LEVEL] > 1) {
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
    return !v->is_static && !w->is_static && v->is_scalar == w->is_scalar &&
           v->extra_kind == w->extra_kind && !strcmp(v->name, w->name) &&
           v->level_index[a->level] == w->level_index[b->level];
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

void field_denormalise(const DataSet *set, const float *x, float *target)
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

/* State of field_baselines_add. The targets are read and added in groups; a group is levels of one
 * variable at one time offset. For each sample the values of a group are read into an item, an
 * array of doubles:
 *
 *     values of the variable | values of last_input_variable, if any | weights of the pixels */
typedef struct Adding {
    FieldBaselines *sums;
    FieldReader *reader;
    const DataSet *set;
    const FieldWeights *weights;
    int64_t first_sample;
    /* the targets of the group: `first` to end - 1 */
    int first, end;
    /* index of the variable of the targets' last inputs (field_last_input); -1: the targets have
     * no last input */
    int last_input_variable;
} Adding;

/* Adds the values of a target to its sums, and the squared error of its last input as a forecast.
 * last_input NULL: the target has none. pixel_weight: weight of the error at each pixel. */
static void add_field(const Adding *a, int target, const double *truth, const double *last_input,
                      const double *pixel_weight)
{
    FieldBaselines *b = a->sums;
    const int at = target - b->first;
    double *sum = b->sum + at * b->pixels, *count = b->count + at * b->pixels;
    for (int64_t i = 0; i < b->pixels; ++i) {
        if (isnan(truth[i])) continue;
        sum[i] += truth[i];
        count[i] += 1;
        if (!last_input || isnan(last_input[i])) continue;
        const double weight = pixel_weight[i], error = last_input[i] - truth[i];
        b->error[at] += weight * error * error;
        b->weight[at] += weight;
    }
}

/* Returns the number of values of the group's variable in an item. */
static int64_t truth_count(const Adding *a)
{
    const FieldSet *f = &a->set->field_set;
    return f->variable[f->target[a->first].variable].levels * a->sums->pixels;
}

/* Returns the number of all values and weights of an item. */
static int64_t item_count(const Adding *a)
{
    const FieldSet *f = &a->set->field_set;
    const int64_t inputs = a->last_input_variable >= 0
                               ? f->variable[a->last_input_variable].levels * a->sums->pixels
                               : 0;
    return truth_count(a) + inputs + a->sums->pixels;
}

/* Returns a pointer to the weights of the pixels in an item. */
static double *weights_of(const Adding *a, double *item)
{
    return item + item_count(a) - a->sums->pixels;
}

/* Reads the item of sample first_sample + i. */
static Status read_group(void *user, int64_t i, void *item)
{
    const Adding *a = user;
    const FieldSet *f = &a->set->field_set;
    const FieldChannel *channel = &f->target[a->first];
    const int *offset = f->offset[FIELD_INPUT];
    const int64_t frame = field_sample_frame(f, a->first_sample + i);
    const int64_t lead = frame + f->offset[FIELD_TARGET][channel->offset];
    TRY(field_read_variable(a->reader, channel->variable, lead, item));
    if (a->last_input_variable >= 0)
        TRY(field_read_variable(a->reader, a->last_input_variable,
                                frame + offset[f->offsets[FIELD_INPUT] - 1],
                                (double *)item + truth_count(a)));
    return field_weights_at(a->weights, a->set, a->reader, lead, weights_of(a, item));
}

static Status add_group(void *user, int64_t i, const void *item)
{
    const Adding *a = user;
    const FieldSet *f = &a->set->field_set;
    const int64_t pixels = a->sums->pixels;
    const double *truth = item, *input = truth + truth_count(a);
    const double *pixel_weight = weights_of(a, (double *)(uintptr_t)item);
    (void)i;
    for (int k = a->first; k < a->end; ++k) {
        const int last = field_last_input(f, k);
        const bool has_last = last >= 0 && f->input[last].variable == a->last_input_variable;
        add_field(a, k, truth + f->target[k].level * pixels,
                  has_last ? input + f->input[last].level * pixels : NULL, pixel_weight);
    }
    return OK;
}

/* Returns whether two targets belong to one group: they have the same variable and offset, and
 * their last inputs are of one variable, or neither has a last input. */
static bool same_group(const DataSet *set, int a, int b)
{
    const FieldSet *f = &set->field_set;
    const int x = field_last_input(f, a), y = field_last_input(f, b);
    const int from = x >= 0 ? f->input[x].variable : -1, other = y >= 0 ? f->input[y].variable : -1;
    return f->target[a].variable == f->target[b].variable &&
           f->target[a].offset == f->target[b].offset && from == other;
}

Status field_baselines_add(FieldBaselines *baselines, FieldReader *reader, const DataSet *set,
                           const FieldWeights *weights, int64_t first, int64_t end)
{
    const FieldSet *f = &set->field_set;
    const int last = baselines->first + baselines->targets;
    Adding a = {
        .sums = baselines, .reader = reader, .set = set, .weights = weights, .first_sample = first};
    Status st = OK;
    for (a.first = baselines->first; st == OK && a.first < last; a.first = a.end) {
        for (a.end = a.first + 1; a.end < last && same_group(set, a.first, a.end); ++a.end) {
        }
        const int input = field_last_input(f, a.first);
        a.last_input_variable = input >= 0 ? f->input[input].variable : -1;
        const int64_t values = item_count(&a);
        st = worker_pool_ahead(end - first, (size_t)values * sizeof(double), read_group, add_group,
                               &a);
    }
    return st;
}
