/* A rig: the frame in which tests run a single operation, on any backend. The operation is planned
 * from a layer kind and attributes. Tests set and read its tensors in plain order, that is, in the
 * order of the shape, whatever layout in memory the backend has chosen.
 *
 * The rig also checks two promises that the planner relies on. Padding of a layout stays zero.
 * Backward does not read tensors that the operation does not need (Op.needs_x, Op.needs_y): the rig
 * fills them with NaN before backward. */
#ifndef WEFT_TESTS_OP_RIG_H
#define WEFT_TESTS_OP_RIG_H

#include "layers.h"
#include "tensor/op_list.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Rig {
    /* borrowed */
    Backend *backend;
    /* owned, as all memory that `run` points to */
    Op *op;
    /* spec of the planned operation, with the layouts that the backend has chosen */
    OpSpec spec;
    LayerSize size;
    LayerParam param[SPEC_PARAMS];
    /* arguments of the operation, in the backend's memory */
    OpRun run;
    /* true: if the operation allows it, y shares the memory of x[0], and dx[0] that of dy or x[0].
     * Set by the test before rig_open. */
    bool in_place;
    /* The arrays below are arguments of losses (sample: of dropout) in the backend's memory; owned;
     * NULL: not set. */
    int32_t *labels;
    float *targets, *target_weights;
    int64_t target_weight_count;
    int64_t *sample;
    BoxTargets boxes;
    /* bytes of the memory at boxes.box */
    size_t box_bytes;
} Rig;

/* Returns the index in memory, in layout d, of the element that has index i in plain order. */
static inline int64_t rig_at(Desc d, int64_t i)
{
    Shape s = d.flat ? d.image : d.shape;
    int64_t width = s.dim[s.ndim - 1];
    if (d.block <= 1) return i;
    if (s.ndim < 4) return i / width * desc_row_stride(d) + i % width;
    int64_t c_count = s.dim[1], h_count = s.dim[2], w_count = s.dim[3];
    int64_t w = i % w_count, h = i / w_count % h_count, c = i / (w_count * h_count) % c_count;
    int64_t n = i / (w_count * h_count * c_count), blocks = (c_count + d.block - 1) / d.block;
    return (((n * blocks + c / d.block) * h_count + h) * w_count + w) * d.block + c % d.block;
}

static inline void *rig_alloc(Rig *rig, size_t bytes)
{
    return bytes > 0 ? rig->backend->table->alloc(rig->backend, bytes) : NULL;
}

static inline void rig_release(Rig *rig, const void *memory, size_t bytes)
{
    void *p = (void *)(uintptr_t)memory;
    if (p && bytes > 0) rig->backend->table->release(rig->backend, p, bytes);
}

static inline void rig_copy(Rig *rig, void *to, const void *from, size_t bytes)
{
    Stream *stream = rig->backend->table->stream(rig->backend);
    rig->backend->table->copy(stream, to, from, bytes);
    rig->backend->table->sync(stream);
}

/* Copies a tensor from plain order to the backend's memory in layout d, with zeros as padding.
 * plain: 4 bytes for each element; floats are rounded if d is bf16 or fp16. */
static inline void rig_put(Rig *rig, Desc d, void *device, const void *plain)
{
    uint32_t *memory = mem_new(desc_bytes(d));
    for (int64_t i = 0; i < shape_count(d.shape); ++i) {
        if (d.dtype == DTYPE_BF16)
            ((Bf16 *)memory)[rig_at(d, i)] = bf16_of(((const float *)plain)[i]);
        else if (d.dtype == DTYPE_F16)
            ((F16 *)memory)[rig_at(d, i)] = f16_of(((const float *)plain)[i]);
        else
            memory[rig_at(d, i)] = ((const uint32_t *)plain)[i];
    }
    rig_copy(rig, device, memory, desc_bytes(d));
    mem_free(&memory);
}

/* Copies a tensor in layout d from the backend's memory to plain order, as floats. Checks that the
 * padding is zero. */
static inline void rig_get(Rig *rig, Desc d, const void *device, float *plain)
{
    int64_t n = shape_count(d.shape), stored = desc_elements(d), dirty = 0;
    float *memory = mem_new((size_t)stored * sizeof *memory);
    rig_copy(rig, memory, device, desc_bytes(d));
    for (int64_t i = stored - 1; i >= 0 && d.dtype == DTYPE_BF16; --i)
        memory[i] = bf16_value(((const Bf16 *)memory)[i]);
    for (int64_t i = stored - 1; i >= 0 && d.dtype == DTYPE_F16; --i)
        memory[i] = f16_value(((const F16 *)memory)[i]);
    for (int64_t i = 0; i < n; ++i) {
        int64_t at = rig_at(d, i);
        plain[i] = memory[at];
        memory[at] = 0;
    }
    for (int64_t i = 0; i < stored; ++i) dirty += memory[i] != 0;
    CU_ASSERT_EQUAL(dirty, 0);
    char text[64];
    if (dirty)
        printf("  of %s in blocks of %d, %lld numbers of the padding are not 0\n",
               shape_text(d.shape, text), d.block, (long long)dirty);
    mem_free(&memory);
}

