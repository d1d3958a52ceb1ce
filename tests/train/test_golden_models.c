/* Compares ten training steps of complete models, from given weights on given data, with PyTorch's
 * losses (tests/golden/models.txt, detector.txt and others): forward, backward, fusion, layouts and
 * SGD together. */
#include "golden_run.h"

enum { CLASSES = 10 };
/* Relative tolerance of the detector's tensors. PyTorch's own runs in single precision are up to
 * 2.5e-5 away from the numbers in the file (its line "# tensor"). */
static const double DETECTOR_NEAR = 1e-4;

typedef struct Images {
    int batch, channels, image;
} Images;

/* Opens a model. outputs: number of classes, or channels of the output fields. */
static Status run_open(Run *r, Golden *golden, Images images, int outputs,
                       const BackendTable *table, bool fuse)
{
    Shape shape = shape_of(4, images.batch, images.channels, images.image, images.image);
    TRY(one_rank_open(&r->one, golden_config(golden, "run: {seed: 1}"),
                      desc_plain(shape, DTYPE_F32), outputs, table, fuse ? &backend_cpu : NULL, 1));
    return run_start(r);
}

/* Sets running means to 0.1 noise and running variances to 1 + 0.1 noise. */
static void set_statistics(Run *r)
{
    const Graph *g = r->one.graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        float *at = executor_params(r->one.executor) + r->one.plan->param_offset[i];
        uint32_t name = golden_hash(p->name);
        for (int64_t k = 0; p->info.is_statistic && k < shape_count(p->shape); ++k)
            at[k] = golden_noise(name, (uint32_t)k) * 0.1f + (float)(p->info.init == INIT_ONE);
    }
    executor_params_changed(r->one.executor);
}

static void check_statistics(Run *r, const char *path, const char *name)
{
    const Graph *g = r->one.graph;
    double sum = 0, want = 0;
    char line[GOLDEN_LINE], word[64];
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "statistics %63s", word) == 1 && strcmp(word, name) == 0)
            want = strtod(strrchr(line, ' '), NULL);
    if (in) fclose(in);
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        const float *at = executor_params(r->one.executor) + r->one.plan->param_offset[i];
        for (int64_t k = 0; p->info.is_statistic && k < shape_count(p->shape); ++k)
            sum += (double)at[k] * (double)at[k];
    }
    CU_ASSERT(want > 0 && fabs(sum - want) < 1e-4 * want);
    if (!(fabs(sum - want) < 1e-4 * want)) printf("  %s: %.9g, PyTorch %.9g\n", name, sum, want);
}

/* ---- batches ---- */

static MicroBatch batch_new(Images images)
{
    const int64_t n = images.batch, pixels = (int64_t)images.channels * images.image * images.image;
    MicroBatch batch = {.rows = images.batch,
                        .x = mem_new((size_t)(n * pixels) * sizeof(float)),
                        .sample = mem_new((size_t)n * sizeof(int64_t))};
    for (int64_t i = 0; i < n * pixels; ++i)
        batch.x[i] = golden_noise(golden_hash("x"), (uint32_t)i) * 1.5f;
    for (int64_t i = 0; i < n; ++i) batch.sample[i] = i;
    return batch;
}

static void add_labels(MicroBatch *batch)
{
    batch->labels = mem_new((size_t)batch->rows * sizeof(int32_t));
    for (int64_t i = 0; i < batch->rows; ++i) batch->labels[i] = golden_draw('y', i, CLASSES);
}

