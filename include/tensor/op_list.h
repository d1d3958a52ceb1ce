/* The list of operations: constant, name, and the backends that have the operation. A new operation
 * is one file in src/tensor/cpu, or in a part of that folder, with its OpInfo and OpTable
 * (info_NAME, cpu_NAME), and one row here. The CPU backend has all operations, CUDA those marked
 * EVERYWHERE (cuda_NAME). Only tensor and layers may include this file (make check-includes); other
 * modules read OpInfo. */
#ifndef WEFT_TENSOR_OP_LIST_H
#define WEFT_TENSOR_OP_LIST_H

#include "tensor/op_info.h"

/* clang-format off: one operation for each line; insert a new one above the last line, which has no
 * backslash */
#define OPERATIONS(_)                                                                              \
    _(DENSE, dense, EVERYWHERE)                                                                    \
    _(CONV2D, conv2d, EVERYWHERE)                                                                  \
    _(BATCH_NORM, batch_norm, EVERYWHERE)                                                          \
    _(LAYER_NORM, layer_norm, EVERYWHERE)                                                          \
    _(ACTIVATION, activation, EVERYWHERE)                                                          \
    _(POOL, pool, EVERYWHERE)                                                                      \
    _(UPSAMPLE, upsample, EVERYWHERE)                                                              \
    _(ADD, add, EVERYWHERE)                                                                        \
    _(CONCAT, concat, EVERYWHERE)                                                                  \
    _(FLATTEN, flatten, EVERYWHERE)                                                                \
    _(DROPOUT, dropout, EVERYWHERE)                                                                \
    _(EMBEDDING, embedding, EVERYWHERE)                                                            \
    _(POSITIONS, positions, EVERYWHERE)                                                            \
    _(ATTENTION, attention, EVERYWHERE)                                                            \
    _(SOFTMAX_LOSS, softmax_loss, EVERYWHERE)                                                      \
    _(POINT_LOSS, point_loss, EVERYWHERE)                                                          \
    _(REORDER, reorder, EVERYWHERE)                                                                \
    _(EXCHANGE, exchange, EVERYWHERE)                                                              \
    _(RMS_NORM, rms_norm, EVERYWHERE)                                                              \
    _(GROUP_NORM, group_norm, EVERYWHERE)                                                          \
    _(SWIGLU, swiglu, EVERYWHERE)                                                                  \
    _(BAG, bag, CPU_ONLY)                                                                          \
    _(SIGMOID_LOSS, sigmoid_loss, EVERYWHERE)                                                      \
    _(FOCAL_LOSS, focal_loss, EVERYWHERE)                                                          \
    _(REGION_LOSS, region_loss, EVERYWHERE)                                                        \
    _(INTERACTION, interaction, CPU_ONLY)                                                          \
    _(FM, fm, CPU_ONLY)                                                                            \
    _(YOLO_LOSS, yolo_loss, EVERYWHERE)                                                            \
    _(CONV_TRANSPOSE2D, conv_transpose2d, EVERYWHERE)                                              \
    _(PIXEL_SHUFFLE, pixel_shuffle, EVERYWHERE)                                                    \
    _(PAD, pad, EVERYWHERE)                                                                        \
    _(FILM, film, EVERYWHERE)                                                                      \
    _(CHANNEL_SUM, channel_sum, EVERYWHERE)                                                        \
    _(PIXEL_TOKENS, pixel_tokens, EVERYWHERE)                                                      \
    _(NUMERIC_EMBEDDING, numeric_embedding, CPU_ONLY)
/* clang-format on */

#define OP_CONSTANT(OP, name, where) OP_##OP,
/* OP_NONE: no operation */
enum { OP_NONE, OPERATIONS(OP_CONSTANT) OP_KINDS };
#undef OP_CONSTANT
_Static_assert((int)OP_KINDS <= (int)OP_MOST, "OP_MOST operations fit BackendTable.op");

#endif