/* Fills memory of the backend with NaN. */
static inline void rig_nan(Rig *rig, const void *device, size_t bytes)
{
    if (bytes == 0) return;
    unsigned char *memory = mem_new(bytes);
    memset(memory, 0xff, bytes);
    rig_copy(rig, (void *)(uintptr_t)device, memory, bytes);
    mem_free(&memory);
}

/* Fills the memory that the operation must write with NaN, except memory that it shares with an
 * input. Called before rig_forward. */
static inline void rig_poison(Rig *rig)
{
    const OpRun *run = &rig->run;
    const OpSpec *spec = &rig->spec;
    if (run->y != run->x[0]) rig_nan(rig, run->y, desc_bytes(spec->y));
    for (int i = 0; i < spec->x_count; ++i)
        if (run->dx[i] && run->dx[i] != run->dy && run->dx[i] != run->x[i])
            rig_nan(rig, run->dx[i], desc_bytes(spec->x[i]));
    for (int i = 0; i < spec->w_count; ++i)
        rig_nan(rig, run->dw[i], (size_t)rig->op->w_elements[i] * sizeof(float));
    rig_nan(rig, run->saved, rig->op->saved_bytes);
    rig_nan(rig, run->cache, rig->op->cache_bytes);
    rig_nan(rig, run->workspace, rig->op->workspace_bytes);
}

/* Sets attributes of the layer kind from a text such as "kernel=3,5 stride=2"; NULL: none. */
static inline Status rig_attrs(Rig *rig, const LayerKind *kind, const char *attrs)
{
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", attrs ? attrs : "");
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        if (!value) return fail(ERR_BUG, "'%s' is no key=value", word);
        *value = 0;
        TRY(layer_set_attr(kind, &rig->spec, &rig->size, word, value + 1));
    }
    return OK;
}

/* Returns the layer kind with this name. Also finds channel_sum, which is not in the list of
 * kinds. */
static inline const LayerKind *rig_kind(const char *name)
{
    return strcmp(name, layer_channel_sum.name) == 0 ? &layer_channel_sum : layer_kind(name);
}

/* Begins a rig: sets rig->spec to the kind's defaults and the attributes. The test then sets the
 * fields x, x_count, act and others of rig->spec. */
static inline Status rig_spec(Rig *rig, Backend *backend, const char *kind_name, const char *attrs)
{
    const LayerKind *kind = rig_kind(kind_name);
    if (!kind) return fail(ERR_BUG, "no layer kind %s", kind_name);
    bool in_place = rig->in_place;
    *rig = (Rig){.backend = backend, .in_place = in_place};
    TRY(layer_begin(kind, &rig->spec, &rig->size));
    return rig_attrs(rig, kind, attrs);
}

/* Makes the operation. If it prefers other layouts of its inputs, the inputs get those layouts, as
 * if the planner had inserted reorders. */
static inline Status rig_plan(Rig *rig)
{
    for (int tries = 0; tries < 4; ++tries) {
        Desc preferred[SPEC_INPUTS];
        bool granted = true;
        TRY(op_new(&rig->op, rig->backend, &rig->spec, preferred));
        for (int i = 0; i < rig->spec.x_count; ++i) {
            granted = granted && desc_equal(preferred[i], rig->spec.x[i]);
            rig->spec.x[i] = preferred[i];
        }
        if (granted) {
            rig->spec = rig->op->spec;
            return OK;
        }
        op_free(&rig->op);
    }
    return fail(ERR_BUG, "the operation never takes the layout it asks for");
}

/* Allocates the memory of rig->run. */
static inline void rig_memory(Rig *rig)
{
    const OpSpec *spec = &rig->spec;
    const Op *op = rig->op;
    OpRun *run = &rig->run;
    bool loss = op_is_loss(op_info(spec->kind));
    for (int i = 0; i < spec->x_count; ++i) run->x[i] = rig_alloc(rig, desc_bytes(spec->x[i]));
    bool shared = op->y_is_x || (rig->in_place && op->y_inplace);
    run->y = shared ? (void *)(uintptr_t)run->x[0] : rig_alloc(rig, desc_bytes(spec->y));
    if (!loss) run->dy = rig_alloc(rig, desc_bytes(spec->y));
    for (int i = 0; i < spec->x_count; ++i) {
        if (!spec->need_dx[i]) continue;
        bool alias = op->dx_is_dy[i] || (i == 0 && rig->in_place && op->dx_inplace);
        bool over = i == 0 && rig->in_place && op->dx_over_x;
        run->dx[i] = alias  ? run->dy
                     : over ? (void *)(uintptr_t)run->x[i]
                            : rig_alloc(rig, desc_bytes(spec->x[i]));
    }
    for (int i = 0; i < spec->w_count; ++i) {
        run->w[i] = rig_alloc(rig, (size_t)op->w_elements[i] * sizeof(float));
        run->dw[i] = rig_alloc(rig, (size_t)op->w_elements[i] * sizeof(float));
    }
    run->saved = rig_alloc(rig, op->saved_bytes);
    run->cache = rig_alloc(rig, op->cache_bytes);
    run->workspace = rig_alloc(rig, op->workspace_bytes);
    run->sample_count = (int)spec->x[0].shape.dim[0];
    run->loss_factor = 1;
    run->training = true;
}

