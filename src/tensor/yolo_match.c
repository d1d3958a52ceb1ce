/* The functions of boxes.h: the boxes that a detector's cells and anchors predict, and the matches
 * of target boxes with cells and anchors. */
#include "yolo_terms.h"

int64_t box_classes(const OpSpec *loss)
{
    const int anchors = loss->anchors.count / loss->x_count;
    return loss->x[0].shape.dim[1] / anchors - BOX_CHANNELS;
}

double yolo_probability(double logit)
{
    return yolo_sigmoid(logit);
}

void yolo_predict(const float logit[4], const double anchor[2], double box[4])
{
    yolo_decode(logit, anchor, box, NULL);
}

BoxGrid box_grid(const OpSpec *loss, int level)
{
    const int64_t *x = loss->x[level].shape.dim;
    BoxGrid g = {
        .rows = (int)x[2], .columns = (int)x[3], .anchors = loss->anchors.count / loss->x_count};
    for (int a = 0; a < g.anchors; ++a) {
        const float *side = loss->anchors.side[level * g.anchors + a];
        g.anchor[a][0] = (double)side[0] * g.columns / loss->image[1];
        g.anchor[a][1] = (double)side[1] * g.rows / loss->image[0];
    }
    return g;
}

int yolo_match(const BoxGrid *grid, const float box[BOX_NUMBERS], BoxMatch match[BOX_MATCHES])
{
    int count = 0;
    for (int a = 0; a < grid->anchors; ++a) {
        if (!yolo_sides_match(grid, box, a)) continue;
        for (int slot = 0; slot < YOLO_SLOTS; ++slot)
            count += yolo_match_slot(grid, box, a, slot, &match[count]);
    }
    return count;
}

int64_t yolo_count(const BoxGrid *grid, const float *box, int64_t count)
{
    BoxMatch match[BOX_MATCHES];
    int64_t matches = 0;
    for (int64_t i = 0; i < count; ++i) matches += yolo_match(grid, box + i * BOX_NUMBERS, match);
    return matches;
}
