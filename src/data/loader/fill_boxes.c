/* Fills the boxes of micro-batches from the scenes of their samples. Counts the matches
 * (BoxTargets.match_counts) of the global batch or, in an evaluation, of the whole set. Matches
 * depend only on labels, on the configuration and on (seed, epoch, sample). So each rank counts the
 * matches of the samples of all replicas, and no message is needed. */
#include "fill.h"

#include <string.h>

/* Writes the boxes of a sample's scene to `row`, BOX_NUMBERS floats for each box, and returns the
 * number of boxes. */
static int64_t write_rows(const Fill *f, int64_t epoch, int64_t sample, float *row)
{
    const SceneSource source = {&f->set, f->config, &f->boxes};
    const Scene scene = scene_choose(&source, f->plan.training, epoch, sample);
    return scene_rows(&source, &scene, row);
}

/* Counts the matches of the samples at positions first to end - 1 of an epoch. Adds them to
 * f->matches, and the number of samples to its last entry. */
static void count_matches(const Fill *f, int64_t epoch, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; ++i) {
        const int64_t n = write_rows(f, epoch, fill_sample_at(f, epoch, i), f->scratch_boxes);
        for (int l = 0; l < f->plan.levels; ++l)
            f->matches[l] += yolo_count(&f->plan.grid[l], f->scratch_boxes, n);
        ++f->matches[f->plan.levels];
    }
}

Status fill_boxes_init(Fill *fill)
{
    Fill *f = fill;
    if (f->plan.skips_inputs && f->plan.skips_labels) return OK;
    TRY(data_boxes_read(&f->boxes, &f->set));
    f->box_most = data_box_most(&f->set, f->config, f->plan.training);
    data_boxes_map_classes(&f->boxes, &f->set);
    if (f->plan.skips_labels || f->plan.levels == 0) return OK;
    f->scratch_boxes = mem_new((size_t)(f->box_most * BOX_NUMBERS + 1) * sizeof *f->scratch_boxes);
    f->matches = mem_new((size_t)(f->plan.levels + 1) * sizeof *f->matches);
    f->matches_step = -1;
    if (!f->plan.training) count_matches(f, 0, 0, f->set.samples);
    return OK;
}

void fill_boxes_fini(Fill *fill)
{
    data_boxes_free(&fill->boxes);
    mem_free(&fill->scratch_boxes);
    mem_free(&fill->matches);
}

void fill_matches(Fill *fill, MicroBatch *batch)
{
    Fill *f = fill;
    const size_t bytes = (size_t)(f->plan.levels + 1) * sizeof *f->matches;
    const bool known = f->matches_epoch == batch->epoch && f->matches_step == batch->step;
    if (f->plan.training && !known) {
        const int64_t first = fill_first_position(f, batch->epoch, batch->step);
        const int64_t end = first + f->plan.batch;
        memset(f->matches, 0, bytes);
        count_matches(f, batch->epoch, first, end < f->set.samples ? end : f->set.samples);
        f->matches_epoch = batch->epoch;
        f->matches_step = batch->step;
    }
    memcpy(batch->matches, f->matches, bytes);
}

void fill_boxes(const Fill *fill, MicroBatch *batch, int64_t r)
{
    const int64_t n = write_rows(fill, batch->epoch, batch->sample[r],
                                 batch->box_row + r * fill->box_most * BOX_NUMBERS);
    batch->box_start[r + 1] = (int32_t)n;
}

void fill_join_boxes(const Fill *fill, MicroBatch *batch)
{
    int32_t at = 0;
    batch->box_start[0] = 0;
    for (int64_t r = 0; r < fill->plan.micro_batch; ++r) {
        const int32_t n = batch->box_start[r + 1];
        if (n > 0 && at != r * fill->box_most)
            memmove(batch->box_row + (int64_t)at * BOX_NUMBERS,
                    batch->box_row + r * fill->box_most * BOX_NUMBERS,
                    (size_t)n * BOX_NUMBERS * sizeof *batch->box_row);
        batch->box_start[r + 1] = at += n;
    }
}

int64_t data_box_most(const DataSet *set, const Config *config, bool training)
{
    return set->box_most * (training && config->data.mosaic > 0 ? SCENE_PARTS : 1);
}

size_t data_box_bytes(const DataSet *set, const Config *config, int64_t samples)
{
    const size_t most = (size_t)data_box_most(set, config, true);
    if (!data_has_boxes(set)) return 0;
    return (size_t)samples * (sizeof(int32_t) + most * BOX_NUMBERS * sizeof(float)) +
           sizeof(int32_t) + (BOX_LEVELS + 1) * sizeof(int64_t);
}
