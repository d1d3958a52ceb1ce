/* The constant tables of the module are complete, and an incomplete row is refused by name. */
#include "data/flow/flow.h"
#include "data/import.h"
#include "harness.h"

#define KIND_LACKS(slot)                                                                           \
    do {                                                                                           \
        DataKindInfo kind = *data_kind_info(DATA_BOXES);                                           \
        kind.slot = 0;                                                                             \
        CHECK_FAILS(data_kind_check(&kind), ERR_BUG,                                               \
                    "kind of data set boxes: ." #slot " is not given");                            \
    } while (0)

static void kinds(void)
{
    CHECK_OK(data_tables_check());
    KIND_LACKS(array);
    KIND_LACKS(shape);
    KIND_LACKS(x);
    KIND_LACKS(labels);
    const DataKindInfo unnamed = {.array = "/x"};
    CHECK_FAILS(data_kind_check(&unnamed), ERR_BUG,
                "kind of data set without a name: .name is not given");
    const BoxFormat format = {NULL};
    CHECK_FAILS(box_format_check("new", &format), ERR_BUG,
                "format of boxes new: .read is not given");
}

#define FLOW_LACKS(slot)                                                                           \
    do {                                                                                           \
        FlowKind kind = flow_burgers;                                                              \
        kind.slot = 0;                                                                             \
        CHECK_FAILS(flow_kind_check(&kind), ERR_BUG,                                               \
                    "kind of flow burgers: ." #slot " is not given");                              \
    } while (0)

static void flows(void)
{
    FLOW_LACKS(title);
    FLOW_LACKS(time_units);
    FLOW_LACKS(time_scale);
    FLOW_LACKS(length_units);
    FLOW_LACKS(advice);
    FLOW_LACKS(sides);
    FLOW_LACKS(edges);
    FLOW_LACKS(solver_new);
    FLOW_LACKS(solver_free);
    FLOW_LACKS(value_count);
    FLOW_LACKS(start);
    FLOW_LACKS(rate);
    FLOW_LACKS(longest_step);
    FLOW_LACKS(compute_fields);
    FLOW_LACKS(coordinate);
    FLOW_LACKS(parameters);
    FlowKind kind = flow_burgers;
    kind.name = NULL;
    CHECK_FAILS(flow_kind_check(&kind), ERR_BUG, "kind of flow without a name: .name is not given");
    kind = flow_burgers, kind.vars = 0;
    CHECK_FAILS(flow_kind_check(&kind), ERR_BUG,
                "kind of flow burgers: .vars is not 2 to FLOW_VARS");
    kind.vars = 3;
    CHECK_FAILS(flow_kind_check(&kind), ERR_BUG,
                "kind of flow burgers: .vars is not the number of variables in .var");
    kind = flow_burgers, kind.var[1].units = NULL;
    CHECK_FAILS(flow_kind_check(&kind), ERR_BUG,
                "kind of flow burgers: .vars is not the number of variables in .var");
}

TEST_MAIN("rows of data", {"kinds", kinds}, {"flows", flows})
