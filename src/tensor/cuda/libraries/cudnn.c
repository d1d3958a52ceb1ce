/* Binds cuDNN at run time, as cublaslt.c binds cuBLASLt. Opens and closes a backend's handle of
 * cuDNN. */
#include "../attention/cudnn_attention.h"

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
    if (state->dnn || state->gpu_description) return OK;
    if (!cuda_has_gpu(state)) return gpu_model_describe(state->gpu_model, &state->gpu_description);
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
    cudnn_attention_close(state);
    dnn_free_plans(state);
    if (state->dnn) CUDNN_CALL(cudnn.destroy(state->dnn));
    if (state->gpu_description) CUDNN_CALL(cudnn.descriptor_destroy(state->gpu_description));
    state->dnn = NULL;
    state->gpu_description = NULL;
}

void cudnn_check(cudnnStatus_t status, const char *call)
{
    if (status != CUDNN_STATUS_SUCCESS)
        die("%s: %s (cuDNN status %d)%s", call, cudnn.error_string(status), (int)status,
            cuda_recording_note());
}
