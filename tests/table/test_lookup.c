/* Lookups of a step's micro-batches in a bag, compared with a plain look at each id: one table per
 * field and one for all, hashed ids, samples with no ids and with many, ids at the ends of 64
 * bits. */
#include "../../src/table/lookup.h"

#include "harness.h"
#include "tree_of.h"

enum {
    MICROS = 6,
    SAMPLES = 4,
    FIELDS = 5,
    FIRST = 1,
    BAG_FIELDS = 3,
    MOST = 12,
    OWNERS = 3,
    ALL = MICROS * SAMPLES * MOST
};

typedef struct Case {
    bool each;
    uint64_t rows;
    bool hashed;
    int micro_batches;
    /* 0: random ids; 1: one id, many times; 2: none; 3: MicroBatch.ids is NULL */
    int what;
} Case;

typedef struct Ids {
    uint64_t id[MICROS][SAMPLES * FIELDS * MOST];
    int32_t first[MICROS][SAMPLES * FIELDS + 1];
    MicroBatch batch[MICROS];
} Ids;

static uint64_t draw(const Case *c, uint64_t n)
{
    static const uint64_t ends[] = {0, 1, 1ull << 63, UINT64_MAX, UINT64_MAX - 1};
    uint64_t mix = row_hash(99, n);
    if (c->what == 1) return 1ull << 63;
    if (c->rows && !c->hashed) return mix % c->rows;
    return mix % 3 == 0 ? ends[mix / 3 % 5] : mix % 4 == 0 ? mix : mix % 40;
}

/* Micro-batch 2 has no samples; others lack none, one or two. */
static void make_ids(Ids *ids, const Case *c)
{
    uint64_t n = 0;
    memset(ids->batch, 0, sizeof ids->batch);
    for (int i = 0; i < c->micro_batches; ++i) {
        MicroBatch *b = &ids->batch[i];
        int32_t count = 0;
        *b = (MicroBatch){
            .ids = ids->id[i], .id_first = ids->first[i], .rows = i == 2 ? 0 : SAMPLES - i % 3};
        for (int s = 0; s < SAMPLES * FIELDS; ++s) {
            int some = (int)(row_hash(7, n++) % 4);
            ids->first[i][s] = count;
            if (s / FIELDS >= b->rows || c->what == 2) continue;
            for (int k = 0; k < some; ++k) ids->id[i][count++] = draw(c, n++);
        }
        ids->first[i][SAMPLES * FIELDS] = count;
        if (c->what == 3) b->ids = NULL, b->id_first = NULL;
    }
}

/* An id as the lookup must identify it: with its table. */
typedef struct Key {
    int table;
    uint64_t id;
} Key;

static Key key_of(const Bag *bag, const Case *c, int field, uint64_t id)
{
    int table = c->each ? field : 0;
    return (Key){table, c->hashed ? row_hash(bag->hash[table], id) % c->rows : id};
}

/* Returns owner and table of a place. */
static void slice_of(const Lookup *look, int32_t place, int *owner, int *table)
{
    int32_t end = 0;
    for (int s = 0; s < look->owners * look->bag->tables; ++s) {
        end += look->count[s];
        if (place >= end) continue;
        *owner = s / look->bag->tables;
        *table = s % look->bag->tables;
        return;
    }
    *owner = *table = -1;
}

/* Checks micro-batch i: its rows stand for its ids, in their order, and are numbered by first
 * occurrence. */
static void check_micro(const Lookup *look, const Case *c, const Ids *ids, int i)
{
    const MicroBatch *b = &ids->batch[i];
    BagInput run = lookup_bag_input(look, i);
    int32_t seen = 0, k = 0;
    int wrong = 0;
    for (int s = 0; s < b->rows; ++s)
        for (int f = 0; f < BAG_FIELDS; ++f) {
            int at = s * FIELDS + FIRST + f;
            wrong += run.first[s * BAG_FIELDS + f] != k;
            for (int32_t n = b->ids ? b->id_first[at] : 0; b->ids && n < b->id_first[at + 1];
                 ++n, ++k) {
                int owner, table;
                Key key = key_of(look->bag, c, f, b->ids[n]);
                wrong += run.row[k] > seen;
                seen += run.row[k] == seen;
                int32_t place = run.at[run.row[k]];
                slice_of(look, place, &owner, &table);
                uint64_t mix = row_hash(look->bag->hash[key.table], key.id);
                wrong += look->id[place] != key.id || table != key.table ||
                         owner != table_owner(row_shard(mix), OWNERS);
            }
        }
    wrong += run.first[b->rows * BAG_FIELDS] != k || run.rows != seen;
    for (int r = 0; r < run.rows; ++r)
        for (int q = 0; q < r; ++q) wrong += run.at[r] == run.at[q];
    CU_ASSERT_EQUAL(wrong, 0);
}

