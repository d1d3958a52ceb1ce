/* Values of the configuration keys that choose the device and the number formats. */
#include "tensor/config_words.h"

const ConfigWords tensor_words[TENSOR_WORDS] = {
    {"train.precision", .text = LIST_TEXT(PRECISION_WORDS)},
    {"train.device", .text = LIST_TEXT(DEVICE_WORDS)},
    {"train.cpu", .text = LIST_TEXT(CPU_WORDS)},
    {"train.cuda_graphs", .text = LIST_TEXT(GRAPHS_WORDS)},
};
