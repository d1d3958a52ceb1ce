/* Computes the shape and the values of a parameter after pruning. Rows are the indexes of the
 * parameter's first dimension, and columns those of its second. A row belongs to an output channel
 * of the layer. A column of a weight belongs to a channel that the layer reads. Rows and columns of
 * removed channels are left out. */
#include "build.h"
#include "model/units.h"

#include <string.h>

/* Layout of a parameter: [rows][columns][inner]. */
typedef struct ParamLayout {
    int64_t rows;
    /* 1 for parameters that are not weights */
    int64_t columns;
    int64_t inner;
    /* number of equal parts of the rows: the groups of a grouped convolution, else 1. Rows of part
     * p read the input channels p * columns .. (p + 1) * columns - 1. */
    int64_t parts;
    /* unit (model/units.h) of each row; NULL: all rows remain; borrowed */
    const int *row_unit;
    /* unit of each input channel; NULL: all columns remain; borrowed */
    const int *column_unit;
} ParamLayout;

int64_t units_channels_left(const Units *units, int node, const bool *removed)
{
    int64_t count = graph_channels(units->graph, node), remaining = 0;
    for (int64_t k = 0; k < count; ++k) remaining += !removed[units_of_channels(units, node)[k]];
    return remaining;
}

static ParamLayout layout_of(const Units *units, int param)
{
    const Param *p = &units->graph->param[param];
    const Node *node = &units->graph->node[p->node];
    LayerChannels channels = node->kind->channels;
    ParamLayout layout = {.rows = p->shape.dim[0], .columns = 1, .parts = 1};
    layout.inner = shape_count(p->shape) / (layout.rows > 0 ? layout.rows : 1);
    if (channels == CHANNELS_NEW || channels == CHANNELS_KEEP)
        layout.row_unit = units_of_channels(units, p->node);
    /* only the weight, spec.w[0], has columns; spec.w[1] is the bias */
    if (!node_has_own_width(node) || p->slot > 0) return layout;
    layout.column_unit = units_of_channels(units, node->in[0]);
    layout.columns = p->shape.dim[1];
    layout.inner /= layout.columns;
    layout.parts = node->spec.groups > 1 ? node->spec.groups : 1;
    return layout;
}

static bool row_remains(const ParamLayout *layout, int64_t row, const bool *removed)
{
    return !layout->row_unit || !removed[layout->row_unit[row]];
}

static bool column_remains(const ParamLayout *layout, int64_t row, int64_t column,
                           const bool *removed)
{
    int64_t part = row / (layout->rows / layout->parts);
    return !layout->column_unit || !removed[layout->column_unit[part * layout->columns + column]];
}

Shape units_param_shape(const Units *units, int param, const bool *removed)
{
    ParamLayout layout = layout_of(units, param);
    Shape shape = units->graph->param[param].shape;
    for (int64_t r = 0; r < layout.rows; ++r) shape.dim[0] -= !row_remains(&layout, r, removed);
    /* row 0 is enough, since every row loses the same number of columns */
    for (int64_t k = 0; layout.column_unit && k < layout.columns; ++k)
        shape.dim[1] -= !column_remains(&layout, 0, k, removed);
    return shape;
}

void units_param_gather(const Units *units, int param, const bool *removed, const float *before,
                        float *out)
{
    ParamLayout layout = layout_of(units, param);
    for (int64_t r = 0; r < layout.rows; ++r) {
        if (!row_remains(&layout, r, removed)) continue;
        const float *row = before + r * layout.columns * layout.inner;
        for (int64_t k = 0; k < layout.columns; ++k) {
            if (!column_remains(&layout, r, k, removed)) continue;
            memcpy(out, row + k * layout.inner, (size_t)layout.inner * sizeof *out);
            out += layout.inner;
        }
    }
}
