/* attention, causal. Rotary angles lie in the cache, which refresh fills. */
#include "cuda.h"

#include <math.h>

static Status attention_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs(op, wish)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    int64_t samples = s->y.shape.dim[0], length = s->y.shape.dim[1];
    int64_t width = s->y.shape.dim[2] / s->heads;
    if (width > ATTENTION_WIDTH)
        return fail(ERR_CONFIG, "cuda: attention has heads %lld wide, and at most %d are possible",
                    (long long)width, ATTENTION_WIDTH);
    double pairs = (double)(samples * s->heads) * (double)length * (double)(length + 1) / 2;
    op->saved_bytes = (size_t)(samples * s->heads * length) * sizeof(float);
    op->workspace_bytes = op->saved_bytes;
    op->cache_bytes = s->rotary ? (size_t)(length * width) * sizeof(float) : 0;
    op->needs_x[0] = op->needs_y = true;
    op->flops_forward = 4.0 * pairs * (double)width;
    op->flops_backward = 2.5 * op->flops_forward;
    return OK;
}

static AttentionRun attention_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    int64_t width = s->y.shape.dim[2] / s->heads;
    return (AttentionRun){.type = s->y.dtype,
                          .x = run->x[0],
                          .dy = run->dy,
                          .y = run->y,
                          .dx = run->dx[0],
                          .angles = s->rotary ? run->cache : NULL,
                          .log_sum = run->saved,
                          .dots = run->workspace,
                          .scale = 1.0f / sqrtf((float)width),
                          .real = run->rows,
                          .length = s->y.shape.dim[1],
                          .heads = s->heads,
                          .width = width};
}

static void attention_refresh(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    if (!s->rotary) return;
    cuda_check(cuda_attention_angles(cuda_stream(op), run->cache, s->y.shape.dim[1],
                                     s->y.shape.dim[2] / s->heads / 2),
               "kernel attention_angles");
}

/* The output of padded samples; they come last. */
static void zero_samples(const Op *op, const OpRun *run, void *out, Desc desc)
{
    size_t sample = desc_bytes(desc) / (size_t)desc.shape.dim[0], real = (size_t)run->rows;
    size_t padded = (size_t)desc.shape.dim[0] - real;
    if (padded > 0)
        CUDA_CALL(
            cudaMemsetAsync((char *)out + real * sample, 0, padded * sample, cuda_stream(op)));
}

static void attention_forward(Op *op, const OpRun *run)
{
    cuda_check(cuda_attention(cuda_stream(op), attention_run(op, run)), "kernel attention");
    zero_samples(op, run, run->y, op->spec.y);
}

static void attention_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    cuda_check(cuda_attention_backward(cuda_stream(op), attention_run(op, run)),
               "kernel attention_backward");
    zero_samples(op, run, run->dx[0], op->spec.x[0]);
}

const OpTable cuda_attend = {
    .name = "attention",
    .plan = attention_plan,
    .refresh = attention_refresh,
    .forward = attention_forward,
    .backward_data = attention_backward_data,
};
