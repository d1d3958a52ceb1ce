/* The parts of the detection loss: matches against a search of all cells by the definition, the
 * gradient of the overlap of two boxes against differences, and the same bits with any number of
 * threads and any order of samples. */
#include "harness.h"
#include "op_rig.h"

#include "tensor/yolo_terms.h"

enum { BOXES = 3000 };

static double drawn(uint64_t box, uint64_t which)
{
    return (double)rng_uniform(rng_key(3, RNG_TEST, box, 0), which);
}

/* Random boxes; centres of every other one lie on edges or middles of cells. */
static void box_of(uint64_t i, const BoxGrid *g, float box[BOX_NUMBERS])
{
    const int sides[2] = {g->columns, g->rows};
    for (int d = 0; d < 2; ++d) {
        double at = drawn(i, (uint64_t)d);
        if (i % 2) at = round(at * 2 * sides[d]) / (2 * sides[d]);
        box[BOX_X + d] = (float)at;
        box[BOX_W + d] = i % 11 == 3 ? 0 : (float)(drawn(i, 2 + (uint64_t)d) * (i % 3 ? 0.3 : 1));
    }
    /* exactly four times an anchor's side */
    if (i % 13 == 5) box[BOX_W] = (float)(4 * g->anchor[0][0] / g->columns);
    box[BOX_CLASS] = (float)(i % 5);
}

/* How often a cell must predict a centre: along one axis, with the other in its own cell. The
 * centre x lies in cell `own`; a neighbour has it if the centre is nearer to it than to the middle
 * of its own cell, and lies more than a cell away from the grid's edge on that side. */
static int axis_count(double x, int size, int cell, int own)
{
    const double in_cell = x - floor(x);
    int count = 0;
    if (in_cell < 0.5 && x > 1 && cell == (int)floor(x) - 1) ++count;
    if (in_cell > 0.5 && size - x > 1 && cell == (int)floor(x) + 1) ++count;
    /* on the edge between two cells, the own one counts again, seen from the other side */
    if (in_cell == 0 && size - x > 1 && cell == own) ++count;
    return count;
}

static bool sides_match(double side, double anchor)
{
    return side > 0 && side / anchor < 4 && anchor / side < 4;
}

/* Number of matches of a box with one anchor in one cell. */
static int searched(const BoxGrid *g, const float *box, int a, int column, int row)
{
    const double x = (double)box[BOX_X] * g->columns, y = (double)box[BOX_Y] * g->rows;
    const int own_x = x < g->columns ? (int)x : g->columns - 1;
    const int own_y = y < g->rows ? (int)y : g->rows - 1;
    if (!sides_match((double)box[BOX_W] * g->columns, g->anchor[a][0]) ||
        !sides_match((double)box[BOX_H] * g->rows, g->anchor[a][1]))
        return 0;
    int count = column == own_x && row == own_y;
    if (row == own_y) count += axis_count(x, g->columns, column, own_x);
    if (column == own_x) count += axis_count(y, g->rows, row, own_y);
    return count;
}

static void check_box(const BoxGrid *g, const float *box, int *most)
{
    BoxMatch match[BOX_MATCHES];
    const int count = yolo_match(g, box, match);
    int sum = 0;
    for (int a = 0; a < g->anchors; ++a)
        for (int row = 0; row < g->rows; ++row)
            for (int column = 0; column < g->columns; ++column) {
                const int wanted = searched(g, box, a, column, row);
                int got = 0;
                for (int k = 0; k < count; ++k) {
                    const BoxMatch *m = &match[k];
                    if (m->anchor != a || m->row != row || m->column != column) continue;
                    ++got;
                    CU_ASSERT(m->x == (double)box[BOX_X] * g->columns - column);
                    CU_ASSERT(m->y == (double)box[BOX_Y] * g->rows - row);
                    CU_ASSERT(m->x >= -0.5 && m->x <= 1.5 && m->y >= -0.5 && m->y <= 1.5);
                }
                if (got != wanted)
                    printf("  box %g %g %g %g, cell %d %d: %d matches, not %d\n",
                           (double)box[BOX_X], (double)box[BOX_Y], (double)box[BOX_W],
                           (double)box[BOX_H], column, row, got, wanted);
                CU_ASSERT_EQUAL(got, wanted);
                sum += wanted;
            }
    CU_ASSERT_EQUAL(count, sum);
    CU_ASSERT_EQUAL(yolo_count(g, box, 1), count);
    if (count > *most) *most = count;
}

