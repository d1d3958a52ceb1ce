/* Compares ten training steps of models of data with ids with PyTorch's losses
 * (tests/golden/ids.txt). The test provides and updates the rows of tables; the executor and SGD do
 * the rest. */
#include "golden.h"
#include "one_rank.h"

enum { IDS = 5, SAMPLES_MOST = 8, FIELDS_MOST = 8, BAGS_MOST = 2, WIDTH_MOST = 8 };

/* The arrays of one bag's BagInput. The bag has a row for each pair of table and id that occurs. */
typedef struct Rows {
    int32_t first[SAMPLES_MOST * FIELDS_MOST + 1], row[SAMPLES_MOST * FIELDS_MOST];
    int32_t at[FIELDS_MOST * IDS];
    float value[FIELDS_MOST * IDS * WIDTH_MOST], grad[FIELDS_MOST * IDS * WIDTH_MOST];
} Rows;

typedef struct Case {
    int samples, numbers, fields;
    Golden golden;
    OneRank one;
    Optim *optim;
    Rows rows[BAGS_MOST];
    BagInput bag[BAGS_MOST];
    MicroBatch batch;
} Case;

/* Adds to the table's bag a row for each id that occurs, in order of first occurrence. t: index of
 * the table. */
static void add_rows(Case *c, int t)
{
    const SparseTable *table = &c->one.graph->table[t];
    const OpSpec *spec = &c->one.graph->node[table->node].spec;
    Rows *rows = &c->rows[spec->bag];
    BagInput *bag = &c->bag[spec->bag];
    const uint32_t name = golden_hash(table->name);
    int number[IDS];
    for (int i = 0; i < IDS; ++i) number[i] = -1;
    for (int i = 0; i < c->samples * c->fields; ++i) {
        const int id = golden_draw('i', i, IDS);
        rows->first[i] = i;
        if (table->field >= 0 && i % c->fields != table->field) continue;
        if (number[id] < 0) {
            number[id] = bag->rows++;
            for (int k = 0; k < table->width; ++k)
                rows->value[number[id] * table->width + k] =
                    golden_noise(name, (uint32_t)(id * table->width + k)) / 2;
        }
        rows->row[i] = number[id];
    }
    rows->first[c->samples * c->fields] = c->samples * c->fields;
}

/* Renumbers the rows of bag b in order of first occurrence in the bag, as BagInput requires;
 * add_rows has numbered them table by table. */
static void order_rows(Case *c, int b)
{
    Rows *rows = &c->rows[b];
    int now[FIELDS_MOST * IDS], count = 0;
    for (int i = 0; i < FIELDS_MOST * IDS; ++i) now[i] = -1;
    for (int i = 0; i < c->samples * c->fields; ++i) {
        int old = rows->row[i];
        if (now[old] < 0) {
            rows->at[count] = old;
            now[old] = count++;
        }
        rows->row[i] = now[old];
    }
    c->bag[b].first = rows->first;
    c->bag[b].row = rows->row;
    c->bag[b].at = rows->at;
    c->bag[b].value = rows->value;
    c->bag[b].grad = rows->grad;
}

static void make_batch(Case *c)
{
    const int64_t n = c->samples;
    c->batch = (MicroBatch){.rows = c->samples,
                            .x = mem_new((size_t)(n * c->numbers) * sizeof(float)),
                            .labels = mem_new((size_t)n * sizeof(int32_t)),
                            .sample = mem_new((size_t)n * sizeof(int64_t)),
                            .bag = c->bag};
    for (int64_t i = 0; i < n * c->numbers; ++i)
        c->batch.x[i] = golden_noise(golden_hash("x"), (uint32_t)i);
    for (int64_t i = 0; i < n; ++i) c->batch.labels[i] = golden_draw('y', i, 2);
    for (int t = 0; t < c->one.graph->table_count; ++t) add_rows(c, t);
    for (int b = 0; b < c->one.graph->bag_count; ++b) order_rows(c, b);
}

static Status case_open(Case *c, const char *name, const BackendTable *table, int schedule)
{
    int number[3];
    *c = (Case){0};
    if (!golden_read("tests/golden/ids.txt", "ids", name, 3, number, &c->golden)) return ERR_DATA;
    c->samples = number[0];
    c->numbers = number[1];
    c->fields = number[2];
    Desc input = desc_plain(shape_of(2, c->samples, c->numbers, 1, 1), DTYPE_F32);
    TRY(one_rank_open_ids(&c->one, golden_config(&c->golden, "run: {seed: 1}"), input,
                          (GraphIds){.fields = c->fields}, 1, table, &backend_cpu, 1, schedule));
    const Graph *g = c->one.graph;
    OptimRange *range = mem_new((size_t)g->param_count * sizeof *range);
    for (int i = 0; i < g->param_count; ++i)
        range[i] =
            (OptimRange){.offset = c->one.plan->param_offset[i], .elements = g->param[i].elements};
    Status st = optim_new(&c->optim, c->one.config, c->one.backend, range, g->param_count,
                          c->one.plan->trained_elements);
    mem_free(&range);
    golden_params(g, c->one.plan, executor_params(c->one.executor));
    executor_params_changed(c->one.executor);
    make_batch(c);
    return st;
}

static double step(Case *c, int number)
{
    Executor *e = c->one.executor;
    const float lr = (float)c->one.config->optim.lr;
    StepBatch of = {
        .step = (uint64_t)number, .scale = 1.0f / (float)c->samples, .micro_batches = 1};
    const float *metrics = one_rank_step(&c->one, &c->batch, of);
    double loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]);
    optim_step(c->optim, executor_params(e), executor_grads(e), c->one.config->optim.lr, 1);
    executor_params_changed(e);
    for (int i = 0; i < c->one.graph->node_count; ++i) {
        const OpSpec *s = &c->one.graph->node[i].spec;
        if (op_info(s->kind)->reads != READS_IDS) continue;
        Rows *rows = &c->rows[s->bag];
        for (int r = 0; r < c->bag[s->bag].rows; ++r)
            for (int k = 0; k < s->row_width; ++k)
                rows->value[rows->at[r] * s->row_width + k] -=
                    lr * rows->grad[r * s->row_width + k];
    }
    return loss;
}

static void check(const char *name, const BackendTable *table, int schedule)
{
    static Case c;
    Status st = case_open(&c, name, table, schedule);
    CHECK_OK(st);
    for (int s = 0; st == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&c.golden, s, step(&c, s), GOLDEN_FLOOR_SMOOTH);
    optim_free(&c.optim);
    one_rank_close(&c.one);
    mem_free(&c.batch.x);
    mem_free(&c.batch.labels);
    mem_free(&c.batch.sample);
}

static void test_models(void)
{
    static const char *const names[] = {"wide_deep", "deepfm", "dlrm"};
    for (int i = 0; i < 3; ++i) {
        check(names[i], &backend_cpu, SCHEDULE_1F1B);
        check(names[i], &backend_poison, SCHEDULE_1F1B);
        check(names[i], &backend_cpu, SCHEDULE_ZERO_BUBBLE);
    }
}

TEST_MAIN("golden models of ids", {"models", test_models})