/* No id has two places, and slices follow each other. */
static void check_places(const Lookup *look)
{
    int wrong = 0;
    for (int p = 0; p < look->numbers.count; ++p)
        for (int q = 0; q < p; ++q) {
            int table[2], owner;
            slice_of(look, p, &owner, &table[0]);
            slice_of(look, q, &owner, &table[1]);
            wrong += look->id[p] == look->id[q] && table[0] == table[1];
        }
    for (int o = 0; o < OWNERS; ++o) {
        int32_t all = 0;
        for (int t = 0; t < look->bag->tables; ++t) all += look->count[o * look->bag->tables + t];
        wrong += look->begin[o + 1] - look->begin[o] != all;
    }
    wrong += look->begin[0] != 0 || look->begin[OWNERS] != look->numbers.count;
    CU_ASSERT_EQUAL(wrong, 0);
}

static void check_sums(Lookup *look, const Case *c)
{
    int wrong = 0, width = look->bag->width;
    for (int i = 0; i < c->micro_batches; ++i)
        for (int64_t n = 0; n < (int64_t)look->micro[i].rows * width; ++n)
            look->micro[i].grad[n] = some_value((uint64_t)(i * 1000 + n));
    float *wanted = calloc((size_t)(look->numbers.count * width + 1), sizeof *wanted);
    for (int p = 0; p < look->numbers.count; ++p) {
        const float *leaf[MICROS] = {0};
        for (int i = 0; i < c->micro_batches; ++i)
            for (int r = 0; r < look->micro[i].rows; ++r)
                if (look->micro[i].at[r] == p) leaf[i] = look->micro[i].grad + r * width;
        tree_of(leaf, c->micro_batches, width, wanted + p * width);
    }
    lookup_sum_gradients(look);
    for (int n = 0; n < look->numbers.count * width; ++n)
        wrong += memcmp(&wanted[n], &look->sum[n], sizeof *wanted) != 0;
    CU_ASSERT_EQUAL(wrong, 0);
    free(wanted);
}

static void run_case(const Case *c)
{
    static Ids ids;
    static char name[BAG_FIELDS][16];
    SparseTable of[BAG_FIELDS] = {0};
    uint64_t hash[BAG_FIELDS];
    int16_t owner[ROW_SHARDS];
    Lookup look;
    Bag bag = {.first_field = FIRST,
               .fields = BAG_FIELDS,
               .tables = c->each ? BAG_FIELDS : 1,
               .width = TREE_WIDTH,
               .table = of,
               .hash = hash};
    for (int t = 0; t < bag.tables; ++t) {
        snprintf(name[t], sizeof name[t], "t.%d", t);
        of[t] = (SparseTable){
            .name = name[t], .rows = c->rows, .hashed = c->hashed, .width = TREE_WIDTH};
        hash[t] = hash_text(name[t]);
    }
    for (int s = 0; s < ROW_SHARDS; ++s) owner[s] = (int16_t)table_owner(s, OWNERS);
    lookup_init(&look, &bag, OWNERS, c->micro_batches, SAMPLES, MOST, true);
    /* the second step finds nothing of the first */
    for (int round = 0; round < 2; ++round) {
        Case now = *c;
        if (round == 0) now.what = 0;
        make_ids(&ids, &now);
        lookup_find_ids(&look, ids.batch, FIELDS, owner);
        for (int i = 0; i < c->micro_batches; ++i) check_micro(&look, c, &ids, i);
        check_places(&look);
        check_sums(&look, c);
    }
    if (c->what == 1) CU_ASSERT_EQUAL(look.numbers.count, bag.tables);
    if (c->what > 1) CU_ASSERT_EQUAL(look.numbers.count, 0);
    if (c->what == 0) CU_ASSERT_TRUE(look.numbers.count > 3);
    lookup_fini(&look);
}

static void test_cases(void)
{
    for (int each = 0; each < 2; ++each)
        for (int what = 0; what < 4; ++what)
            for (int kind = 0; kind < 3; ++kind) {
                if (what == 1 && kind == 1) continue;
                Case c = {each, kind ? 17 : 0, kind == 2, what == 1 ? MICROS - 1 : MICROS, what};
                run_case(&c);
            }
    run_case(&(Case){.each = true, .micro_batches = 1});
}

TEST_MAIN("lookup", {"tables each and shared, hashed, empty, one id", test_cases})
