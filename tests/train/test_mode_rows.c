/* The rows of all modes (grid.mode) are complete, and an incomplete row is refused by name. */
#include "harness.h"
#include "train/mode/step_mode.h"

static void refused(StepMode mode, const char *why)
{
    CHECK_FAILS(step_mode_row_check("geo", &mode), ERR_BUG, why);
}

static void modes(void)
{
    CHECK_OK(step_modes_check());
    StepMode mode = mode_geo;
    mode.ranks = STEP_RANKS_UNSET;
    refused(mode, "mode geo: .ranks is not given");
    mode = mode_geo, mode.forward_backward = NULL;
    refused(mode, "mode geo: .forward_backward is not given");
    mode = mode_geo, mode.update = NULL;
    refused(mode, "mode geo: .update is not given");
    mode = mode_geo, mode.free = NULL;
    refused(mode, "mode geo: .free is not given");
    mode = mode_geo, mode.make = NULL;
    refused(mode, "mode geo: .free is given, but must not be");
    mode = mode_geo, mode.after_update = NULL;
    refused(mode, "mode geo: .after_update is not given");
}

TEST_MAIN("rows of modes", {"modes", modes})
