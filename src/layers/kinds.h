/* The layers module's private header: the checks that the kinds' shape rules share. */
#ifndef WEFT_LAYERS_KINDS_H
#define WEFT_LAYERS_KINDS_H

#include "layers.h"
#include "tensor/op_list.h"

/* as OpSpec.pad until the shape rule has resolved it: (kernel - 1) / 2 */
enum { PAD_SAME = -1 };

/* All inputs hold floats of lowest..highest dimensions; `needs` says so in words ("(N,C,H,W)"). */
Status need_floats(const OpSpec *spec, const char *kind, int lowest, int highest,
                   const char *needs);
/* Kernel given, `same` padding resolved, and the window fits: *out = outputs along both
 * directions. */
Status window_infer(OpSpec *spec, const char *kind, int64_t out[2]);
/* Rows of `least` or more vectors of size->width side by side, which becomes spec->row_width. */
Status vectors_infer(OpSpec *spec, const LayerSize *size, const char *kind, int least);
/* Of the last ONNX node: the attributes of spec's window. */
void window_onnx(const OnnxLayer *layer);
/* of whatever is a convolution */
OnnxValue conv_onnx(const OnnxLayer *layer);
/* attention's, in a file of its own */
OnnxValue attention_onnx(const OnnxLayer *layer);
/* The weight (w[0]) and, where size wants it, the bias (w[1], n elements) of dense and conv2d. */
void weight_bias(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS], Shape weight,
                 int64_t n);

#endif
