/* The functions of all kinds of schedule are complete, and an incomplete form is refused by name.
 * */
#include "harness.h"
#include "schedule/private.h"

static void refused(ScheduleForm form, const char *why)
{
    CHECK_FAILS(schedule_form_check("saw", &form), ERR_BUG, why);
}

static void forms(void)
{
    CHECK_OK(schedule_rows_check());
    const ScheduleForm good = {
        .stage = stage_round, .order = order_interleaved, .backward = BACKWARD_WHOLE};
    CHECK_OK(schedule_form_check("saw", &good));
    ScheduleForm form = good;
    form.stage = NULL;
    refused(form, "schedule saw: .stage is not given");
    form = good, form.order = NULL;
    refused(form, "schedule saw: .order is not given");
    form = good, form.backward = BACKWARD_UNSET;
    refused(form, "schedule saw: .backward is not given");
    form = good, form.read = file_read;
    refused(form, "schedule saw: .order is given, but must not be");
    form.order = NULL;
    refused(form, "schedule saw: .read and BACKWARD_BY_FILE go together");
    form = good, form.backward = BACKWARD_BY_FILE;
    refused(form, "schedule saw: .read and BACKWARD_BY_FILE go together");
}

TEST_MAIN("rows of schedule", {"forms", forms})
