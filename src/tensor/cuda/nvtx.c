/* Shows weft's phases as NVTX ranges next to the kernels in NVIDIA's profilers. With no profiler
 * attached a range costs two calls that return at once. */
#include "tensor.h"

#include <nvtx3/nvToolsExt.h>

static void enter(Phase phase)
{
    nvtxRangePop();
    nvtxRangePushA(phase_names[phase]);
}

Status nvtx_start(void)
{
    /* This range lasts until the first change of phase is reported. */
    nvtxRangePushA(phase_names[PHASE_OTHER]);
    phase_watch(enter);
    return OK;
}