/* Adds a target for each pixel and channel. */
static void add_fields(MicroBatch *batch, Images images)
{
    const int64_t count = (int64_t)images.batch * images.channels * images.image * images.image;
    batch->targets = mem_new((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; ++i)
        batch->targets[i] = golden_noise(golden_hash("t"), (uint32_t)i);
}

/* Adds i boxes to image i, and the counts of matches for each level. */
static void add_boxes(MicroBatch *batch, const Graph *graph)
{
    const OpSpec *loss = &graph->node[graph->loss_node].spec;
    const int count = batch->rows * (batch->rows - 1) / 2;
    batch->box_start = mem_new((size_t)(batch->rows + 1) * sizeof(int32_t));
    batch->box_row = mem_new((size_t)(count * BOX_NUMBERS) * sizeof(float));
    batch->matches = mem_new((size_t)(BOX_LEVELS + 1) * sizeof(int64_t));
    for (int i = 0; i < batch->rows; ++i) batch->box_start[i + 1] = batch->box_start[i] + i;
    for (int i = 0; i < count; ++i) {
        float *row = batch->box_row + (ptrdiff_t)i * BOX_NUMBERS;
        double at[4];
        for (uint32_t k = 0; k < 4; ++k) at[k] = (double)golden_noise(golden_hash_of('b', i), k);
        row[BOX_CLASS] = (float)golden_draw('c', i, CLASSES);
        row[BOX_X] = (float)(0.5 + 0.5 * at[0]);
        row[BOX_Y] = (float)(0.5 + 0.5 * at[1]);
        row[BOX_W] = (float)(0.55 + 0.45 * at[2]);
        row[BOX_H] = (float)(0.55 + 0.45 * at[3]);
    }
    for (int l = 0; l < loss->x_count; ++l) {
        const BoxGrid grid = box_grid(loss, l);
        batch->matches[l] = yolo_count(&grid, batch->box_row, count);
    }
    batch->matches[loss->x_count] = batch->rows;
}

static void batch_free(MicroBatch *batch)
{
    mem_free(&batch->x);
    mem_free(&batch->labels);
    mem_free(&batch->targets);
    mem_free(&batch->sample);
    mem_free(&batch->box_start);
    mem_free(&batch->box_row);
    mem_free(&batch->matches);
}

/* ---- cases ---- */

static void check_file(const char *path, const char *model, const BackendTable *table, bool fuse,
                       bool statistics)
{
    Golden golden;
    Run run = {0};
    int number[3];
    if (!golden_read(path, "model", model, 3, number, &golden)) return;
    Images images = {number[0], number[1], number[2]};
    MicroBatch batch = batch_new(images);
    Status status = run_open(&run, &golden, images, CLASSES, table, fuse);
    CHECK_OK(status);
    if (status == OK) add_labels(&batch);
    if (status == OK && statistics) set_statistics(&run);
    for (int s = 0; status == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&golden, s, train_once(&run, &batch, s), GOLDEN_FLOOR_CORNERS);
    if (status == OK && statistics) check_statistics(&run, path, model);
    run_close(&run);
    batch_free(&batch);
}

/* Checks a detector (tools/golden_detector.py): the losses, then parameters and running
 * statistics. */
static void check_detector(const BackendTable *table, bool fuse)
{
    static const char path[] = "tests/golden/detector.txt";
    Golden golden;
    Run run = {0};
    int number[3];
    if (!golden_read(path, "model", "yolov5n", 3, number, &golden)) return;
    Images images = {number[0], number[1], number[2]};
    MicroBatch batch = batch_new(images);
    Status status = run_open(&run, &golden, images, CLASSES, table, fuse);
    CHECK_OK(status);
    if (status == OK) add_boxes(&batch, run.one.graph);
    for (int s = 0; status == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&golden, s, train_once(&run, &batch, s), GOLDEN_FLOOR_SMOOTH);
    if (status == OK) golden_check_tensors(path, run.one.graph, run.one.executor, DETECTOR_NEAR);
    run_close(&run);
    batch_free(&batch);
}

/* Checks a model from fields to fields (tools/golden_unet.py). */
static void check_fields(const char *model, const BackendTable *table, bool fuse)
{
    Golden golden;
    Run run = {0};
    int number[3];
    if (!golden_read("tests/golden/unet.txt", "model", model, 3, number, &golden)) return;
    Images images = {number[0], number[1], number[2]};
    MicroBatch batch = batch_new(images);
    Status status = run_open(&run, &golden, images, images.channels, table, fuse);
    CHECK_OK(status);
    if (status == OK) add_fields(&batch, images);
    for (int s = 0; status == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&golden, s, train_once(&run, &batch, s), GOLDEN_FLOOR_SMOOTH);
    run_close(&run);
    batch_free(&batch);
}

static void check_all_fields(const BackendTable *table, bool fuse)
{
    check_fields("transpose", table, fuse);
    check_fields("nearest", table, fuse);
    check_fields("bilinear", table, fuse);
    check_fields("plain", table, fuse);
    check_fields("resnet", table, fuse);
    check_fields("attention", table, fuse);
    check_fields("film", table, fuse);
    check_fields("film_resnet", table, fuse);
    check_fields("columns", table, fuse);
    check_fields("columns_norm", table, fuse);
}

/* Checks a model of label fields (tools/golden_pixels.py), in which some pixels have no label. */
static void check_pixels(const char *model, int classes, const BackendTable *table, bool fuse)
{
    Golden golden;
    Run run = {0};
    int number[3];
    if (!golden_read("tests/golden/pixels.txt", "model", model, 3, number, &golden)) return;
    Images images = {number[0], number[1], number[2]};
    const int pixels = images.batch * images.image * images.image;
    MicroBatch batch = batch_new(images);
    Status status = run_open(&run, &golden, images, classes, table, fuse);
    CHECK_OK(status);
    batch.labels = mem_new((size_t)pixels * sizeof(int32_t));
    for (int i = 0; i < pixels; ++i) batch.labels[i] = golden_draw('y', i, classes + 1) - 1;
    for (int s = 0; status == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&golden, s, train_once(&run, &batch, s), GOLDEN_FLOOR_SMOOTH);
    run_close(&run);
    batch_free(&batch);
}

static void check_all_pixels(const BackendTable *table, bool fuse)
{
    check_pixels("softmax", 3, table, fuse);
    check_pixels("focal", 2, table, fuse);
    check_pixels("dice", 3, table, fuse);
    check_pixels("iou", 2, table, fuse);
}

static void pixels(void)
{
    check_all_pixels(&backend_cpu, true);
}
static void pixels_poison(void)
{
    check_all_pixels(&backend_poison, false);
}
static void fields(void)
{
    check_all_fields(&backend_cpu, true);
}
static void fields_poison(void)
{
    check_all_fields(&backend_poison, false);
}

static void check_model(const char *model, const BackendTable *table, bool fuse)
{
    check_file("tests/golden/models.txt", model, table, fuse, false);
}

/* Checks the three kinds of model.freeze_norm (tools/golden_freeze.py). */
static void check_frozen(const BackendTable *table, bool fuse)
{
    check_file("tests/golden/freeze.txt", "all", table, fuse, true);
    check_file("tests/golden/freeze.txt", "affine", table, fuse, true);
    check_file("tests/golden/freeze.txt", "none", table, fuse, true);
}

static void frozen(void)
{
    check_frozen(&backend_cpu, true);
}
static void frozen_unfused(void)
{
    check_frozen(&backend_cpu, false);
}
static void frozen_poison(void)
{
    check_frozen(&backend_poison, true);
}
static void detector(void)
{
    check_detector(&backend_cpu, true);
}
static void detector_unfused(void)
{
    check_detector(&backend_cpu, false);
}
static void detector_poison(void)
{
    check_detector(&backend_poison, true);
}
static void lenet(void)
{
    check_model("lenet", &backend_cpu, true);
}
static void lenet_unfused(void)
{
    check_model("lenet", &backend_cpu, false);
}
static void lenet_poison(void)
{
    check_model("lenet", &backend_poison, true);
}
static void resnet18(void)
{
    check_model("resnet18", &backend_cpu, true);
}
static void resnet18_unfused(void)
{
    check_model("resnet18", &backend_cpu, false);
}
static void mobilenet_v2(void)
{
    check_model("mobilenet_v2", &backend_cpu, true);
}
static void mobilenet_v2_unfused(void)
{
    check_model("mobilenet_v2", &backend_cpu, false);
}

TEST_MAIN("golden models", {"lenet", lenet}, {"lenet, nothing fused", lenet_unfused},
          {"lenet, poisoned", lenet_poison}, {"resnet18", resnet18},
          {"resnet18, nothing fused", resnet18_unfused}, {"mobilenet_v2", mobilenet_v2},
          {"mobilenet_v2, nothing fused", mobilenet_v2_unfused}, {"frozen layers", frozen},
          {"fields", fields}, {"fields, nothing fused, poisoned", fields_poison},
          {"labels of pixels", pixels},
          {"labels of pixels, nothing fused, poisoned", pixels_poison},
          {"frozen layers, nothing fused", frozen_unfused},
          {"frozen layers, poisoned", frozen_poison}, {"detector", detector},
          {"detector, nothing fused", detector_unfused}, {"detector, poisoned", detector_poison})
