/* Private header of the layers module: helpers that several kinds share. */
#ifndef WEFT_LAYERS_KINDS_H
#define WEFT_LAYERS_KINDS_H

#include "layers.h"
#include "tensor/op_list.h"

/* value of OpSpec.pad for `pad: same` until the shape rule replaces it by (kernel - 1) / 2 */
enum { PAD_SAME = -1 };

/* The layer that is inserted before a convolution whose pad_mode is not zero. */
extern const LayerKind kind_pad;

/* Fails unless all inputs are floats with lowest .. highest dimensions; `needs` is the text for the
 * message ("(N,C,H,W)"). */
Status check_floats(const OpSpec *spec, const char *kind, int lowest, int highest,
                    const char *needs);
/* Checks the weights of classes, if there are any: x must be (N,C,H,W) with a weight for each
 * channel. Other shapes are refused, because the weighted mean over a sample's only label does not
 * depend on the weights. */
Status check_class_weights(const OpSpec *spec, const char *kind);
/* Fails unless a convolution's input is an image, its number of output channels (size->width) is
 * given, and spec->groups divides the channels in and out. */
Status check_conv(const OpSpec *spec, const LayerSize *size, const char *kind);
/* Checks that a kernel is given and fits, resolves PAD_SAME, and sets out to the numbers of outputs
 * along height and width. */
Status window_infer(OpSpec *spec, const char *kind, int64_t out[2]);
/* Fails unless the input is (N, n*size->width) with n >= `least` vectors side by side. Sets
 * spec->row_width. */
Status vectors_infer(OpSpec *spec, const LayerSize *size, const char *kind, int least);
/* Adds kernel, padding and stride as attributes to the last ONNX node. */
void window_onnx(const OnnxLayer *layer);
/* Adds the ONNX node of a convolution (LayerKind.onnx). */
OnnxValue conv_onnx(const OnnxLayer *layer);
/* Adds the ONNX nodes of attention (LayerKind.onnx). */
OnnxValue attention_onnx(const OnnxLayer *layer);
/* Sets the parameters of a dense layer, a convolution or a numeric_embedding: the weight (w[0], of
 * shape `weight`) and, if size->bias, the bias (w[1], n elements). */
void set_weight_and_bias(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS],
                         Shape weight, int64_t n);

/* Returns word i of model.activation, the name of an activation's layer; {0} after the last. */
ConfigWord activation_word(int i);
/* Checks the row in attr.c of an attribute of layers with this operation. Returns the fault as
 * text, or NULL. */
const char *layer_attr_fault(OpKind op, const char *name);
/* Sets the parameters of a normalisation of n channels: the weight (w[0]) and, if shift is true,
 * the bias (w[1]). */
void set_norm_params(OpSpec *spec, LayerParam param[SPEC_PARAMS], int64_t n, bool shift);

#endif
