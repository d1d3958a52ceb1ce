/* Binds cuDNN at run time, as cublaslt.c binds cuBLASLt. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

Cudnn cudnn;

#define TEXT_(x)      #x
#define TEXT(x)       TEXT_(x)
#define CUDNN_LIBRARY "libcudnn.so." TEXT(CUDNN_MAJOR)

typedef struct Symbol {
    const char *name;
    size_t slot; /* offset in Cudnn */
} Symbol;

static const Symbol symbols[] = {
    {"cudnnCreate", offsetof(Cudnn, create)},
    {"cudnnDestroy", offsetof(Cudnn, destroy)},
    {"cudnnSetStream", offsetof(Cudnn, set_stream)},
    {"cudnnGetVersion", offsetof(Cudnn, get_version)},
    {"cudnnGetErrorString", offsetof(Cudnn, error_string)},
    {"cudnnCreateTensorDescriptor", offsetof(Cudnn, tensor_create)},
    {"cudnnDestroyTensorDescriptor", offsetof(Cudnn, tensor_destroy)},
    {"cudnnSetTensor4dDescriptor", offsetof(Cudnn, tensor_set)},
    {"cudnnCreateFilterDescriptor", offsetof(Cudnn, filter_create)},
    {"cudnnDestroyFilterDescriptor", offsetof(Cudnn, filter_destroy)},
    {"cudnnSetFilter4dDescriptor", offsetof(Cudnn, filter_set)},
    {"cudnnCreateConvolutionDescriptor", offsetof(Cudnn, conv_create)},
    {"cudnnDestroyConvolutionDescriptor", offsetof(Cudnn, conv_destroy)},
    {"cudnnSetConvolution2dDescriptor", offsetof(Cudnn, conv_set)},
    {"cudnnSetConvolutionGroupCount", offsetof(Cudnn, conv_groups)},
    {"cudnnSetConvolutionMathType", offsetof(Cudnn, conv_math)},
    {"cudnnGetConvolutionForwardAlgorithm_v7", offsetof(Cudnn, forward_algorithms)},
    {"cudnnGetConvolutionBackwardDataAlgorithm_v7", offsetof(Cudnn, data_algorithms)},
    {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", offsetof(Cudnn, filter_algorithms)},
    {"cudnnConvolutionForward", offsetof(Cudnn, forward)},
    {"cudnnConvolutionBackwardData", offsetof(Cudnn, backward_data)},
    {"cudnnConvolutionBackwardFilter", offsetof(Cudnn, backward_filter)},
};

static Status load(void)
{
    if (cudnn.create) return OK;
    void *library = dlopen(CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(ERR_CONFIG,
                    "convolutions on train.device: cuda need cuDNN: %s; put its directory into "
                    "LD_LIBRARY_PATH, or use train.device=cpu",
                    dlerror());
    Cudnn found;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            Status st = fail(ERR_CONFIG, "%s has no %s: install cuDNN %d", CUDNN_LIBRARY,
                             symbols[i].name, CUDNN_MAJOR);
            dlclose(library);
            return st;
        }
        memcpy((char *)&found + symbols[i].slot, &symbol, sizeof symbol);
    }
    cudnn = found; /* stays bound until the process ends */
    return OK;
}

Status cudnn_open(CudaState *state)
{
    if (state->dnn) return OK;
    TRY(load());
    cudnnStatus_t status = cudnn.create(&state->dnn);
    if (status != CUDNN_STATUS_SUCCESS) {
        state->dnn = NULL;
        return fail(ERR_CONFIG, "GPU %d (%s): cudnnCreate: %s", state->device, state->name,
                    cudnn.error_string(status));
    }
    CUDNN_CALL(cudnn.set_stream(state->dnn, state->compute.handle));
    return OK;
}

void cudnn_close(CudaState *state)
{
    if (state->dnn) CUDNN_CALL(cudnn.destroy(state->dnn));
    state->dnn = NULL;
}

void cudnn_check(cudnnStatus_t status, const char *call)
{
    if (status != CUDNN_STATUS_SUCCESS)
        die("%s: %s (cuDNN status %d)", call, cudnn.error_string(status), (int)status);
}
