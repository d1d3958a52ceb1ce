/* Tensors in a file of torch.save: the calls in its pickle that make a tensor, and the location of
 * the tensor's values. */
#ifndef WEFT_CHECKPOINT_TORCH_TENSOR_H
#define WEFT_CHECKPOINT_TORCH_TENSOR_H

#include "pickle.h"
#include "zip.h"

typedef struct TorchFile {
    /* borrowed */
    ForeignSet *set;
    /* borrowed */
    ForeignFile *file;
    Zip zip;
    Pickle pickle;
    /* the folder in the zip that contains all members ("archive"); owned */
    char *folder;
    /* sum over the tensors so far of the larger of two numbers: the tensor's values, and the
     * elements that the tensor spans in its storage */
    int64_t values;
} TorchFile;

/* Names that may appear in the pickle; the last row's name is NULL. */
extern const PickleName torch_names[];

/* A call that makes a tensor. */
typedef struct TorchCall {
    /* the function; borrowed */
    const PickleName *name;
    /* its arguments, a TUPLE; borrowed */
    const PickleValue *arguments;
} TorchCall;

/* Returns true if the value is a tensor. *call: the call that makes it, inside wrappers such as
 * torch.nn.Parameter. */
bool torch_tensor_call(const TorchFile *torch, int value, TorchCall *call);
/* Returns true if the tensor has floats and a dimension other than 1, unlike counters and losses
 * (one element) and random states (no floats). */
bool torch_tensor_is_weight(const TorchFile *torch, const TorchCall *call);
/* Sets type, shape, strides and the location of the values, which must be within the storage, and
 * verifies the storage's checksum. t->name must be set. ERR_DATA: the call or the storage is
 * invalid. ERR_IO. */
Status torch_tensor_fill(TorchFile *torch, const TorchCall *call, ForeignTensor *t);

#endif
