/* The part of a parameter that remains after pruning: rows by the layer's output channels, columns
 * by the channels that it reads. */
#include "build.h"
#include "model/units.h"

#include <string.h>

/* Layout of a parameter: rows of `columns` columns of `inner` values. Rows form `parts` equal
 * parts, each of which reads its own part of the input channels. */
typedef struct Cut {
    int64_t rows, columns, inner, parts;
    /* unit of each row and column, NULL: all remain; borrowed */
    const int *row, *column;
} Cut;

int64_t units_left(const Units *c, int node, const bool *removed)
{
    int64_t count = graph_channels(c->graph, node), left = 0;
    for (int64_t k = 0; k < count; ++k) left += !removed[c->unit[node + 1][k]];
    return left;
}

static Cut cut_of(const Units *c, int param)
{
    const Param *p = &c->graph->param[param];
    const Node *node = &c->graph->node[p->node];
    LayerChannels how = node->kind->channels;
    Cut cut = {.rows = p->shape.dim[0], .columns = 1, .parts = 1};
    cut.inner = shape_count(p->shape) / (cut.rows > 0 ? cut.rows : 1);
    if (how == CHANNELS_OPEN || how == CHANNELS_KEEP) cut.row = c->unit[p->node + 1];
    if (!node_opens(node) || p->slot > 0) return cut;
    cut.column = c->unit[node->in[0] + 1];
    cut.columns = p->shape.dim[1];
    cut.inner /= cut.columns;
    cut.parts = node->spec.groups > 1 ? node->spec.groups : 1;
    return cut;
}

static bool row_stays(const Cut *cut, int64_t row, const bool *removed)
{
    return !cut->row || !removed[cut->row[row]];
}

static bool column_stays(const Cut *cut, int64_t row, int64_t column, const bool *removed)
{
    int64_t part = row / (cut->rows / cut->parts);
    return !cut->column || !removed[cut->column[part * cut->columns + column]];
}

Shape units_shape(const Units *c, int param, const bool *removed)
{
    Cut cut = cut_of(c, param);
    Shape shape = c->graph->param[param].shape;
    for (int64_t r = 0; r < cut.rows; ++r) shape.dim[0] -= !row_stays(&cut, r, removed);
    for (int64_t k = 0; cut.column && k < cut.columns; ++k)
        shape.dim[1] -= !column_stays(&cut, 0, k, removed);
    return shape;
}

void units_gather(const Units *c, int param, const bool *removed, const float *plain, float *out)
{
    Cut cut = cut_of(c, param);
    for (int64_t r = 0; r < cut.rows; ++r) {
        if (!row_stays(&cut, r, removed)) continue;
        const float *row = plain + r * cut.columns * cut.inner;
        for (int64_t k = 0; k < cut.columns; ++k) {
            if (!column_stays(&cut, r, k, removed)) continue;
            memcpy(out, row + k * cut.inner, (size_t)cut.inner * sizeof *out);
            out += cut.inner;
        }
    }
}
