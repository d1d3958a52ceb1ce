/* Checks the constant tables of the module, at every start of the program: kinds of data set,
 * formats of labelled boxes, kinds of flow. */
#include "flow/flow.h"

#include "data/import.h"

Status data_kind_check(const DataKindInfo *kind)
{
    const RowSlot slots[] = {
        ROW_SLOT(kind, name), ROW_SLOT(kind, array),  ROW_SLOT(kind, shape),
        ROW_SLOT(kind, x),    ROW_SLOT(kind, labels),
    };
    return ROW_SLOTS_CHECK("kind of data set", kind->name, slots);
}

Status box_format_check(const char *name, const BoxFormat *format)
{
    return row_check("format of boxes", name, format->read ? NULL : ".read is not given");
}

/* Returns a text that says what is wrong with the variables of a kind; NULL: nothing. */
static const char *vars_lack(const FlowKind *kind)
{
    if (kind->vars < 2 || kind->vars > FLOW_VARS) return ".vars is not 2 to FLOW_VARS";
    for (int i = 0; i < FLOW_VARS; ++i) {
        const FlowVar *var = &kind->var[i];
        if (i < kind->vars ? !var->name || !var->long_name || !var->units : var->name != NULL)
            return ".vars is not the number of variables in .var";
    }
    return kind->time_scale > 0 ? NULL : ".time_scale is not given";
}

Status flow_kind_check(const FlowKind *kind)
{
    const RowSlot slots[] = {
        ROW_SLOT(kind, name),         ROW_SLOT(kind, title),          ROW_SLOT(kind, time_units),
        ROW_SLOT(kind, length_units), ROW_SLOT(kind, advice),         ROW_SLOT(kind, sides),
        ROW_SLOT(kind, edges),        ROW_SLOT(kind, solver_new),     ROW_SLOT(kind, solver_free),
        ROW_SLOT(kind, value_count),  ROW_SLOT(kind, start),          ROW_SLOT(kind, rate),
        ROW_SLOT(kind, longest_step), ROW_SLOT(kind, compute_fields), ROW_SLOT(kind, coordinate),
        ROW_SLOT(kind, parameters),
    };
    TRY(ROW_SLOTS_CHECK("kind of flow", kind->name, slots));
    return row_check("kind of flow", kind->name, vars_lack(kind));
}

#define CHECK_BOX_FORMAT(name) TRY(box_format_check(#name, &box_format_##name));
#define CHECK_FLOW_KIND(name)  TRY(flow_kind_check(&flow_##name));
Status data_tables_check(void)
{
    for (int kind = 0; kind < DATA_KINDS; ++kind)
        TRY(data_kind_check(data_kind_info((DataKind)kind)));
    BOX_FORMATS(CHECK_BOX_FORMAT)
    FLOW_KINDS(CHECK_FLOW_KIND)
    return OK;
}
