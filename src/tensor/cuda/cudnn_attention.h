/* Causal attention by cuDNN's fused kernels, forward and backward, in bf16 or fp16 with fp32 sums,
 * by plans that repeat their bits. */
#ifndef WEFT_TENSOR_CUDNN_ATTENTION_H
#define WEFT_TENSOR_CUDNN_ATTENTION_H

#include "cudnn_graph.h"

/* A run of samples whose heads are `width` wide. turned: queries and keys do not lie in x but in
 * AttentionRun's `turned`. */
typedef struct AttentionShape {
    int64_t samples, length, heads, width;
    /* fp16: else it is of bf16 */
    bool turned, fp16;
} AttentionShape;

typedef struct FusedAttention FusedAttention;
struct FusedAttention {
    /* of one run of the plans */
    AttentionShape shape;
    DnnPlan forward, backward;
    /* of the state's; owned */
    FusedAttention *next;
    bool serves;
    /* words: for Op's `kernels` */
    char why_not[256], words[320];
};

/* Oldest version of cuDNN (cudnnGetVersion) that computes attention here: the gradients of older
 * ones are wrong where the length is no multiple of 128. */
enum { FUSED_OLDEST = 91600 };
/* Plans for a shape. False where cuDNN has none: f->why_not says why. Release with fused_fini in
 * either case. */
bool fused_init(FusedAttention *f, AttentionShape shape, DnnTarget target);
void fused_fini(FusedAttention *f);

/* Reads WEFT_ATTENTION_SCRATCH; ERR_CONFIG where it says no size. */
Status fused_read_scratch(void);
/* What a run's workspace takes, before there is a plan. */
size_t fused_scratch_bytes(AttentionShape shape);
/* How many of the samples a run takes: all, or so few that its scratch is bearable. A divisor of
 * shape.samples. */
int64_t fused_group(AttentionShape shape);

/* The state's own for this shape, made on the first call; many operations have the same. Without a
 * GPU it has no plans, and says what they would take. Borrowed. */
const FusedAttention *fused_attention(CudaState *state, AttentionShape shape);
void fused_close(CudaState *state);
size_t fused_workspace_bytes(const FusedAttention *f);

/* Queues the groups that hold run.real samples, of each all samples: those that are padding come
 * out as anything. */
void fused_forward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                   void *workspace);
void fused_backward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                    void *workspace);

#endif
