/* An owner's part of steps compared with a plain list of rows: initial values, sums over ranks,
 * updates, frozen tables, and the additions of mode geo. */
#include "../../src/table/owner.h"

#include "harness.h"
#include "layers.h"
#include "tree_of.h"

enum {
    RANKS = 5,
    TABLES = 2,
    STEPS = 12,
    SEED = 3,
    WIDTH = TREE_WIDTH,
    FLOATS = 2 * WIDTH,
    PLAIN = 200,
    IDS = 24
};

typedef struct PlainRow {
    int table;
    uint64_t id;
    bool made;
    float row[FLOATS];
} PlainRow;

typedef struct Rig {
    Config *config;
    SparseTable of[TABLES];
    TableStore store[TABLES];
    uint64_t hash[TABLES];
    Bag bag;
    Owner owner;
    PlainRow plain[PLAIN];
    int rows;
} Rig;

static void rig_open(Rig *r, bool frozen)
{
    static char names[TABLES][4] = {"a", "b"};
    *r = (Rig){.bag = {.tables = TABLES, .width = WIDTH}};
    config_use_words(optim_words, OPTIM_WORDS);
    CHECK_OK(config_parse(&r->config, "t", "optim: {name: adagrad, lr: 0.1}\n", 0, NULL));
    r->bag.table = r->of;
    r->bag.hash = r->hash;
    for (int t = 0; t < TABLES; ++t) {
        OptimRule rule = optim_rule(r->config, 0);
        r->hash[t] = hash_text(names[t]);
        r->of[t] = (SparseTable){.name = names[t],
                                 .width = WIDTH,
                                 .init = t ? INIT_NORMAL : INIT_UNIFORM,
                                 .scale = 0.5f,
                                 .frozen = frozen && t == 1};
        r->store[t] = (TableStore){.rows = row_store_new(r->hash[t], FLOATS, 0),
                                   .table = &r->of[t],
                                   .rule = rule,
                                   .hash = r->hash[t],
                                   .floats = FLOATS};
    }
    owner_init(&r->owner, &r->bag, r->store, SEED, RANKS, -1);
}

static void rig_close(Rig *r)
{
    owner_fini(&r->owner);
    for (int t = 0; t < TABLES; ++t) row_store_free(&r->store[t].rows);
    config_free(&r->config);
}

static PlainRow *plain_of(Rig *r, int table, uint64_t id)
{
    for (int i = 0; i < r->rows; ++i)
        if (r->plain[i].table == table && r->plain[i].id == id) return &r->plain[i];
    PlainRow *p = &r->plain[r->rows++];
    *p = (PlainRow){.table = table, .id = id};
    layer_row_init(r->of[table].init, r->of[table].scale, SEED, r->hash[table], id, WIDTH, p->row);
    return p;
}

/* Each rank requests some ids of each table, each once; rank 2 requests none. */
static void request(Rig *r, int step)
{
    static const uint64_t ids[IDS] = {0, 1ull << 63, UINT64_MAX, UINT64_MAX - 1, 1, 2, 3};
    for (int a = 0; a < RANKS; ++a)
        for (int t = 0; t < TABLES; ++t) {
            int32_t *count = &r->owner.request[a].count[t];
            *count = 0;
            for (int i = 0; i < IDS && a != 2; ++i)
                *count += row_hash((uint64_t)(step * 100 + a * 10 + t), (uint64_t)i) % 3 == 0;
        }
    owner_place_requests(&r->owner, NULL);
    for (int a = 0; a < RANKS; ++a)
        for (int t = 0, at = 0; t < TABLES; ++t)
            for (int i = 0; i < IDS && a != 2; ++i) {
                OwnerRequest *p = &r->owner.request[a];
                if (row_hash((uint64_t)(step * 100 + a * 10 + t), (uint64_t)i) % 3) continue;
                for (int c = 0; c < WIDTH; ++c)
                    p->grad[at * WIDTH + c] =
                        some_value((uint64_t)(step * 10000 + a * 1000 + at * 10 + c));
                p->id[at++] = i < 7 ? ids[i] : (uint64_t)i * 1000003u << 20;
            }
}