static void matches(void)
{
    static const BoxGrid grids[] = {
        {.columns = 8, .rows = 6, .anchors = 2, .anchor = {{1.25, 1.5}, {3, 2}}},
        {.columns = 3, .rows = 3, .anchors = 3, .anchor = {{0.5, 1}, {1, 1.5}, {2, 2}}},
        {.columns = 1, .rows = 1, .anchors = 1, .anchor = {{1, 0.5}}}};
    int most = 0;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; ++g)
        for (uint64_t i = 0; i < BOXES; ++i) {
            float box[BOX_NUMBERS];
            box_of(i, &grids[g], box);
            check_box(&grids[g], box, &most);
        }
    /* two anchors, and five cells of each where four cells meet */
    CU_ASSERT_EQUAL(most, 10);
}

/* Overlap with alpha of another prediction, which the gradient takes as a constant. */
static double overlap_with(const double p[4], const BoxMatch *m, double alpha)
{
    const double angle = atan(m->w / m->h) - atan(p[2] / p[3]);
    const double v = 4 / (3.14159265358979323846 * 3.14159265358979323846) * angle * angle;
    const double low = fmax(p[0] - p[2] / 2, m->x - m->w / 2);
    const double high = fmin(p[0] + p[2] / 2, m->x + m->w / 2);
    const double top = fmax(p[1] - p[3] / 2, m->y - m->h / 2);
    const double bottom = fmin(p[1] + p[3] / 2, m->y + m->h / 2);
    const double inter = fmax(high - low, 0) * fmax(bottom - top, 0);
    const double iou = inter / (p[2] * p[3] + m->w * m->h - inter + 1e-7);
    const double wide =
        fmax(p[0] + p[2] / 2, m->x + m->w / 2) - fmin(p[0] - p[2] / 2, m->x - m->w / 2);
    const double tall =
        fmax(p[1] + p[3] / 2, m->y + m->h / 2) - fmin(p[1] - p[3] / 2, m->y - m->h / 2);
    const double far = (p[0] - m->x) * (p[0] - m->x) + (p[1] - m->y) * (p[1] - m->y);
    if (alpha < 0) alpha = v / (v - iou + 1 + 1e-7);
    return iou - far / (wide * wide + tall * tall + 1e-7) - alpha * v;
}

/* alpha of a prediction, from the overlap with and without it. */
static double alpha_of(const double p[4], const BoxMatch *m)
{
    const double without = overlap_with(p, m, 0), with = overlap_with(p, m, 1);
    const double real = overlap_with(p, m, -1);
    return without == with ? 0 : (without - real) / (without - with);
}

static void overlaps(void)
{
    static const double STEP = 1e-6;
    for (uint64_t i = 0; i < 500; ++i) {
        const double reach = i % 3 ? 0.7 : 3;
        const double p[4] = {reach * (drawn(i, 0) - 0.5), reach * (drawn(i, 1) - 0.5),
                             0.1 + drawn(i, 2), 0.1 + drawn(i, 3)};
        const BoxMatch m = {.x = reach * (drawn(i, 4) - 0.5),
                            .y = reach * (drawn(i, 5) - 0.5),
                            .w = 0.1 + drawn(i, 6),
                            .h = 0.1 + drawn(i, 7)};
        const double alpha = alpha_of(p, &m);
        double grad[4];
        CU_ASSERT_DOUBLE_EQUAL(yolo_ciou(p, &m, grad), overlap_with(p, &m, -1), 1e-12);
        for (int k = 0; k < 4; ++k) {
            double up[4], down[4];
            memcpy(up, p, sizeof up);
            memcpy(down, p, sizeof down);
            up[k] += STEP;
            down[k] -= STEP;
            const double wanted =
                (overlap_with(up, &m, alpha) - overlap_with(down, &m, alpha)) / (2 * STEP);
            CU_ASSERT_DOUBLE_EQUAL(grad[k], wanted, 1e-6);
        }
    }
    /* a perfect prediction */
    double grad[4];
    const BoxMatch m = {.x = 0.25, .y = 0.5, .w = 2, .h = 1};
    CU_ASSERT_DOUBLE_EQUAL(yolo_ciou((const double[]){0.25, 0.5, 2, 1}, &m, grad), 1, 1e-6);
}

