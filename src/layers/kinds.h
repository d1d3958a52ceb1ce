/* The layers module's private header: the kinds' tables and the checks that their shape rules share. */
#ifndef WEFT_LAYERS_KINDS_H
#define WEFT_LAYERS_KINDS_H

#include "layers.h"

extern const LayerKind kind_dense, kind_conv2d, kind_batch_norm, kind_layer_norm;
extern const LayerKind kind_relu, kind_relu6, kind_gelu, kind_silu;
extern const LayerKind kind_max_pool, kind_avg_pool, kind_global_pool;
extern const LayerKind kind_add, kind_concat, kind_flatten, kind_dropout, kind_embedding;
extern const LayerKind kind_positions, kind_attention;
extern const LayerKind kind_group_norm, kind_rms_norm, kind_swiglu;
extern const LayerKind kind_softmax_loss, kind_mse_loss;

enum { PAD_SAME = -1 }; /* as OpSpec.pad until the shape rule has resolved it: (kernel - 1) / 2 */

/* All inputs hold floats of lowest..highest dimensions; `needs` says so in words ("(N,C,H,W)"). */
Status need_floats(const OpSpec *spec, const char *kind, int lowest, int highest,
                   const char *needs);
/* Kernel given, `same` padding resolved, and the window fits: *out = outputs along both directions. */
Status window_infer(OpSpec *spec, const char *kind, int64_t out[2]);
/* The weight (w[0]) and, where size wants it, the bias (w[1], n elements) of dense and conv2d. */
void weight_bias(OpSpec *spec, const LayerSize *size, LayerParam param[OP_PARAMS], Shape weight,
                 int64_t n);

#endif
