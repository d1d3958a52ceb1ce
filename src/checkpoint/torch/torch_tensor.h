/* Tensors in a file of torch.save: the calls in its pickle that make one, and the location of its
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
    /* owned: the folder in the zip that contains all members ("archive") */
    char *folder;
    /* number of values of the tensors read so far, counted in the tensor or its storage, whichever
     * is more */
    int64_t values;
} TorchFile;

/* Names that may appear in the pickle; the last row's name is NULL. */
extern const PickleName torch_names[];

/* A call that makes a tensor. Borrowed: the function, and its arguments, a TUPLE. */
typedef struct TorchCall {
    const PickleName *name;
    const PickleValue *arguments;
} TorchCall;

/* Returns whether the value is a tensor. *call: the call that makes it, inside wrappers such as
 * torch.nn.Parameter. */
bool torch_tensor_call(const TorchFile *torch, int value, TorchCall *call);
/* Returns whether the tensor has floats, and not exactly one element, unlike counters, losses and
 * random states. */
bool torch_tensor_is_weight(const TorchFile *torch, const TorchCall *call);
/* Fills in type, shape, strides and location of the values, which must be within the storage, and
 * verifies the storage's checksum. t->name must be set. ERR_DATA; ERR_IO. */
Status torch_tensor_fill(TorchFile *torch, const TorchCall *call, SafeTensor *t);

#endif
