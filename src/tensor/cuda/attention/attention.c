/* The operation attention, by weft's own kernels, or by cuDNN's fused kernels if all four
 * conditions hold:
 * - the type is bf16 or fp16
 * - each query attends to all keys up to its own (causal, no window)
 * - there are as many heads of keys as of queries
 * - cuDNN has such kernels for the shape
 *
 * With rotary positions, refresh writes the table of cosines and sines to the cache, and a kernel
 * rotates queries and keys before attention is computed. */
#include "cudnn_attention.h"

#include <math.h>

enum { PART_ALIGN = 256 };

/* Bytes of the three parts of the workspace, which are in this order. */
typedef struct WorkspaceParts {
    size_t dots, rotated, cudnn;
} WorkspaceParts;

static int64_t head_width(const OpSpec *s)
{
    return s->y.shape.dim[2] / s->heads;
}

/* Returns the largest number of keys to which a query attends. */
static int64_t window_of(const OpSpec *s)
{
    const int64_t length = s->y.shape.dim[1];
    return s->window > 0 && s->window < length ? s->window : length;
}

/* Returns whether cuDNN's kernels may compute this attention, apart from its type: each query
 * attends to all keys up to its own, and there are as many heads of keys as of queries. */
static bool is_plain(const OpSpec *s)
{
    return !s->bidirectional && window_of(s) == s->y.shape.dim[1] &&
           attention_kv_heads(s) == s->heads;
}

/* Returns the bytes of the rotated queries and keys; 0 without rotary positions. */
static size_t rotated_bytes(const OpSpec *s)
{
    const size_t heads = (size_t)(s->heads + attention_kv_heads(s));
    return s->rotary ? desc_bytes(s->y) / (size_t)s->heads * heads : 0;
}

static size_t round_to_part(size_t bytes)
{
    return (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

static WorkspaceParts workspace_parts(const Op *op)
{
    const OpSpec *s = &op->spec;
    const CudnnAttention *fused = op->impl;
    return (WorkspaceParts){.dots = round_to_part(op->saved_bytes),
                            .rotated = round_to_part(rotated_bytes(s)),
                            .cudnn = fused ? cudnn_attention_workspace_bytes(fused) : 0};
}

/* Sets op->kernels. If cuDNN computes this attention, also sets op->impl to cuDNN's plans, which
 * are borrowed. */
static Status choose_kernels(Op *op)
{
    const OpSpec *s = &op->spec;
    op->kernels = "weft's own kernels, in fp32";
    if (s->y.dtype == DTYPE_F32 || !is_plain(s)) return OK;
    if (cuda_has_gpu(cuda_state(op))) TRY(cudnn_open(cuda_state(op)));
    const CudnnAttention *fused =
        cudnn_attention_of(cuda_state(op), (AttentionShape){.samples = s->y.shape.dim[0],
                                                            .length = s->y.shape.dim[1],
                                                            .heads = s->heads,
                                                            .width = head_width(s),
                                                            .rotated = s->rotary,
                                                            .fp16 = s->y.dtype == DTYPE_F16});
    op->kernels = fused->kernels;
    if (fused->available) op->impl = (void *)(uintptr_t)fused;
    return OK;
}

static Status attention_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    int64_t samples = s->y.shape.dim[0], length = s->y.shape.dim[1], width = head_width(s);
    if (width > ATTENTION_WIDTH)
        return fail(ERR_CONFIG, "cuda: attention supports heads of at most %d columns, not %lld",
                    ATTENTION_WIDTH, (long long)width);
    TRY(choose_kernels(op));
    double pairs = (double)(samples * s->heads) * attention_pairs(s, length);
    op->saved_bytes = (size_t)(samples * s->heads * length) * sizeof(float);
    const WorkspaceParts parts = workspace_parts(op);
    op->workspace_bytes = parts.dots + parts.rotated + parts.cudnn;
    op->cache_bytes = s->rotary ? (size_t)(length * width) * sizeof(float) : 0;
    op->needs_x[0] = op->needs_y = true;
    op->flops_forward = 4.0 * pairs * (double)width;
    op->flops_backward = 2.5 * op->flops_forward;
    return OK;
}

static AttentionRun attention_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    void *rotated = (char *)run->workspace + workspace_parts(op).dots;
    return (AttentionRun){.type = s->y.dtype,
                          .x = run->x[0],
                          .dy = run->dy,
                          .y = run->y,
                          .dx = run->dx[0],
                          .rotated = s->rotary ? rotated : NULL,
                          .cos_sin = s->rotary ? run->cache : NULL,
                          .log_sum = run->saved,
                          .dots = run->workspace,
                          .scale = 1.0f / sqrtf((float)head_width(s)),
                          .full = s->bidirectional,
                          .window = window_of(s),
                          .real = run->sample_count,
                          .length = s->y.shape.dim[1],
                          .heads = s->heads,
                          .kv_heads = attention_kv_heads(s),
                          .width = head_width(s)};
}

static void attention_refresh(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t length = s->y.shape.dim[1], width = head_width(s);
    RotarySpeeds speeds = {0};
    if (!s->rotary) return;
    speeds.gain = rotary_speeds(s, width, length, speeds.speed);
    cuda_check(launch_rotary_table(cuda_stream(op), run->cache, length, width / 2, speeds),
               "kernel rotary_table");
}

/* Sets the padded samples of `out`, which come last, to 0. desc: layout of `out`. */
static void zero_samples(const Op *op, const OpRun *run, void *out, Desc desc)
{
    size_t sample = desc_bytes(desc) / (size_t)desc.shape.dim[0], real = (size_t)run->sample_count;
    size_t padded = (size_t)desc.shape.dim[0] - real;
    if (padded > 0)
        CUDA_CALL(
            cudaMemsetAsync((char *)out + real * sample, 0, padded * sample, cuda_stream(op)));
}

/* Rotates queries and keys if positions are rotary. */
static void rotate(const Op *op, AttentionRun run)
{
    if (op->spec.rotary)
        cuda_check(launch_attention_rotate(cuda_stream(op), run), "kernel attention_rotate");
}

static void *cudnn_workspace(const Op *op, void *workspace)
{
    const WorkspaceParts parts = workspace_parts(op);
    return (char *)workspace + parts.dots + parts.rotated;
}

static void attention_forward(Op *op, const OpRun *run)
{
    const AttentionRun r = attention_run(op, run);
    rotate(op, r);
    if (op->impl)
        cudnn_attention_forward(cuda_state(op), op->impl, r, cudnn_workspace(op, run->workspace));
    else
        cuda_check(launch_attention(cuda_stream(op), r), "kernel attention");
    zero_samples(op, run, run->y, op->spec.y);
}

static void attention_backward_data(Op *op, const OpRun *run)
{
    const AttentionRun r = attention_run(op, run);
    if (!run->dx[0]) return;
    rotate(op, r);
    if (op->impl)
        cudnn_attention_backward(cuda_state(op), op->impl, r, cudnn_workspace(op, run->workspace));
    else
        cuda_check(launch_attention_backward(cuda_stream(op), r), "kernel attention_backward");
    if (op->spec.rotary)
        cuda_check(launch_attention_rotate_back(cuda_stream(op), r),
                   "kernel attention_rotate_back");
    zero_samples(op, run, run->dx[0], op->spec.x[0]);
}

const OpTable cuda_attention = {
    .name = "attention",
    .plan = attention_plan,
    .refresh = attention_refresh,
    .forward = attention_forward,
    .backward_data = attention_backward_data,
};
