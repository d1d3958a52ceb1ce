/* Values of the configuration keys that choose the device and the number formats. */
#ifndef WEFT_TENSOR_CONFIG_WORDS_H
#define WEFT_TENSOR_CONFIG_WORDS_H

#include "config.h"

/* values of train.precision: type of activations and of the factors of products */
#define PRECISION_WORDS(W)                                                                         \
    W(PRECISION_FP32, "fp32")                                                                      \
    W(PRECISION_BF16, "bf16") W(PRECISION_FP16, "fp16") W(PRECISION_TF32, "tf32")
typedef enum Precision { PRECISION_WORDS(LIST_CONSTANT) } Precision;
/* values of train.device */
#define DEVICE_WORDS(W) W(DEVICE_AUTO, "auto") W(DEVICE_CPU, "cpu") W(DEVICE_CUDA, "cuda")
typedef enum DeviceKind { DEVICE_WORDS(LIST_CONSTANT) } DeviceKind;
/* values of train.cuda_graphs: whether captures are replayed */
#define GRAPHS_WORDS(W) W(GRAPHS_AUTO, "auto") W(GRAPHS_OFF, "off")
typedef enum GraphsKind { GRAPHS_WORDS(LIST_CONSTANT) } GraphsKind;

/* number of keys in tensor_words: the three above, and train.cpu, whose values are CPU_WORDS
 * (base/cpu.h) */
enum { TENSOR_WORDS = 4 };
extern const ConfigWords tensor_words[TENSOR_WORDS];

#endif
