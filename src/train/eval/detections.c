/* Evaluates the boxes of a detector. Each rank that collects outputs finds the boxes of its
 * pictures and matches them with the truths; rank 0 gathers the matches, which are small, and
 * computes COCO's numbers. A match depends on one picture, and COCO's numbers do not depend on the
 * order of pictures. The numbers are therefore the same on every grid. */
#include "detections.h"

#include "scores.h"

#include <string.h>

/* Options with which YOLOv5 v7.0 evaluates on COCO. */
static const DetectOptions EVALUATION = {
    .score = 0.001,
    .nms = {.iou = 0.65, .candidates = 30000, .boxes_max = 300},
    .all_classes = true};

void detections_loss_parts(double loss, const double column[2], double part[LOSS_PARTS])
{
    const double rest = loss - column[0] - column[1];
    part[LOSS_PART_BOX] = column[0];
    part[LOSS_PART_OBJECT] = column[1];
    /* with a single class the loss has no class part, and the rest is only a rounding error */
    part[LOSS_PART_CLASS] = rest < 1e-6 * loss ? 0 : rest;
}

Status detections_init(Detections *detections, const Trainer *t, const DataSet *set, bool keeps)
{
    Detections *d = detections;
    *d = (Detections){.trainer = t, .set = set, .keeps = keeps};
    if (loss_info(t->config)->reads != LOSS_READS_BOXES || !train_collects_outputs(t)) return OK;
    TRY(data_boxes_read(&d->boxes, set));
    data_boxes_map_classes(&d->boxes, set);
    d->eval = coco_eval_new((int)t->graph->classes);
    d->found = detector_boxes_new(t);
    int64_t most = 0;
    for (int64_t i = 0; i < d->boxes.pictures; ++i) {
        const int64_t n = d->boxes.start[i + 1] - d->boxes.start[i];
        if (n > most) most = n;
    }
    d->truth = mem_new((size_t)(most + 1) * sizeof *d->truth);
    return OK;
}

void detections_fini(Detections *detections)
{
    Detections *d = detections;
    coco_eval_free(&d->eval);
    data_boxes_free(&d->boxes);
    detector_boxes_free(&d->found);
    mem_free(&d->kept);
    mem_free(&d->truth);
    mem_free(&d->error.message);
}

/* Writes the truths of a picture to d->truth, and returns their number. */
static int64_t truths_of(const Detections *d, int64_t picture)
{
    const DataBoxes *b = &d->boxes;
    const int64_t first = b->start[picture], count = b->start[picture + 1] - first;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t k = first + i;
        d->truth[i] = (TruthBox){.area = b->area[k],
                                 .id = b->id[k],
                                 .image = picture,
                                 .category = b->class[k],
                                 .crowd = b->crowd[k]};
        memcpy(d->truth[i].box, b->box + 4 * k, sizeof d->truth[i].box);
    }
    return count;
}

static void keep(Detections *d, const DetectedBox *box, int64_t count)
{
    if (d->kept_count + count > d->kept_capacity) {
        d->kept_capacity = 2 * (d->kept_count + count);
        d->kept = mem_resize(d->kept, (size_t)d->kept_capacity * sizeof *d->kept);
    }
    memcpy(d->kept + d->kept_count, box, (size_t)count * sizeof *box);
    d->kept_count += count;
}

static Status add_picture(Detections *d, int64_t row, int64_t picture)
{
    const int32_t *size = d->boxes.size + 2 * picture;
    const BoxFit fit = data_box_fit(d->set, size[1], size[0]);
    DetectedBox *box;
    int64_t count;
    TRY(detector_boxes_find(d->found, row, &EVALUATION, &box, &count));
    for (int64_t i = 0; i < count; ++i) {
        box[i].image = picture;
        detect_to_picture(&box[i], &fit, size[1], size[0]);
    }
    if (d->keeps) keep(d, box, count);
    return coco_eval_add_image(d->eval, picture, d->truth, truths_of(d, picture), box, count);
}

