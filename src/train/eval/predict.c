/* Computes predictions of a trained model for samples without labels: the softmax of its outputs,
 * the sigmoid of a single logit, its outputs if they are numbers, or a detector's outputs, in which
 * detector.c finds boxes. */
#include "../mode/sparse.h"
#include "eval_data.h"

#include <math.h>

/* Provides the same batch at each call (BatchSource.next). user: address of a pointer to the
 * batch. */
static Status next_batch(void *user, const MicroBatch **batch, double *wait_s)
{
    (void)wait_s;
    *batch = *(const MicroBatch **)user;
    return OK;
}

/* Releases nothing, because the batch is the caller's (BatchSource.release). */
static void keep_batch(void *user)
{
    (void)user;
}

Status train_logits(Trainer *t, const MicroBatch *batch, const float **logits)
{
    BatchSource rows = {&batch, next_batch, keep_batch};
    BatchSource source = t->tables ? tables_evaluation(t->tables, &rows) : rows;
    TRY(executor_evaluate(t->executor, &source, NULL, NULL));
    *logits = executor_logits(t->executor, 0);
    return OK;
}

Status logits_check(const float *logits, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(logits[i]))
            return fail(ERR_DATA,
                        "an output of the model is NaN or infinite: its training diverged; "
                        "use an earlier checkpoint");
    return OK;
}

/* Computes the softmax. The largest logit is subtracted first, so that no exponential overflows. */
static void softmax(const float *logit, int64_t classes, double *probability)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; ++c) largest = fmax(largest, (double)logit[c]);
    for (int64_t c = 0; c < classes; ++c) sum += probability[c] = exp((double)logit[c] - largest);
    for (int64_t c = 0; c < classes; ++c) probability[c] /= sum;
}

/* Computes the probabilities of class 0 and class 1, each directly, because 1 - p loses
 * precision. */
static void sigmoid(double logit, double probability[2])
{
    probability[0] = 1 / (1 + exp(logit));
    probability[1] = 1 / (1 + exp(-logit));
}

int64_t train_result_count(const Trainer *t)
{
    return loss_info(t->config)->results == LOSS_RESULTS_LOGIT ? 2 : t->graph->classes;
}

Status run_unlabelled(Trainer *t, const MicroBatch *samples, const float **logits)
{
    const size_t n = (size_t)t->batch;
    if (t->world->size > 1 || t->batch != t->micro_batch || samples->rows < 1 ||
        samples->rows > t->batch)
        return fail(ERR_BUG, "%d samples for batches of %lld", samples->rows, (long long)t->batch);
    MicroBatch batch = *samples;
    const size_t labels = (size_t)data_labels_per_sample(&t->train_set);
    batch.labels = mem_new(n * (labels > 1 ? labels : 1) * sizeof *batch.labels);
    const size_t width = (size_t)t->train_set.target_width;
    batch.targets = width > 0 ? mem_new(n * width * sizeof *batch.targets) : NULL;
    batch.sample = mem_new(n * sizeof *batch.sample);
    batch.box_start = mem_new((n + 1) * sizeof *batch.box_start);
    batch.matches = mem_new((BOX_LEVELS + 1) * sizeof *batch.matches);
    Status st = train_logits(t, &batch, logits);
    mem_free(&batch.labels);
    mem_free(&batch.targets);
    mem_free(&batch.sample);
    mem_free(&batch.box_start);
    mem_free(&batch.matches);
    return st;
}

Status train_predict(Trainer *t, const MicroBatch *samples, double *result)
{
    const int64_t outputs = t->graph->classes, count = train_result_count(t);
    const float *logit = NULL;
    if (data_labels_per_sample(&t->train_set) > 1)
        return fail(
            ERR_CONFIG,
            "a model with a label for each pixel or token has no probabilities of a sample");
    TRY(run_unlabelled(t, samples, &logit));
    TRY(logits_check(logit, samples->rows * outputs));
    const LossInfo *loss = loss_info(t->config);
    for (int i = 0; i < samples->rows; ++i, logit += outputs, result += count)
        if (loss->reads == LOSS_READS_TARGETS)
            for (int64_t k = 0; k < count; ++k) result[k] = (double)logit[k];
        else if (loss->results == LOSS_RESULTS_LOGIT)
            sigmoid((double)*logit, result);
        else
            softmax(logit, outputs, result);
    return OK;
}

Status train_detect(Trainer *t, const MicroBatch *samples)
{
    const float *logits;
    return run_unlabelled(t, samples, &logits);
}
