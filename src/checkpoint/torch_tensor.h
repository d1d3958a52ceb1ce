/* Tensors in a file of torch.save: the calls of its pickle that make one, and the place of its
 * values. */
#ifndef WEFT_CHECKPOINT_TORCH_TENSOR_H
#define WEFT_CHECKPOINT_TORCH_TENSOR_H

#include "pickle.h"
#include "zip.h"

typedef struct TorchFile {
    /* borrowed */
    SafeSet *set;
    SafeFile *file;
    Zip zip;
    Pickle pickle;
    /* owned: the folder in the zip that holds everything ("archive") */
    char *folder;
    /* number of values that the tensors taken so far have, or cover in their storages */
    int64_t values;
} TorchFile;

/* The names that may stand in the pickle; the last row's name is NULL. */
extern const PickleName torch_names[];

/* A call that makes a tensor. borrowed, both: the function, and its arguments, a TUPLE */
typedef struct TorchCall {
    const PickleName *name;
    const PickleValue *arguments;
} TorchCall;

/* Is the value a tensor? *call: what makes it, behind wrappers such as torch.nn.Parameter. */
bool torch_tensor_call(const TorchFile *torch, int value, TorchCall *call);
/* Does the tensor have floats, and not exactly one? Counters, losses and random states do not. */
bool torch_tensor_is_weight(const TorchFile *torch, const TorchCall *call);
/* Type, shape, strides and place of the values, within the bounds of the storage; the storage's
 * checksum is compared. t->name is there. ERR_DATA; ERR_IO. */
Status torch_tensor_fill(TorchFile *torch, const TorchCall *call, SafeTensor *t);

#endif