/* ---- bits ---- */

enum { SAMPLES = 5, CHANNELS = 3 * 9, SIDE = 24, LEVEL_NUMBERS = SAMPLES * CHANNELS * SIDE * SIDE };

typedef struct Result {
    float y[SAMPLES * LOSS_COLUMNS];
    /* gradient of the largest level, plain order */
    float dx[LEVEL_NUMBERS];
} Result;

/* Runs the loss of three levels. Sample i of the run is number order[i]. */
static void run_loss(int threads, int block, const int order[SAMPLES], Result *out)
{
    Backend *backend;
    Rig rig = {0};
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = threads}));
    CHECK_OK(rig_spec(&rig, backend, "yolo_loss", "image=192,192"));
    rig.spec.x_count = 3;
    for (int l = 0; l < 3; ++l) {
        rig.spec.x[l] = desc_plain(shape_of(4, SAMPLES, CHANNELS, SIDE >> l, SIDE >> l), DTYPE_F32);
        rig.spec.x[l].block = block;
    }
    CHECK_OK(rig_open(&rig, "yolo_loss"));
    for (int l = 0; l < 3; ++l) {
        const int64_t each = CHANNELS * (SIDE >> l) * (SIDE >> l);
        float *x = mem_new((size_t)(SAMPLES * each) * sizeof *x);
        for (int64_t i = 0; i < SAMPLES * each; ++i)
            x[i] = rig_number((uint32_t)(order[i / each] + 10 * l), i % each, 3, -1);
        rig_set_x(&rig, l, x);
        mem_free(&x);
    }
    /* sample i has 2 i boxes */
    float row[SAMPLES * SAMPLES * 2][BOX_NUMBERS];
    int32_t start[SAMPLES + 1] = {0};
    const BoxGrid grid = box_grid(&rig.spec, 0);
    for (int i = 0; i < SAMPLES; ++i) {
        start[i + 1] = start[i] + 2 * order[i];
        for (int k = 0; k < 2 * order[i]; ++k)
            box_of((uint64_t)(100 * order[i] + k), &grid, row[start[i] + k]);
    }
    for (int i = 0; i < SAMPLES; ++i)
        for (int k = 0; k < 2 * order[i]; ++k) row[start[i] + k][BOX_CLASS] = (float)(k % 4);
    rig_set_boxes(&rig, start, row[0], (const int32_t[]){57, 31, 12, SAMPLES + 2});
    rig_forward(&rig);
    rig_get_y(&rig, out->y);
    rig_backward(&rig, NULL);
    rig_get_dx(&rig, 0, out->dx);
    rig_close(&rig);
    backend_close(&backend);
}

static void bits(void)
{
    static const int plain[SAMPLES] = {0, 1, 2, 3, 4}, other[SAMPLES] = {3, 0, 4, 1, 2};
    enum { EACH = LEVEL_NUMBERS / SAMPLES };
    Result *a = mem_new(sizeof *a), *b = mem_new(sizeof *b);
    run_loss(1, 1, plain, a);
    CU_ASSERT(isfinite(a->y[0]) && a->y[0] > 0 && a->y[1] == 0 && a->y[4] > 0);
    for (int block = 1; block <= 16; block *= 4) {
        run_loss(block == 4 ? 2 : 3, block, plain, b);
        CU_ASSERT(memcmp(a, b, sizeof *a) == 0);
    }
    run_loss(2, 8, other, b);
    for (int i = 0; i < SAMPLES; ++i) {
        CU_ASSERT(memcmp(a->y + other[i] * LOSS_COLUMNS, b->y + i * LOSS_COLUMNS,
                         LOSS_COLUMNS * sizeof *a->y) == 0);
        CU_ASSERT(memcmp(a->dx + other[i] * EACH, b->dx + i * EACH, EACH * sizeof *a->dx) == 0);
    }
    mem_free(&a);
    mem_free(&b);
}

TEST_MAIN("yolo", {"matches", matches}, {"overlaps", overlaps}, {"bits", bits})
