/* Emulates the functions of CUDA's driver that cuDNN needs to make a plan for a model of GPU that
 * the machine lacks: there is no GPU, compiled kernels can be loaded, and nothing runs. The file
 * does not include cuda.h, so that functions that only return an error can be declared without
 * their arguments. */
#include <stdlib.h>

enum { DONE = 0, NO_DEVICE = 100, NOT_SUPPORTED = 801 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorString(int error, const char **text);
int cuGetErrorName(int error, const char **text);
int cuDeviceGetCount(int *count);
int cuLibraryLoadData(void **library, const void *code);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuKernelSetAttribute(int name, int value, void *kernel, int device);
int cuLibraryUnload(void *library);

int cuInit(unsigned flags)
{
    return flags == 0 ? DONE : NOT_SUPPORTED;
}
int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return DONE;
}
int cuGetErrorString(int error, const char **text)
{
    *text = error == DONE ? "no error" : "refused by a test's driver";
    return DONE;
}
int cuGetErrorName(int error, const char **text)
{
    return cuGetErrorString(error, text);
}
int cuDeviceGetCount(int *count)
{
    *count = 0;
    return NO_DEVICE;
}
int cuLibraryLoadData(void **library, const void *code)
{
    if (!code) return NOT_SUPPORTED;
    *library = malloc(1);
    return DONE;
}
int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    if (!name) return NOT_SUPPORTED;
    *kernel = library;
    return DONE;
}
int cuKernelSetAttribute(int name, int value, void *kernel, int device)
{
    (void)name, (void)value, (void)device;
    return kernel ? DONE : NOT_SUPPORTED;
}
int cuLibraryUnload(void *library)
{
    free(library);
    return DONE;
}

/* cuDNN looks up these functions, but does not need their results. */
#define REFUSED(name)                                                                              \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return NOT_SUPPORTED;                                                                      \
    }
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPopCurrent)
REFUSED(cuCtxPushCurrent)
REFUSED(cuDeviceGet)
REFUSED(cuGetExportTable)
REFUSED(cuKernelGetAttribute)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate)
REFUSED(cuLinkDestroy)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuStreamGetCtx)