/* Checks that the replies hold the plain rows' values. */
static void check_answers(Rig *r)
{
    int wrong = 0;
    for (int a = 0; a < RANKS; ++a) {
        const OwnerRequest *p = &r->owner.request[a];
        for (int t = 0, at = 0; t < TABLES; ++t)
            for (int i = 0; i < p->count[t]; ++i, ++at) {
                const PlainRow *row = plain_of(r, t, p->id[at]);
                wrong += memcmp(row->row, p->value + at * WIDTH, WIDTH * sizeof(float)) != 0;
                wrong += row->made != (p->row[at] != NULL);
            }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Computes the gradient of a plain row, by the tree of ranks; false: no rank has requested the
 * row. */
static bool sum_of(const Rig *r, const PlainRow *row, float *sum)
{
    const float *leaf[RANKS] = {0};
    bool any = false;
    for (int a = 0; a < RANKS; ++a) {
        const OwnerRequest *p = &r->owner.request[a];
        for (int t = 0, at = 0; t < TABLES; ++t)
            for (int i = 0; i < p->count[t]; ++i, ++at)
                if (t == row->table && p->id[at] == row->id) leaf[a] = p->grad + at * WIDTH;
        any = any || leaf[a];
    }
    tree_of(leaf, RANKS, WIDTH, sum);
    return any;
}

/* Updates the plain rows as owner_update does if factor is 0, else as owner_add does. */
static void plain_update(Rig *r, float factor)
{
    OptimRule rule = optim_rule(r->config, 0);
    for (int i = 0; i < r->rows; ++i) {
        PlainRow *row = &r->plain[i];
        float sum[WIDTH];
        if (!sum_of(r, row, sum) || r->of[row->table].frozen) continue;
        row->made = true;
        OptimRowArgs args = {.w = row->row,
                             .state = row->row + WIDTH,
                             .g = sum,
                             .width = WIDTH,
                             .lr = 0.25f,
                             .grad_scale = 0.5f};
        if (factor == 0) rule.table->row_update(&rule, &args);
        for (int c = 0; c < WIDTH && factor != 0; ++c) row->row[c] += sum[c] * factor;
    }
}

static void run_steps(bool frozen, float factor)
{
    static Rig r;
    rig_open(&r, frozen);
    int64_t made[TABLES] = {0}, kept[TABLES] = {0};
    for (int step = 0; step < STEPS; ++step) {
        request(&r, step);
        owner_answer(&r.owner);
        check_answers(&r);
        plain_update(&r, factor);
        owner_sum_gradients(&r.owner);
        if (factor == 0)
            owner_update(&r.owner, 0.25, 0.5);
        else
            owner_add(&r.owner, factor);
    }
    for (int i = 0; i < r.rows; ++i) made[r.plain[i].table] += r.plain[i].made;
    for (int t = 0; t < TABLES; ++t) kept[t] = row_store_count(r.store[t].rows);
    CU_ASSERT_TRUE(made[0] > 10);
    CU_ASSERT_EQUAL(made[0], kept[0]);
    CU_ASSERT_EQUAL(made[1], kept[1]);
    CU_ASSERT_EQUAL(kept[1] == 0, frozen);
    rig_close(&r);
}

static void test_updates(void)
{
    run_steps(false, 0);
}

static void test_frozen(void)
{
    run_steps(true, 0);
}

static void test_adds(void)
{
    run_steps(false, 1.0f / 3);
    run_steps(true, 1.0f / 3);
}

/* The squares of each shard are those of its rows only. */
static void test_squares(void)
{
    static Rig r;
    static double shard[TABLES * ROW_SHARDS], wanted[TABLES * ROW_SHARDS];
    int wrong = 0;
    rig_open(&r, false);
    request(&r, 1);
    owner_answer(&r.owner);
    check_answers(&r);
    for (int i = 0; i < r.rows; ++i) {
        float sum[WIDTH];
        const PlainRow *row = &r.plain[i];
        if (!sum_of(&r, row, sum)) continue;
        double *to =
            &wanted[row->table * ROW_SHARDS + row_shard(row_hash(r.hash[row->table], row->id))];
        for (int c = 0; c < WIDTH; ++c) *to += (double)sum[c] * (double)sum[c];
    }
    owner_sum_gradients(&r.owner);
    owner_squares(&r.owner, shard);
    for (int k = 0; k < TABLES * ROW_SHARDS; ++k)
        wrong += !(shard[k] >= wanted[k] * (1 - 1e-12) && shard[k] <= wanted[k] * (1 + 1e-12));
    CU_ASSERT_EQUAL(wrong, 0);
    rig_close(&r);
}

TEST_MAIN("owner of rows", {"updates", test_updates}, {"frozen tables", test_frozen},
          {"changes of mode geo", test_adds}, {"squares", test_squares})
