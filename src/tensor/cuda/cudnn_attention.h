/* Causal attention by cuDNN's fused kernels, forward and backward, in bf16 or fp16 with fp32 sums.
 * The plans give the same bits each time. */
#ifndef WEFT_TENSOR_CUDNN_ATTENTION_H
#define WEFT_TENSOR_CUDNN_ATTENTION_H

#include "cudnn_graph.h"

typedef struct AttentionShape {
    /* length: tokens of a sample */
    int64_t samples, length, heads;
    /* columns of a head */
    int64_t width;
    /* true: queries and keys are read from AttentionRun.rotated, not from AttentionRun.x */
    bool rotated;
    /* true: the type is fp16; false: it is bf16 */
    bool fp16;
} AttentionShape;

typedef struct FusedAttention FusedAttention;
struct FusedAttention {
    /* shape for one run of the plans, which computes a group of samples */
    AttentionShape shape;
    DnnPlan forward, backward;
    /* next entry of CudaState.attention; owned */
    FusedAttention *next;
    /* true: cuDNN has both plans or, without a GPU, is expected to have them; false: `reason` says
     * why not */
    bool available;
    char reason[256];
    /* text for Op.kernels */
    char kernels[320];
};

/* Oldest version of cuDNN (cudnnGetVersion) whose attention is used: older versions compute wrong
 * gradients if the length is no multiple of 128. */
enum { FUSED_OLDEST = 91600 };
/* Makes the plans for a shape. Returns false if cuDNN has none, with the reason in f->reason.
 * Release with fused_fini, also after false. */
bool fused_init(FusedAttention *f, AttentionShape shape, DnnTarget target);
void fused_fini(FusedAttention *f);

/* Sets the limit for the workspace from the environment variable WEFT_ATTENTION_SCRATCH, if it is
 * set. ERR_CONFIG if its value is no valid size. */
Status fused_read_workspace_limit(void);
/* Returns the bytes of the workspace that backward is expected to need, before there is a plan. */
size_t fused_expected_workspace_bytes(AttentionShape shape);
/* Returns the number of samples in a group, which one run computes. It is a divisor of
 * shape.samples: the largest whose workspace is within the limit or, if there is none, the smallest
 * for which the arrays of every group are aligned. */
int64_t fused_group(AttentionShape shape);

/* Returns the backend's entry for groups of this shape (fused_group), which the first call makes;
 * borrowed. Operations of the same shape share it. Without a GPU it has no plans, only the
 * workspace that they are expected to need. */
const FusedAttention *fused_attention(CudaState *state, AttentionShape shape);
/* Frees all entries that fused_attention has made. */
void fused_close(CudaState *state);
/* Returns the bytes of the workspace that both plans need. */
size_t fused_workspace_bytes(const FusedAttention *f);

/* fused_forward and fused_backward queue one run for each group that has a real sample. All samples
 * of the group are computed; the results of padded samples are undefined. */
void fused_forward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                   void *workspace);
void fused_backward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                    void *workspace);

#endif
