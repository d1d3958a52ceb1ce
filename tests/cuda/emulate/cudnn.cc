/* cuDNN's handle; what it computes is in cudnn_graph.cc. */
#include <cudnn.h>
#include <cstdlib>

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = reinterpret_cast<cudnnHandle_t>(malloc(1));
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t)
{
    return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}
const char *cudnnGetErrorString(cudnnStatus_t)
{
    return "emulated";
}
}
