/* The operation dropout: the same kernel computes y from x, and dx from dy. */
#include "../sliced.h"
#include "cuda.h"

static Status dropout_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    op->y_inplace = op->dx_inplace = true;
    return OK;
}

static void dropout_run(const Op *op, const OpRun *run, const void *from, void *to)
{
    const OpSpec *s = &op->spec;
    int64_t n = shape_count(s->y.shape), samples = s->y.shape.dim[0];
    int64_t channels = s->y.shape.ndim == 4 ? s->y.shape.dim[1] : 1;
    if (!run->training || s->drop == 0.0f) {
        if (from != to)
            CUDA_CALL(
                cudaMemcpyAsync(to, from, desc_bytes(s->y), cudaMemcpyDefault, cuda_stream(op)));
        return;
    }
    SampleSlice slice = sample_slice(s);
    DropoutRun drop = {.type = s->y.dtype,
                       .from = from,
                       .to = to,
                       .sample = run->sample,
                       .seed = run->seed,
                       .step = run->step,
                       .numbers = run->numbers,
                       .name = s->seed_name,
                       .purpose = RNG_DROPOUT,
                       .threshold = (uint32_t)((double)s->drop * 0x1p24),
                       .scale = (float)(1.0 / (1.0 - (double)s->drop)),
                       .samples = samples,
                       .sample_elements = n / samples,
                       .channels = channels,
                       .pixels = n / samples / channels,
                       .run_elements = slice.contiguous,
                       .stride = slice.stride,
                       .first = slice.first,
                       .by_channel = s->drop_channels};
    cuda_check(launch_dropout(cuda_stream(op), drop), "kernel dropout");
}

static void dropout_forward(Op *op, const OpRun *run)
{
    dropout_run(op, run, run->x[0], run->y);
}

static void dropout_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) dropout_run(op, run, run->dy, run->dx[0]);
}

const OpTable cuda_dropout = {
    .name = "dropout",
    .plan = dropout_plan,
    .forward = dropout_forward,
    .backward_data = dropout_backward_data,
};
