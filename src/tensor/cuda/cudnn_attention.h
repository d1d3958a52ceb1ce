/* Causal attention by cuDNN's fused kernels, forward and backward, in bf16 or fp16 with fp32 sums,
 * by plans that give the same bits each time. */
#ifndef WEFT_TENSOR_CUDNN_ATTENTION_H
#define WEFT_TENSOR_CUDNN_ATTENTION_H

#include "cudnn_graph.h"

typedef struct AttentionShape {
    /* samples; tokens of a sample; heads */
    int64_t samples, length, heads;
    /* columns of a head */
    int64_t width;
    /* true: queries and keys are read from AttentionRun's `rotated`, not from x */
    bool rotated;
    /* true: the type is fp16; false: bf16 */
    bool fp16;
} AttentionShape;

typedef struct FusedAttention FusedAttention;
struct FusedAttention {
    /* shape of one run of the plans: a group of samples */
    AttentionShape shape;
    DnnPlan forward, backward;
    /* next entry of CudaState's list; owned */
    FusedAttention *next;
    /* true: cuDNN has both plans or, without a GPU, is expected to; false: `reason` says why not */
    bool available;
    char reason[256];
    /* text for Op's `kernels` */
    char kernels[320];
};

/* Oldest version of cuDNN (cudnnGetVersion) whose attention is used: older versions compute wrong
 * gradients if the length is no multiple of 128. */
enum { FUSED_OLDEST = 91600 };
/* Makes the plans for a shape. Returns false with the reason in f->reason if cuDNN has none.
 * Release with fused_fini in either case. */
bool fused_init(FusedAttention *f, AttentionShape shape, DnnTarget target);
void fused_fini(FusedAttention *f);

/* Reads the limit of the workspace from WEFT_ATTENTION_SCRATCH; ERR_CONFIG if its value is no valid
 * size. */
Status fused_read_workspace_limit(void);
/* Bytes of the workspace that backward is expected to need, before there is a plan. */
size_t fused_expected_workspace_bytes(AttentionShape shape);
/* Number of samples that one run computes, a divisor of shape.samples: the largest whose workspace
 * is within the limit, else the smallest possible. The arrays of every group are aligned. */
int64_t fused_group(AttentionShape shape);

/* Returns the backend's entry for groups of this shape's samples (fused_group), made on the first
 * call; operations of the same shape share it. Without a GPU it has no plans, only their expected
 * workspace. Borrowed. */
const FusedAttention *fused_attention(CudaState *state, AttentionShape shape);
void fused_close(CudaState *state);
size_t fused_workspace_bytes(const FusedAttention *f);

/* Queue one run for each group that has a real sample. All samples of the group are computed; the
 * results of its padded samples are undefined. */
void fused_forward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                   void *workspace);
void fused_backward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                    void *workspace);

#endif
