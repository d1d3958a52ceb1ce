/* Binds cuDNN at run time, as cublaslt.c binds cuBLASLt. */
#include "cudnn_attention.h"

Cudnn cudnn;

#define TEXT_(x)      #x
#define TEXT(x)       TEXT_(x)
#define CUDNN_LIBRARY "libcudnn.so." TEXT(CUDNN_MAJOR)

static const LibrarySymbol symbols[] = {
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
    {"cudnnBackendCreateDescriptor", offsetof(Cudnn, descriptor_create)},
    {"cudnnBackendDestroyDescriptor", offsetof(Cudnn, descriptor_destroy)},
    {"cudnnBackendSetAttribute", offsetof(Cudnn, descriptor_set)},
    {"cudnnBackendGetAttribute", offsetof(Cudnn, descriptor_get)},
    {"cudnnBackendFinalize", offsetof(Cudnn, descriptor_finalize)},
    {"cudnnBackendExecute", offsetof(Cudnn, execute)},
    {"cudnnGetLastErrorString", offsetof(Cudnn, last_error)},
    {0},
};

static const Library library = {.file = CUDNN_LIBRARY,
                                .name = "cuDNN",
                                .user = "a convolution or attention on train.device: cuda",
                                .cure = "use train.device=cpu",
                                .symbol = symbols};

Status cudnn_load(void)
{
    return cudnn.create ? OK : library_bind(&library, &cudnn);
}

Status cudnn_open(CudaState *state)
{
    if (state->dnn) return OK;
    TRY(cudnn_load());
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
    fused_close(state);
    if (state->dnn) CUDNN_CALL(cudnn.destroy(state->dnn));
    state->dnn = NULL;
}

void cudnn_check(cudnnStatus_t status, const char *call)
{
    if (status != CUDNN_STATUS_SUCCESS)
        die("%s: %s (cuDNN status %d)", call, cudnn.error_string(status), (int)status);
}