/* Makes the operation and its memory. Called after rig_spec, when the shapes of the inputs are in
 * rig->spec.x. Release with rig_close. */
static inline Status rig_open(Rig *rig, const char *kind_name)
{
    for (int i = 0; i < rig->spec.x_count; ++i)
        rig->spec.need_dx[i] = rig->spec.x[i].dtype != DTYPE_I32;
    TRY(layer_infer_shapes(rig_kind(kind_name), &rig->spec, &rig->size, rig->param));
    TRY(rig_plan(rig));
    rig_memory(rig);
    return OK;
}

static inline void rig_close(Rig *rig)
{
    if (!rig->op) return;
    const OpSpec *spec = &rig->spec;
    OpRun *run = &rig->run;
    int64_t samples = spec->x[0].shape.dim[0];
    for (int i = 0; i < spec->x_count; ++i) {
        if (run->dx[i] != run->dy && run->dx[i] != run->x[i])
            rig_release(rig, run->dx[i], desc_bytes(spec->x[i]));
        if (run->x[i] != run->y) rig_release(rig, run->x[i], desc_bytes(spec->x[i]));
    }
    rig_release(rig, run->y, desc_bytes(spec->y));
    rig_release(rig, run->dy, desc_bytes(spec->y));
    for (int i = 0; i < spec->w_count; ++i) {
        rig_release(rig, run->w[i], (size_t)rig->op->w_elements[i] * sizeof(float));
        rig_release(rig, run->dw[i], (size_t)rig->op->w_elements[i] * sizeof(float));
    }
    rig_release(rig, run->saved, rig->op->saved_bytes);
    rig_release(rig, run->cache, rig->op->cache_bytes);
    rig_release(rig, run->workspace, rig->op->workspace_bytes);
    rig_release(rig, rig->labels, (size_t)(rig->labels ? loss_labels(spec) : 0) * sizeof(int32_t));
    rig_release(rig, rig->targets, (size_t)shape_count(spec->x[0].shape) * sizeof(float));
    rig_release(rig, rig->target_weights, (size_t)rig->target_weight_count * sizeof(float));
    rig_release(rig, rig->sample, (size_t)samples * sizeof(int64_t));
    rig_release(rig, rig->boxes.start, (size_t)(samples + 1) * sizeof(int32_t));
    rig_release(rig, rig->boxes.box, rig->box_bytes);
    rig_release(rig, rig->boxes.match_counts, (SPEC_INPUTS + 1) * sizeof(int64_t));
    op_free(&rig->op);
}

static inline void rig_set_x(Rig *rig, int i, const void *plain)
{
    rig_put(rig, rig->spec.x[i], (void *)(uintptr_t)rig->run.x[i], plain);
}

static inline void rig_set_w(Rig *rig, int i, const float *plain)
{
    size_t bytes = (size_t)rig->op->w_elements[i] * sizeof(float);
    float *stored = mem_new(bytes);
    op_pack(rig->op, i, plain, stored);
    rig_copy(rig, (void *)(uintptr_t)rig->run.w[i], stored, bytes);
    mem_free(&stored);
}

static inline void rig_set_labels(Rig *rig, const int32_t *labels, int64_t count)
{
    if (!rig->labels) rig->labels = rig_alloc(rig, (size_t)count * sizeof *labels);
    rig_copy(rig, rig->labels, labels, (size_t)count * sizeof *labels);
    rig->run.labels = rig->labels;
}

/* Sets the weights of a loss's targets. count: number of weights; the same in all calls. step:
 * value of OpRun.weights_stride. */
static inline void rig_set_target_weights(Rig *rig, const float *weights, int64_t count,
                                          int64_t step)
{
    if (!rig->target_weights) rig->target_weights = rig_alloc(rig, (size_t)count * sizeof *weights);
    rig->target_weight_count = count;
    rig_copy(rig, rig->target_weights, weights, (size_t)count * sizeof *weights);
    rig->run.target_weights = rig->target_weights;
    rig->run.weights_stride = step;
}

