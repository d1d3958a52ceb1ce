/* Padding of images: the shape of the padded image, and the row or column of the image that each of
 * its rows or columns copies. */
#include "places.h"

static const char *const sides[2][2] = {{"above", "below"}, {"left", "right"}};

/* Checks the padding of the height (d = 0) or the width (d = 1) of an image, which is `size`
 * pixels. name: begins the error's text. */
static Status check_edges(const Padding *p, const char *name, int d, int64_t size)
{
    static const char *const dims[2] = {"height", "width"};
    const PadMode mode = p->mode[d];
    const int *edge = &p->edge[2 * d];
    for (int k = 0; k < 2; ++k) {
        if (edge[k] < 0 && mode != PAD_ZERO)
            return fail(ERR_CONFIG, "%s: %d %s cuts off, which needs mode: zero", name, edge[k],
                        sides[d][k]);
        const int64_t most = mode == PAD_REFLECT ? size - 1 : size;
        if ((mode == PAD_REFLECT || mode == PAD_CIRCULAR) && edge[k] > most)
            return fail(ERR_CONFIG, "%s: mode %s with %d %s needs a %s of at least %d, got %lld",
                        name, mode == PAD_REFLECT ? "reflect" : "circular", edge[k], sides[d][k],
                        dims[d], edge[k] + (mode == PAD_REFLECT), (long long)size);
    }
    if (size + edge[0] + edge[1] < 1)
        return fail(ERR_CONFIG, "%s: %d %s and %d %s leave nothing of a %s of %lld", name, edge[0],
                    sides[d][0], edge[1], sides[d][1], dims[d], (long long)size);
    return OK;
}

Status padding_shape(const OpSpec *spec, const char *name, Shape *y)
{
    const Padding *p = &spec->padding;
    *y = spec->x[0].shape;
    for (int d = 0; d < 2; ++d) {
        TRY(check_edges(p, name, d, y->dim[2 + d]));
        y->dim[2 + d] += p->edge[2 * d] + p->edge[2 * d + 1];
    }
    return OK;
}

int64_t padding_source(const OpSpec *spec, int d, int64_t at)
{
    return pad_source(spec->padding.mode[d], spec->padding.edge[2 * d], spec->x[0].shape.dim[2 + d],
                      at);
}
