/* Counts predicted and true classes of the pixels of label fields. Counts are integers, so their
 * sum over ranks depends neither on the grid nor on the number of threads; metrics are computed
 * from the sum on every rank. */
#include "label_scores.h"

#include "scores.h"

#include <math.h>
#include <string.h>

void label_scores_init(LabelScores *scores, Trainer *t, const DataSet *set, int64_t *copy)
{
    *scores = (LabelScores){.set = set, .copy = copy};
    if (!data_has_label_fields(set)) return;
    const size_t classes = (size_t)set->classes;
    scores->trainer = t;
    scores->collects = train_collects_outputs(t);
    scores->confusion = mem_new(classes * classes * sizeof *scores->confusion);
    scores->predicted = mem_new((size_t)data_labels_per_sample(set) * sizeof *scores->predicted);
    if (!t->label_metrics) t->label_metrics = mem_new(sizeof *t->label_metrics);
}

void label_scores_fini(LabelScores *scores)
{
    mem_free(&scores->confusion);
    mem_free(&scores->predicted);
}

void label_fields_choose(const float *output, int64_t classes, int64_t pixels, int threads,
                         int32_t *predicted)
{
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < pixels; ++i) {
        int32_t best = 0;
        for (int32_t c = 1; c < classes; ++c)
            if (output[c * pixels + i] > output[best * pixels + i]) best = c;
        predicted[i] = best;
    }
}

void label_scores_add(LabelScores *s, const MicroBatch *batch)
{
    if (!s->collects) return;
    const int64_t classes = s->set->classes, pixels = data_labels_per_sample(s->set);
    const float *output = executor_logits(s->trainer->executor, 0);
    for (int r = 0; r < batch->rows; ++r) {
        const int32_t *label = batch->labels + r * pixels;
        label_fields_choose(output + r * classes * pixels, classes, pixels,
                            s->trainer->backend->options.threads, s->predicted);
        for (int64_t i = 0; i < pixels; ++i)
            if (label[i] >= 0) ++s->confusion[label[i] * classes + s->predicted[i]];
    }
}

/* Sets the names of the classes in the metrics: the model's names or, if it has none, numbers. */
static void name_classes(const Trainer *t, LabelMetrics *m)
{
    ClassNames names;
    char number[24];
    class_names_from_lines(&names, t->classes);
    for (int c = 0; c < m->classes; ++c)
        snprintf(m->item[c].name, sizeof m->item[c].name, "%s", class_name(&names, c, number));
    class_names_free(&names);
}

void label_scores_line(LabelScores *s, EvalLine *line)
{
    line->labels = NULL;
    if (!s->trainer) return;
    Trainer *t = s->trainer;
    const int64_t cells = s->set->classes * s->set->classes;
    if (s->copy) memcpy(s->copy, s->confusion, (size_t)cells * sizeof *s->copy);
    world_allreduce(t->world, s->confusion, (int)cells);
    label_metrics_fill(t->label_metrics, (int)s->set->classes, s->confusion);
    name_classes(t, t->label_metrics);
    line->labels = t->label_metrics;
    /* top1 and top5 are not shown: LabelMetrics has the accuracy, for every loss */
    line->top1 = line->top5 = NAN;
}
