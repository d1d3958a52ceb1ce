/* Finds boxes in the grids that a detector's network computes (YOLOv5 v6 and v7): decodes the cells
 * whose score is high enough, and suppresses all but the best of overlapping boxes. */
#include "../trainer.h"

struct DetectorBoxes {
    /* borrowed */
    const Trainer *trainer;
    /* number of grids */
    int levels;
    /* the grids of the network's outputs */
    BoxGrid grid[BOX_LEVELS];
    /* boxes of one picture, [capacity]; owned */
    DetectedBox *box;
    /* number of boxes */
    int64_t count;
    /* number of boxes for which `box` has space */
    int64_t capacity;
};

DetectorBoxes *detector_boxes_new(const Trainer *trainer)
{
    DetectorBoxes *d = mem_new(sizeof *d);
    d->trainer = trainer;
    d->levels = train_box_grids(trainer, d->grid);
    return d;
}

void detector_boxes_free(DetectorBoxes **boxes)
{
    if (!*boxes) return;
    mem_free(&(*boxes)->box);
    mem_free(boxes);
}

static void add_box(DetectorBoxes *d, const double box[4], double score, int64_t class)
{
    if (d->count == d->capacity) {
        d->capacity = d->capacity ? 2 * d->capacity : 1024;
        d->box = mem_resize(d->box, (size_t)d->capacity * sizeof *d->box);
    }
    d->box[d->count++] = (DetectedBox){
        .box = {box[0], box[1], box[2], box[3]}, .score = score, .category = (int32_t) class};
}

/* One cell of a grid, for one anchor. */
typedef struct Cell {
    /* borrowed */
    const BoxGrid *grid;
    /* logits of the cell: that of channel c is logit[c * stride]; borrowed */
    const float *logit;
    int64_t stride, classes;
    /* size of a cell in pixels of the model's input */
    double width, height;
    int anchor, column, row;
} Cell;

static void decode_box(const Cell *c, double box[4])
{
    const float logit[] = {c->logit[0], c->logit[c->stride], c->logit[2 * c->stride],
                           c->logit[3 * c->stride]};
    double cells[4];
    yolo_predict(logit, c->grid->anchor[c->anchor], cells);
    box[2] = cells[2] * c->width;
    box[3] = cells[3] * c->height;
    box[0] = (cells[0] + c->column) * c->width - box[2] / 2;
    box[1] = (cells[1] + c->row) * c->height - box[3] / 2;
}

/* Adds the boxes of a cell whose score is above o->score: one for each class, or only that of the
 * best class. The score is the product of two probabilities: that of an object, and that of the
 * class. */
static void add_cell(DetectorBoxes *d, const Cell *c, const DetectOptions *o)
{
    const float *class = c->logit + BOX_CHANNELS * c->stride;
    const double object = yolo_probability((double)c->logit[(BOX_CHANNELS - 1) * c->stride]);
    double box[4], best = -1;
    int64_t best_class = 0;
    if (object <= o->score) return;
    decode_box(c, box);
    for (int64_t k = 0; k < c->classes; ++k) {
        const double score = object * yolo_probability((double)class[k * c->stride]);
        if (o->all_classes && score > o->score) add_box(d, box, score, k);
        if (score > best) best = score, best_class = k;
    }
    if (!o->all_classes && best > o->score) add_box(d, box, best, best_class);
}

static Status add_level(DetectorBoxes *d, int level, int64_t row, const DetectOptions *o)
{
    const Trainer *t = d->trainer;
    const BoxGrid *g = &d->grid[level];
    const OpSpec *loss = &t->graph->node[t->graph->loss_node].spec;
    const int64_t cells = (int64_t)g->columns * g->rows, classes = t->graph->classes;
    const int64_t channels = g->anchors * (BOX_CHANNELS + classes);
    const float *logit = executor_logits(t->executor, level) + row * channels * cells;
    TRY(logits_check(logit, channels * cells));
    Cell c = {.grid = g,
              .stride = cells,
              .classes = classes,
              .width = (double)loss->image[1] / g->columns,
              .height = (double)loss->image[0] / g->rows};
    for (c.anchor = 0; c.anchor < g->anchors; ++c.anchor)
        for (c.row = 0; c.row < g->rows; ++c.row)
            for (c.column = 0; c.column < g->columns; ++c.column) {
                c.logit = logit + c.anchor * (BOX_CHANNELS + classes) * cells + c.row * g->columns +
                          c.column;
                add_cell(d, &c, o);
            }
    return OK;
}

Status detector_boxes_find(DetectorBoxes *boxes, int64_t row, const DetectOptions *options,
                           DetectedBox **box, int64_t *count)
{
    DetectorBoxes *d = boxes;
    d->count = 0;
    for (int l = 0; l < d->levels; ++l) TRY(add_level(d, l, row, options));
    TRY(nms(d->box, d->count, &options->nms, count));
    *box = d->box;
    return OK;
}

static double clip(double v, double high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

void detect_to_picture(DetectedBox *box, const BoxFit *fit, int width, int height)
{
    const double right = clip((box->box[0] + box->box[2] - fit->left) / fit->scale[0], width);
    const double bottom = clip((box->box[1] + box->box[3] - fit->top) / fit->scale[1], height);
    box->box[0] = clip((box->box[0] - fit->left) / fit->scale[0], width);
    box->box[1] = clip((box->box[1] - fit->top) / fit->scale[1], height);
    box->box[2] = right - box->box[0];
    box->box[3] = bottom - box->box[1];
}
