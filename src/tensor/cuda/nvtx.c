/* Marks weft's phases (base/phase.h) as NVTX ranges, which NVIDIA's profilers show next to the
 * kernels. Without a profiler a range costs two calls that return at once. */
#include "tensor.h"

#include <nvtx3/nvToolsExt.h>

static void enter_phase(Phase phase)
{
    nvtxRangePop();
    nvtxRangePushA(phase_names[phase]);
}

Status nvtx_start(void)
{
    /* this range lasts until the first change of the phase */
    nvtxRangePushA(phase_names[PHASE_OTHER]);
    phase_watch(enter_phase);
    return OK;
}
