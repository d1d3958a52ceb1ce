/* The layers module's private header: checks and ONNX nodes that several kinds share. */
#ifndef WEFT_LAYERS_KINDS_H
#define WEFT_LAYERS_KINDS_H

#include "layers.h"
#include "tensor/op_list.h"

/* value of OpSpec.pad for `pad: same` until the shape rule replaces it by (kernel - 1) / 2 */
enum { PAD_SAME = -1 };

/* Checks that all inputs are floats of lowest .. highest dimensions; `needs` is the text for the
 * message ("(N,C,H,W)"). */
Status need_floats(const OpSpec *spec, const char *kind, int lowest, int highest,
                   const char *needs);
/* Checks that a kernel is given and fits, resolves PAD_SAME, and sets out to the numbers of outputs
 * along height and width. */
Status window_infer(OpSpec *spec, const char *kind, int64_t out[2]);
/* Checks for rows of at least `least` vectors of size->width side by side, and sets
 * spec->row_width. */
Status vectors_infer(OpSpec *spec, const LayerSize *size, const char *kind, int least);
/* Adds the attributes of spec's window to the last ONNX node. */
void window_onnx(const OnnxLayer *layer);
/* The ONNX node of any convolution. */
OnnxValue conv_onnx(const OnnxLayer *layer);
/* in attention_onnx.c */
OnnxValue attention_onnx(const OnnxLayer *layer);
/* Sets the weight (w[0]) and, if size has a bias, the bias (w[1], n elements) of dense and
 * conv2d. */
void weight_bias(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS], Shape weight,
                 int64_t n);

/* The fault of an attribute's row in words, or NULL if there is none (attr.c). */
const char *layer_attr_lacks(const char *name);
/* Sets the parameters of a normalisation of n channels: the weight (w[0]) and, if shift, the bias
 * (w[1]). */
void norm_params(OpSpec *spec, LayerParam param[SPEC_PARAMS], int64_t n, bool shift);

#endif
