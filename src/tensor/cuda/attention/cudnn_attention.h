/* Causal attention by cuDNN's fused kernels, forward and backward, in bf16 or fp16 with fp32 sums.
 * A plan (DnnPlan) gives the same bits whenever it is run on the same input. The samples of a
 * micro-batch are divided into groups, and one run of a plan computes one group. */
#ifndef WEFT_TENSOR_CUDNN_ATTENTION_H
#define WEFT_TENSOR_CUDNN_ATTENTION_H

#include "../libraries/cudnn_graph.h"

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

typedef struct CudnnAttention CudnnAttention;
struct CudnnAttention {
    /* shape of one group of samples (cudnn_attention_group) */
    AttentionShape shape;
    DnnPlan forward, backward;
    /* next entry of CudaState.attention; owned */
    CudnnAttention *next;
    /* true: cuDNN has both plans or, without a GPU, is expected to have them; false: `reason` says
     * why not */
    bool available;
    char reason[256];
    /* text for Op.kernels */
    char kernels[320];
};

/* Oldest version of cuDNN (cudnnGetVersion) whose attention is used: older versions compute wrong
 * gradients if the length is no multiple of 128. */
enum { CUDNN_ATTENTION_OLDEST = 91600 };
/* Makes the plans for a shape. Returns false, and sets f->reason, if cuDNN is older than
 * CUDNN_ATTENTION_OLDEST, if the width of a head is unsuitable, or if cuDNN has no plan for the
 * shape. Release with cudnn_attention_fini, also after false. */
bool cudnn_attention_init(CudnnAttention *f, AttentionShape shape, DnnTarget target);
void cudnn_attention_fini(CudnnAttention *f);

/* Sets the limit for the workspace to the value of the environment variable WEFT_ATTENTION_SCRATCH,
 * in MiB. Changes nothing if the variable is not set. ERR_CONFIG: the value is no whole number from
 * 1 to 65536. */
Status cudnn_attention_read_workspace_limit(void);
/* Estimates, without a plan, how many bytes of workspace the backward plan for this shape needs. */
size_t cudnn_attention_expected_workspace_bytes(AttentionShape shape);
/* Returns the number of samples in a group. A number is possible if it divides shape.samples and
 * the arrays of every group begin at a multiple of 16 bytes. Returns the largest possible number
 * whose workspace is within the limit. If no possible number is within the limit, returns the
 * smallest possible number. */
int64_t cudnn_attention_group(AttentionShape shape);

/* Returns the backend's entry for groups of this shape (cudnn_attention_group); borrowed. The first
 * call makes the entry, and operations of the same shape share it. Without a GPU the entry has no
 * plans, only the expected size of their workspace. */
const CudnnAttention *cudnn_attention_of(CudaState *state, AttentionShape shape);
/* Frees all entries that cudnn_attention_of has made. */
void cudnn_attention_close(CudaState *state);
/* Returns the size of a workspace that is large enough for either plan, in bytes. */
size_t cudnn_attention_workspace_bytes(const CudnnAttention *f);

/* cudnn_attention_forward and cudnn_attention_backward queue one run for each group that has a real
 * sample. All samples of the group are computed; the results of padded samples are undefined. */
void cudnn_attention_forward(const CudaState *state, const CudnnAttention *f, AttentionRun run,
                             void *workspace);
void cudnn_attention_backward(const CudaState *state, const CudnnAttention *f, AttentionRun run,
                              void *workspace);

#endif
