/* Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training"): the factor is halved
 * after an overflow, and doubled, up to 2^24, after train.loss_scale_steps steps without an
 * overflow. */
#include "loss_scale.h"

static const double SCALE_MIN = 0x1p-24, SCALE_MAX = 0x1p24;

void loss_scale_init(LossScale *s, const Config *c)
{
    *s = (LossScale){.dynamic = c->train.precision == PRECISION_FP16, .next = 1, .last = 1};
    if (s->dynamic) s->next = s->last = c->train.loss_scale;
}

static Status halve(LossScale *s, int64_t step)
{
    s->next /= 2;
    s->good_steps = 0;
    if (s->next < SCALE_MIN)
        return fail(
            ERR_DATA,
            "a gradient of step %lld overflows fp16 even with the smallest loss scale: lower "
            "optim.lr, or set train.precision=bf16",
            (long long)step);
    log_info("step %lld: a gradient overflowed fp16, the step is skipped; loss scale %.9g",
             (long long)step, s->next);
    return OK;
}

Status loss_scale_update(LossScale *s, const Config *c, int64_t step, bool overflow)
{
    s->last = s->next;
    if (!s->dynamic) return OK;
    if (overflow) return halve(s, step);
    if (++s->good_steps < c->train.loss_scale_steps || s->next >= SCALE_MAX) return OK;
    s->next *= 2;
    s->good_steps = 0;
    log_info("step %lld: loss scale %.9g", (long long)step, s->next);
    return OK;
}