void detections_add(Detections *detections, const MicroBatch *batch)
{
    Detections *d = detections;
    for (int r = 0; d->eval && d->error.status == OK && r < batch->rows; ++r)
        error_keep(&d->error, add_picture(d, r, batch->sample[r]));
}

/* Gathers the matches of all ranks on rank 0, and sets line->coco on every rank. each: on rank 0
 * receives COCO's numbers, including those of each class; may be NULL. Collective. */
static Status join(const Detections *d, const Trainer *t, EvalLine *line, CocoResult *each)
{
    const World *world = t->world;
    const int64_t classes = t->graph->classes, *counted = NULL;
    int64_t count = 0;
    const CocoMatch *mine = d->eval ? coco_eval_matches(d->eval, &count, &counted) : NULL;
    int64_t *truths = mem_new((size_t)(classes * COCO_AREAS) * sizeof *truths);
    if (counted) memcpy(truths, counted, (size_t)(classes * COCO_AREAS) * sizeof *truths);
    size_t bytes = (size_t)count * sizeof *mine;
    CocoMatch *all = gather_arrays(world, mine, &bytes);
    world_allreduce(world, truths, classes * COCO_AREAS);
    Status st = OK;
    if (world->rank == 0) {
        CocoEval *eval = coco_eval_new((int)classes);
        CocoResult result = {0};
        coco_eval_add_matches(eval, all, (int64_t)(bytes / sizeof *all), truths);
        st = coco_eval_finish(eval, t->backend->options.threads, &result);
        if (st == OK) memcpy(line->coco, result.number, sizeof line->coco);
        if (st == OK && each)
            *each = result;
        else
            coco_result_fini(&result);
        coco_eval_free(&eval);
    }
    mem_free(&all);
    mem_free(&truths);
    TRY(status_agree(world, st));
    world_bcast(world, line->coco, sizeof line->coco, 0);
    return OK;
}

/* Returns the boxes sorted by picture; boxes of the same picture keep their order. Owner: the
 * caller. */
static DetectedBox *sort_by_picture(const DetectedBox *box, int64_t count, int64_t pictures)
{
    DetectedBox *sorted = mem_new((size_t)(count + 1) * sizeof *sorted);
    int64_t *next = mem_new((size_t)(pictures + 1) * sizeof *next);
    for (int64_t i = 0; i < count; ++i) ++next[box[i].image + 1];
    for (int64_t i = 0; i < pictures; ++i) next[i + 1] += next[i];
    for (int64_t i = 0; i < count; ++i) sorted[next[box[i].image]++] = box[i];
    mem_free(&next);
    return sorted;
}

/* Writes the boxes of all ranks to the file `path`, picture after picture; the boxes of a picture
 * are in the order of descending score. Rank 0 reads the set's labels again for the ids of the
 * file. Collective. */
static Status write_results(const Detections *d, const Trainer *t, const char *path)
{
    size_t bytes = (size_t)d->kept_count * sizeof *d->kept;
    DetectedBox *all = gather_arrays(t->world, d->kept, &bytes);
    DataBoxes labels = {0};
    Status st = OK;
    if (t->world->rank == 0) {
        const int64_t count = (int64_t)(bytes / sizeof *all);
        DetectedBox *sorted = sort_by_picture(all, count, d->set->samples);
        st = data_boxes_read(&labels, d->set);
        if (st == OK)
            st = coco_results_write(path, sorted, count, labels.image_id, labels.category_id);
        data_boxes_free(&labels);
        mem_free(&sorted);
    }
    mem_free(&all);
    return status_agree(t->world, st);
}

Status detections_line(Detections *detections, const Trainer *t, EvalLine *line,
                       const EvalExtras *extras)
{
    Detections *d = detections;
    line->has_boxes = loss_info(t->config)->reads == LOSS_READS_BOXES;
    if (!line->has_boxes) return OK;
    TRY(status_agree(t->world, error_report(&d->error)));
    TRY(join(d, t, line, extras->coco));
    return extras->results ? write_results(d, t, extras->results) : OK;
}
