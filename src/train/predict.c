/* What a trained model says of single samples: the softmax of its outputs. */
#include "trainer.h"

#include <math.h>

static Status next_batch(void *user, const Batch **batch, double *wait_s)
{
    (void)wait_s;
    *batch = user;
    return OK;
}

static void keep_batch(void *user)
{
    (void)user;
}

/* The largest logit is taken off first: no exponential overflows. */
static Status softmax(const float *logit, int64_t classes, double *share)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
        if (!isfinite(logit[c]))
            return fail(ERR_DATA, "the model gives no numbers (NaN or infinity): its training ran "
                                  "away; take an earlier checkpoint");
        largest = fmax(largest, (double)logit[c]);
    }
    for (int64_t c = 0; c < classes; ++c) sum += share[c] = exp((double)logit[c] - largest);
    for (int64_t c = 0; c < classes; ++c) share[c] /= sum;
    return OK;
}

Status train_predict(Trainer *t, float *x, int rows, double *share)
{
    int64_t classes = t->graph->classes;
    if (t->world->size > 1 || t->batch != t->micro_batch || rows < 1 || rows > t->batch)
        return fail(ERR_BUG, "%d samples for batches of %lld", rows, (long long)t->batch);
    Batch batch = {.x = x,
                   .labels = mem_new((size_t)t->batch * sizeof *batch.labels),
                   .sample = mem_new((size_t)t->batch * sizeof *batch.sample),
                   .rows = rows};
    BatchSource source = {&batch, next_batch, keep_batch};
    Status st = executor_evaluate(t->executor, &source, NULL, NULL);
    const float *logit = st == OK ? executor_logits(t->executor) : NULL;
    for (int i = 0; i < rows && st == OK; ++i)
        st = softmax(logit + i * classes, classes, share + i * classes);
    mem_free(&batch.labels);
    mem_free(&batch.sample);
    return st;
}
