/* pixel_shuffle: scale x scale channels become scale x scale pixels of one channel. An item of
 * work_run is a row of one channel group of one sample of y. x is plain, channels-last, or in
 * blocks without padding, so backward writes all of dx. */
#include "../view.h"

static Status shuffle_check(const OpSpec *s)
{
    char a[64], b[64];
    const int64_t r = s->scale;
    const Shape x = s->x[0].shape, y = s->y.shape;
    if (r > 0 && x.ndim == 4 && x.dim[1] % (r * r) == 0 &&
        shape_equal(y, shape_of(4, x.dim[0], x.dim[1] / (r * r), x.dim[2] * r, x.dim[3] * r)))
        return OK;
    return fail(ERR_CONFIG, "pixel_shuffle: input %s, output %s and scale %d do not match",
                shape_text(x, a), shape_text(y, b), s->scale);
}

/* y[n][c][h r + i][w r + j] = x[n][c r^2 + i r + j][h][w] with r = scale (Shi et al. 2016,
 * "Real-time single image and video super-resolution", section 3.2). */
const OpInfo info_pixel_shuffle = {
    .name = "pixel_shuffle",
    .check = shuffle_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y gets the layout of x: plain, channels-last, or in blocks. But if x is in blocks and y has fewer
 * channels than a block, y is plain. */
static Status shuffle_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    const int64_t channels = s->x[0].shape.dim[1], out = s->y.shape.dim[1];
    preferred[0] = in_precision(op, s->x[0]);
    if (channels % preferred[0].block) preferred[0] = layout_plain(preferred[0]);
    const int block = preferred[0].block;
    s->y.dtype = preferred[0].dtype;
    s->y.block = out >= block ? block : block == channels ? (int)out : 1;
    return OK;
}

typedef struct ShuffleTask {
    View x, y;
    DType type;
    /* OpSpec.scale */
    int64_t scale;
    /* rows and columns of x */
    int64_t h, w;
    /* x, or in backward dx */
    void *x_data;
    /* y, or in backward dy */
    void *y_data;
    /* true: backward, which writes dx; false: forward, which writes y */
    bool back;
} ShuffleTask;

/* Defines a function that copies n elements, which are `step` elements apart, to places that are
 * to_step elements apart. */
#define COPY(Type)                                                                                 \
    static void copy_##Type(Type *to, int64_t to_step, const Type *from, int64_t step, int64_t n)  \
    {                                                                                              \
        for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * step];                          \
    }
COPY(uint32_t)
COPY(uint16_t)

/* Works on the pixels j, j + scale, j + 2 scale, ... of row `row` of channel c of sample n of y: in
 * forward, copies them from x to y; in backward, copies their gradients from dy to dx. */
static void copy_column(const ShuffleTask *t, int64_t n, int64_t c, int64_t row, int64_t j)
{
    const View *x = &t->x, *y = &t->y;
    const int64_t r = t->scale, from_c = (c * r + row % r) * r + j;
    const int64_t x_row = (n * x->groups + from_c / x->block) * t->h + row / r;
    const int64_t y_row = (n * y->groups + c / y->block) * t->h * r + row;
    const int64_t x_at = x_row * t->w * x->block + from_c % x->block, y_step = r * y->block;
    const int64_t y_at = (y_row * t->w * r + j) * y->block + c % y->block;
    void *a = element_out(t->x_data, x_at, t->type), *b = element_out(t->y_data, y_at, t->type);
    if (dtype_bytes(t->type) == sizeof(uint32_t)) {
        if (t->back)
            copy_uint32_t(a, x->block, b, y_step, t->w);
        else
            copy_uint32_t(b, y_step, a, x->block, t->w);
    } else {
        if (t->back)
            copy_uint16_t(a, x->block, b, y_step, t->w);
        else
            copy_uint16_t(b, y_step, a, x->block, t->w);
    }
}

static void shuffle_body(const void *task, int64_t begin, int64_t end)
{
    const ShuffleTask *t = task;
    const View *y = &t->y;
    const int64_t rows = t->h * t->scale;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t group = item / rows, g = group % y->groups, row = item % rows;
        const int lanes = view_lanes(y, g);
        const int64_t elements = t->w * t->scale * y->block;
        if (!t->back && lanes < y->block)
            elements_zero(element_out(t->y_data, item * elements, t->type), elements, t->type);
        for (int l = 0; l < lanes; ++l)
            for (int64_t j = 0; j < t->scale; ++j)
                copy_column(t, group / y->groups, g * y->block + l, row, j);
    }
}

static void shuffle_run(const Op *op, const void *x, const void *y, bool back)
{
    const OpSpec *s = &op->spec;
    const ShuffleTask t = {.x = view_of(s->x[0]),
                           .y = view_of(s->y),
                           .type = s->y.dtype,
                           .scale = s->scale,
                           .h = s->x[0].shape.dim[2],
                           .w = s->x[0].shape.dim[3],
                           .x_data = (void *)(uintptr_t)x,
                           .y_data = (void *)(uintptr_t)y,
                           .back = back};
    work_run(shuffle_body, &t, t.y.n * t.y.groups * t.h * t.scale, t.y.n * t.y.sample);
}

static void shuffle_forward(Op *op, const OpRun *run)
{
    shuffle_run(op, run->x[0], run->y, false);
}

static void shuffle_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) shuffle_run(op, run->dx[0], run->dy, true);
}

const OpTable cpu_pixel_shuffle = {
    .name = "pixel_shuffle",
    .plan = shuffle_plan,
    .forward = shuffle_forward,
    .backward_data = shuffle_backward_data,
};
