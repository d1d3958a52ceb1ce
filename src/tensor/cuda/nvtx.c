/* Phases as NVTX ranges, which NVIDIA's profilers show beside the kernels. With no profiler
 * attached a range is two calls that return at once. */
#include "tensor.h"

#include <nvtx3/nvToolsExt.h>

static void enter(Phase phase)
{
    nvtxRangePop();
    nvtxRangePushA(phase_names[phase]);
}

Status nvtx_start(void)
{
    /* until the first phase that is told */
    nvtxRangePushA(phase_names[PHASE_OTHER]);
    phase_watch(enter);
    return OK;
}
