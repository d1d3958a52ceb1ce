/* Private header of the layers module: helpers that several kinds share. In the functions, `kind`
 * is the name of the layer kind for messages. */
#ifndef WEFT_LAYERS_KINDS_H
#define WEFT_LAYERS_KINDS_H

#include "layers.h"
#include "tensor/op_list.h"

/* value of OpSpec.pad for `pad: same`, until the shape rule replaces it by (kernel - 1) / 2 */
enum { PADDING_SAME = -1 };

/* The layer that is inserted before a convolution whose pad_mode is not zero. */
extern const LayerKind kind_pad;

/* Fails unless all inputs are floats and have `lowest` to `highest` dimensions. needs: the accepted
 * shapes, for the message: "(N,C,H,W)". */
Status check_floats(const OpSpec *spec, const char *kind, int lowest, int highest,
                    const char *needs);
/* If the loss has class weights, fails unless its input is (N,C,H,W) with a weight for each
 * channel. In other shapes a sample has a single label, and a weighted mean over one label does not
 * depend on the weights. */
Status check_class_weights(const OpSpec *spec, const char *kind);
/* Fails unless the input of a convolution is (N,C,H,W), its number of output channels (size->width)
 * is given, and spec->groups divides the numbers of input and output channels. */
Status check_conv(const OpSpec *spec, const LayerSize *size, const char *kind);
/* For a convolution or a pool: fails unless the kernel is given and fits the image, replaces
 * PADDING_SAME, and sets `out` to the height and the width of the output. */
Status window_infer(OpSpec *spec, const char *kind, int64_t out[2]);
/* Fails unless the input is (N, n*size->width), n vectors side by side, with n at least `least`.
 * Sets spec->row_width. */
Status vectors_infer(OpSpec *spec, const LayerSize *size, const char *kind, int least);
/* Adds kernel, padding and stride as attributes to the last ONNX node. */
void window_onnx(const OnnxLayer *layer);
/* Adds the ONNX node of a convolution (LayerKind.onnx). */
OnnxValue conv_onnx(const OnnxLayer *layer);
/* Adds the ONNX nodes of attention (LayerKind.onnx). */
OnnxValue attention_onnx(const OnnxLayer *layer);
/* Sets the parameters of a layer with a weight, w[0], of shape `weight` and, if size->bias is true,
 * a bias, w[1], of n elements (dense, convolutions, detect, numeric_embedding). */
void set_weight_and_bias(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS],
                         Shape weight, int64_t n);

/* Returns word i of model.activation, which is the name of an activation's layer kind; {0} after
 * the last word. */
ConfigWord activation_word(int i);
/* Returns, as a text, what is wrong with the row in attr.c that the attribute `name` has for layers
 * with this operation; NULL: nothing. */
const char *layer_attr_fault(OpKind op, const char *name);
/* Sets the parameters of a normalisation of n channels: the weight (w[0]) and, if shift is true,
 * the bias (w[1]). */
void set_norm_params(OpSpec *spec, LayerParam param[SPEC_PARAMS], int64_t n, bool shift);

#endif