static inline void rig_set_targets(Rig *rig, const float *targets, int64_t count)
{
    if (!rig->targets) rig->targets = rig_alloc(rig, (size_t)count * sizeof *targets);
    rig_copy(rig, rig->targets, targets, (size_t)count * sizeof *targets);
    rig->run.targets = rig->targets;
}

/* Sets the true boxes of a detection loss. All arguments are in host memory. start: index of each
 * sample's first box, and then the number of all boxes, [samples + 1]. row: the boxes. numbers:
 * values of BoxTargets.match_counts, [levels + 1]. All calls must have the same number of boxes. */
static inline void rig_set_boxes(Rig *rig, const int32_t *start, const float *row,
                                 const int32_t *numbers)
{
    const int64_t samples = rig->spec.x[0].shape.dim[0];
    const int levels = rig->spec.x_count;
    const size_t starts = (size_t)(samples + 1) * sizeof *start;
    const size_t rows = (size_t)(start[samples] + 1) * BOX_NUMBERS * sizeof *row;
    int64_t match_counts[SPEC_INPUTS + 1];
    float *copy = mem_new(rows);
    for (int i = 0; i <= levels; ++i) match_counts[i] = numbers[i];
    memcpy(copy, row, rows - BOX_NUMBERS * sizeof *row);
    BoxTargets *b = &rig->boxes;
    if (!b->start) b->start = rig_alloc(rig, starts);
    if (!b->box) b->box = rig_alloc(rig, rows);
    if (!b->match_counts) b->match_counts = rig_alloc(rig, sizeof match_counts);
    rig->box_bytes = rows;
    rig_copy(rig, (void *)(uintptr_t)b->start, start, starts);
    rig_copy(rig, (void *)(uintptr_t)b->box, copy, rows);
    rig_copy(rig, (void *)(uintptr_t)b->match_counts, match_counts, sizeof match_counts);
    rig->run.boxes = *b;
    mem_free(&copy);
}

static inline void rig_set_samples(Rig *rig, const int64_t *sample, int64_t count)
{
    if (!rig->sample) rig->sample = rig_alloc(rig, (size_t)count * sizeof *sample);
    rig_copy(rig, rig->sample, sample, (size_t)count * sizeof *sample);
    rig->run.sample = rig->sample;
}

static inline void rig_forward(Rig *rig)
{
    op_refresh(rig->op, &rig->run);
    op_forward(rig->op, &rig->run);
}

static inline void rig_get_y(Rig *rig, float *plain)
{
    rig_get(rig, rig->spec.y, rig->run.y, plain);
}

/* Runs backward, after tensors that it must not read have been filled with NaN. dy: gradient of the
 * output in plain order; NULL for a loss. */
static inline void rig_backward(Rig *rig, const float *dy)
{
    const Op *op = rig->op;
    OpRun *run = &rig->run;
    for (int i = 0; i < rig->spec.x_count; ++i)
        if (!op->needs_x[i] && (run->x[i] != run->y || !op->needs_y))
            rig_nan(rig, run->x[i], desc_bytes(rig->spec.x[i]));
    if (!op->needs_y && (run->y != run->x[0] || !op->needs_x[0]))
        rig_nan(rig, run->y, desc_bytes(rig->spec.y));
    if (dy) rig_put(rig, rig->spec.y, run->dy, dy);
    op_backward_begin(rig->op, run);
    op_backward_weight(rig->op, run);
    op_backward_data(rig->op, run);
}

static inline void rig_get_dx(Rig *rig, int i, float *plain)
{
    rig_get(rig, rig->spec.x[i], rig->run.dx[i], plain);
}

static inline void rig_get_dw(Rig *rig, int i, float *plain)
{
    size_t bytes = (size_t)rig->op->w_elements[i] * sizeof(float);
    float *stored = mem_new(bytes);
    rig_copy(rig, stored, rig->run.dw[i], bytes);
    op_unpack(rig->op, i, stored, plain);
    mem_free(&stored);
}

/* Returns number i of a sequence that a test and the script of its golden values both compute. The
 * number is u * scale + shift, with u in [-1, 1), and u is exact in fp32. */
static inline float rig_number(uint32_t seed, int64_t i, float scale, float shift)
{
    uint32_t u = ((uint32_t)i + 1) * 2654435761u + seed * 2246822519u;
    u ^= u >> 15;
    u *= 2246822519u;
    u ^= u >> 13;
    return ((float)(u >> 16) / 32768.0f - 1.0f) * scale + shift;
}

/* Returns the largest |a - b| / max(1, |b|) over n elements, or INFINITY if a value is NaN. */
static inline double rig_difference(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
        double d = fabs((double)a[i] - (double)b[i]) / fmax(1, fabs((double)b[i]));
        if (!(d <= worst)) worst = isnan(d) ? INFINITY : d;
    }
    return worst;
}

#endif
