/* Explains a bad step. First looks for a tensor of parameters, running statistics or optimizer
 * state that is not finite or differs between replicas, and names it. If there is none and the step
 * made no update, repeats the step, and names the first output or gradient that is not finite, with
 * its samples. After a loss spike, names the sample with the largest loss. If the repeated step
 * does not show the fault, says that the hardware is at fault. */
#include "explain.h"

#include "position.h"

#include <math.h>
#include <string.h>

/* Appends formatted text at text + used, up to EXPLAIN_BYTES in all. Returns the length that the
 * text would have without this limit. */
static int put(char *text, int used, const char *fmt, ...) BASE_PRINTF(3, 4);
static int put(char *text, int used, const char *fmt, ...)
{
    va_list args;
    if (used >= EXPLAIN_BYTES) return used;
    va_start(args, fmt);
    used += vsnprintf(text + used, (size_t)(EXPLAIN_BYTES - used), fmt, args);
    va_end(args);
    return used;
}

static int put_samples(char *text, int used, const int64_t *sample, int count)
{
    int shown = count < FAULT_SAMPLES ? count : FAULT_SAMPLES;
    used = put(text, used, "sample%s ", count == 1 ? "" : "s");
    for (int i = 0; i < shown; ++i)
        used = put(text, used, "%s%lld", i ? ", " : "", (long long)sample[i]);
    return count > shown ? put(text, used, " and %d more", count - shown) : used;
}

/* Appends to text the numbers of the samples in micro-batch `micro` of the last step's global
 * batch. Returns the new length. */
static int put_micro(const Trainer *t, char *text, int used, int micro)
{
    int64_t sample[FAULT_SAMPLES], n = t->train_set.samples;
    Position at = position_after(t, t->step - 1);
    int64_t first = at.sample + micro * t->micro_batch;
    int count = (int)(n - first < t->micro_batch ? n - first : t->micro_batch);
    for (int i = 0; i < count && i < FAULT_SAMPLES; ++i)
        sample[i] = data_sample_at(&t->train_set, t->config, at.epoch, first + i);
    return put_samples(text, used, sample, count);
}

static void put_fault(const Trainer *t, const StepFault *f, char *text)
{
    const Graph *g = t->graph;
    const char *node = g->node[f->node].name;
    int used;
    if (f->param >= 0) {
        used = put(text, 0, "first of all the gradient of %s is not finite, in micro-batch %d, ",
                   g->param[f->param].name, f->micro);
        put_micro(t, text, used, f->micro);
        return;
    }
    used = put(text, 0, "first of all the %s of layer %s is not finite, in micro-batch %d, for ",
               f->backward ? "gradient of the input" : "output", node, f->micro);
    put_samples(text, used, f->sample, f->sample_count);
}

Status explain(Trainer *t, const StepResult *result, char text[EXPLAIN_BYTES])
{
    StepFault fault;
    double loss;
    *text = 0;
    if (train_check(t) != OK) {
        put(text, 0, "%s", fail_message());
        return OK;
    }
    if (!result->skipped) return OK;
    TRY(train_repeat_step(t, &fault, &loss));
    if (fault.node >= 0)
        put_fault(t, &fault, text);
    else if (result->bad_kind == BAD_SPIKE && loss == result->bad_loss)
        put(text, 0, "the largest loss, %g, is that of sample %lld", fault.largest,
            (long long)fault.largest_sample);
    else
        put(text, 0,
            "but a repetition of the step, with a loss of %g, does not show the fault: memory or a "
            "processor is at fault",
            text_nan_without_sign(loss));
    return OK;
}
