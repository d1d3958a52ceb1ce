/* The loss of GPT-2 and of ResNets, computed as in the papers: double precision, one loop per
 * index, one function per layer, without fusion or blocking. It shares no code with weft; tests
 * compare weft's losses and gradients with it. Parameters have the names, shapes and order of
 * PyTorch's layers: dense (out, in), convolution (out, in, kernel, kernel). */
#ifndef REFERENCE_FORWARD_H
#define REFERENCE_FORWARD_H

typedef struct ReferenceParam {
    /* "h.0.attn.c_attn.weight", "layer1.0.bn2.bias" */
    const char *name;
    /* borrowed */
    const double *value;
} ReferenceParam;

typedef struct ReferenceParams {
    const ReferenceParam *list;
    int count;
} ReferenceParams;

/* Radford et al. 2019, with learned positions and without dropout. */
typedef struct ReferenceGpt2 {
    /* number of samples, and of tokens per sample */
    int B, T;
    /* width of the residual stream; number of heads */
    int C, H;
    /* number of blocks; size of the vocabulary */
    int L, V;
} ReferenceGpt2;

/* He et al. 2015; the stride of a bottleneck is in its 3x3 convolution, as in torchvision. */
typedef struct ReferenceResnet {
    /* number of samples; channels, height and width of the data */
    int N, C, H, W;
    int blocks[4];
    /* 0: blocks of two 3x3 convolutions; 1: blocks of 1x1, 3x3 and 1x1 convolutions with four times
     * as many output channels */
    int bottleneck;
    /* 0: 7x7/2 convolution and 3x3/2 max pooling; 1: one 3x3 convolution */
    int small_stem;
    int classes;
} ReferenceResnet;

/* Returns the mean cross-entropy in nats. tokens, next: (B,T), below V; next: the token to predict
 * at each position. If a parameter is missing, prints a line on stderr and returns NaN. */
double reference_gpt2(ReferenceParams params, ReferenceGpt2 model, const int *tokens,
                      const int *next);

/* Returns the mean cross-entropy in nats of one batch, with batch norm in training mode. image:
 * (N,C,H,W); label: N, below classes. Errors as above. */
double reference_resnet(ReferenceParams params, ReferenceResnet model, const double *image,
                        const int *label);

#endif
