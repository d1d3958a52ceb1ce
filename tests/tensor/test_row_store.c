/* The store of rows against a plain sorted array: ids that are far apart, adjacent, or have the
 * same tag; growth from every load; the limit. */
#include "tensor.h"

#include "harness.h"

enum { TABLE = 77, WIDTH = 3 };

/* ---- the plain store ---- */

typedef struct Pair {
    uint64_t id;
    float *row;
} Pair;
typedef struct Plain {
    Pair pair[20000];
    int count;
} Plain;

static int plain_at(const Plain *p, uint64_t id)
{
    int low = 0, high = p->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (p->pair[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static float *plain_find(const Plain *p, uint64_t id)
{
    int i = plain_at(p, id);
    return i < p->count && p->pair[i].id == id ? p->pair[i].row : NULL;
}

static void plain_add(Plain *p, uint64_t id, float *row)
{
    int i = plain_at(p, id);
    memmove(&p->pair[i + 1], &p->pair[i], (size_t)(p->count++ - i) * sizeof p->pair[0]);
    p->pair[i] = (Pair){id, row};
}

static void plain_remove(Plain *p, uint64_t id)
{
    int i = plain_at(p, id);
    if (i == p->count || p->pair[i].id != id) return;
    memmove(&p->pair[i], &p->pair[i + 1], (size_t)(--p->count - i) * sizeof p->pair[0]);
}

/* The value of a row's column, a function of its id. */
static float mark(uint64_t id, int column)
{
    return (float)(row_hash(1, id) >> 44) + (float)column;
}

static void fill(float *row, uint64_t id)
{
    for (int c = 0; c < WIDTH; ++c) row[c] = mark(id, c);
}

static bool is_filled(const float *row, uint64_t id)
{
    for (int c = 0; c < WIDTH; ++c)
        if (row[c] != mark(id, c)) return false;
    return true;
}

static bool is_zero(const float *row)
{
    for (int c = 0; c < WIDTH; ++c)
        if (row[c] != 0) return false;
    return true;
}

/* Each row of the plain store is at the same address with the same values, and there are no
 * others. */
static void check_same(const RowStore *store, const Plain *plain)
{
    static uint64_t id[20000];
    static float *at[20000];
    int bad = 0, seen = 0;
    CU_ASSERT_EQUAL(row_store_count(store), plain->count);
    for (int i = 0; i < plain->count; ++i) id[i] = plain->pair[i].id;
    row_store_find(store, id, plain->count, at);
    for (int i = 0; i < plain->count; ++i)
        bad += at[i] != plain->pair[i].row || !is_filled(at[i], id[i]);
    uint64_t next;
    float *row;
    for (int64_t place = 0; (row = row_store_next(store, &place, &next)); ++seen)
        bad += plain_find(plain, next) != row;
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT_EQUAL(seen, plain->count);
}

/* ---- tests ---- */

/* row_hash gives splitmix64's first numbers for seed 0 (its published test), and spreads ids evenly
 * over the shards. */
static void mix(void)
{
    CU_ASSERT_EQUAL(row_hash(0, 0), 0xe220a8397b1dcdafu);
    CU_ASSERT_EQUAL(row_hash(0, 0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
    CU_ASSERT_EQUAL(row_hash(0x9e3779b97f4a7c15u, 0), 0x6e789e6aa1b965f4u);
    CU_ASSERT_EQUAL(row_shard(0), 0);
    CU_ASSERT_EQUAL(row_shard(UINT64_MAX), ROW_SHARDS - 1);
    static int shard[ROW_SHARDS];
    memset(shard, 0, sizeof shard);
    for (uint64_t id = 0; id < 100 * ROW_SHARDS; ++id) ++shard[row_shard(row_hash(TABLE, id))];
    int least = shard[0], most = shard[0];
    for (int i = 0; i < ROW_SHARDS; ++i) {
        least = shard[i] < least ? shard[i] : least;
        most = shard[i] > most ? shard[i] : most;
    }
    CU_ASSERT(least > 55 && most < 150);
}

/* The id with that mix. */
static uint64_t unmix(uint64_t z)
{
    z = (z ^ z >> 31 ^ z >> 62) * 0x319642b2d24d8ec3u;
    z = (z ^ z >> 27 ^ z >> 54) * 0x96de1b173f119089u;
    return (z ^ z >> 30 ^ z >> 60) - 0x9e3779b97f4a7c15u - TABLE;
}

/* Id number i, of different kinds, some thousands in all. Many have one of two tags whose places
 * are the last ones of each index. */
static uint64_t some_id(uint32_t r)
{
    uint64_t i = r >> 3 & 1023;
    switch (r & 7) {
    case 0:
        return i;
    case 1:
        return UINT64_MAX - i;
    case 2:
        return ((uint64_t)1 << 63) + i;
    case 3:
        return unmix((i & 31) << 40 | 0xffffffffu);
    case 4:
        return unmix((i & 31) << 40 | 0xfffffffeu);
    default:
        return i * 0x9e3779b97f4a7c15u;
    }
}

static void same_as_plain(void)
{
    enum { ROUNDS = 400, MOST = 200 };
    static Plain plain;
    static uint64_t id[MOST];
    static float *at[MOST];
    bool is_new[MOST];
    plain.count = 0;
    RngKey key = rng_key(3, RNG_TEST, 0, 0);
    uint64_t element = 0;
    int bad = 0;
    CU_ASSERT_EQUAL(row_hash(TABLE, unmix(12345)), 12345);
    RowStore *store = row_store_new(TABLE, WIDTH, 0);
    for (int round = 0; round < ROUNDS; ++round) {
        int count = (int)(rng_u32(key, element++) % MOST);
        for (int i = 0; i < count; ++i) id[i] = some_id(rng_u32(key, element++));
        switch (rng_u32(key, element++) % (round < ROUNDS / 2 ? 3 : 2)) {
        case 0:
            row_store_find(store, id, count, at);
            for (int i = 0; i < count; ++i) bad += at[i] != plain_find(&plain, id[i]);
            break;
        case 1:
            for (int i = 0; i < count; ++i) {
                row_store_remove(store, id[i]);
                plain_remove(&plain, id[i]);
            }
            break;
        default:
            CHECK_OK(row_store_add(store, id, count, at, is_new));
            for (int i = 0; i < count; ++i) {
                float *before = plain_find(&plain, id[i]);
                bad += is_new[i] == !!before || (before && at[i] != before);
                if (before) continue;
                bad += !is_zero(at[i]);
                fill(at[i], id[i]);
                plain_add(&plain, id[i], at[i]);
            }
        }
        if (round % 20 == 0) check_same(store, &plain);
    }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT(plain.count > 0);
    check_same(store, &plain);
    while (plain.count > 0) {
        row_store_remove(store, plain.pair[0].id);
        plain_remove(&plain, plain.pair[0].id);
    }
    check_same(store, &plain);
    row_store_free(&store);
    CU_ASSERT_PTR_NULL(store);
}

static void ends_of_ids(void)
{
    const uint64_t id[] = {0, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 1, 1};
    float *at[5];
    bool is_new[5];
    RowStore *store = row_store_new(TABLE, WIDTH, 0);
    row_store_find(store, id, 5, at);
    for (int i = 0; i < 5; ++i) CU_ASSERT_PTR_NULL(at[i]);
    CHECK_OK(row_store_add(store, id, 3, at, is_new));
    for (int i = 0; i < 3; ++i) {
        CU_ASSERT(is_new[i]);
        fill(at[i], id[i]);
    }
    row_store_remove(store, UINT64_MAX - 1);
    float *again[5];
    row_store_find(store, id, 5, again);
    for (int i = 0; i < 3; ++i) CU_ASSERT(again[i] == at[i] && is_filled(again[i], id[i]));
    CU_ASSERT(!again[3] && !again[4]);
    row_store_remove(store, 0);
    row_store_find(store, id, 5, again);
    CU_ASSERT(!again[0] && again[1] == at[1] && again[2] == at[2]);
    CU_ASSERT_EQUAL(row_store_count(store), 2);
    row_store_free(&store);
}

/* A repeated id gets one row; no room for more is made, and the limit is not exceeded. */
static void one_id_repeated(void)
{
    enum { COUNT = 5000 };
    static uint64_t id[COUNT];
    static float *at[COUNT];
    static bool is_new[COUNT];
    for (int i = 0; i < COUNT; ++i) id[i] = 42;
    RowStore *store = row_store_new(TABLE, WIDTH, row_store_peak_bytes(1, WIDTH));
    CHECK_OK(row_store_add(store, id, COUNT, at, is_new));
    int bad = 0;
    for (int i = 0; i < COUNT; ++i) bad += at[i] != at[0] || is_new[i] != (i == 0);
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT_EQUAL(row_store_count(store), 1);
    CU_ASSERT_EQUAL(row_store_bytes(store), row_store_peak_bytes(1, WIDTH));
    row_store_free(&store);
}

/* Grows from every number of rows of the first index, by one row and by many; pointers stay
 * valid. */
static void growth(void)
{
    enum { FIRST = 400, MORE = 900 };
    static Plain plain;
    static uint64_t id[FIRST + MORE];
    static float *at[FIRST + MORE];
    for (int i = 0; i < FIRST + MORE; ++i) id[i] = some_id((uint32_t)i * 2654435761u >> 7);
    for (int first = 0; first < FIRST; ++first) {
        RowStore *store = row_store_new(TABLE, WIDTH, 0);
        plain.count = 0;
        const int part[] = {0, first, first + 1, FIRST + MORE};
        for (int p = 0; p < 3; ++p) {
            CHECK_OK(row_store_add(store, id + part[p], part[p + 1] - part[p], at, NULL));
            for (int i = part[p]; i < part[p + 1]; ++i) {
                if (plain_find(&plain, id[i])) continue;
                fill(at[i - part[p]], id[i]);
                plain_add(&plain, id[i], at[i - part[p]]);
            }
        }
        check_same(store, &plain);
        row_store_free(&store);
    }
}

/* Crosses the end of a slab, with rows of 1 MiB. */
static void slabs(void)
{
    enum { ROWS = 70, FLOATS = 1 << 18 };
    float *at[ROWS];
    RowStore *store = row_store_new(TABLE, FLOATS, 0);
    for (uint64_t id = 0; id < ROWS; ++id) {
        CHECK_OK(row_store_add(store, &id, 1, &at[id], NULL));
        at[id][0] = (float)id;
        at[id][FLOATS - 1] = (float)id + 0.5f;
    }
    int bad = 0;
    for (uint64_t id = 0; id < ROWS; ++id) {
        float *row;
        row_store_find(store, &id, 1, &row);
        bad += row != at[id] || row[0] != (float)id || row[FLOATS - 1] != (float)id + 0.5f;
    }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT(row_store_bytes(store) >= (size_t)ROWS * FLOATS * sizeof(float));
    row_store_free(&store);
}

/* The planned bytes are enough for any number of rows, and one page less is not. */
static void limit(void)
{
    enum { MOST = 6000, AT_ONCE = 7 };
    static uint64_t id[MOST + AT_ONCE];
    static float *at[MOST + AT_ONCE];
    for (int i = 0; i < MOST + AT_ONCE; ++i) id[i] = (uint64_t)i;
    for (int rows = 1; rows < MOST; rows += rows < 50 ? 1 : 97) {
        RowStore *store = row_store_new(TABLE, 200, row_store_peak_bytes(rows, 200));
        for (int i = 0; i < rows; i += AT_ONCE)
            CHECK_OK(
                row_store_add(store, id + i, rows - i < AT_ONCE ? rows - i : AT_ONCE, at, NULL));
        CU_ASSERT_EQUAL(row_store_count(store), rows);
        CU_ASSERT(row_store_bytes(store) <= row_store_peak_bytes(rows, 200));
        row_store_free(&store);
        size_t less = row_store_peak_bytes(rows, 200) - 4096;
        store = row_store_new(TABLE, 200, less);
        Status st = OK;
        for (int i = 0; i < rows && st == OK; ++i) {
            st = row_store_add(store, id + i, 1, at, NULL);
            CU_ASSERT(row_store_bytes(store) <= less);
        }
        CU_ASSERT_EQUAL(st, ERR_MEMORY);
        row_store_free(&store);
    }
}

/* If a batch does not fit, nothing of it is added; present rows are found and can be removed. */
static void refusal(void)
{
    enum { ROWS = 300, BATCH = 120 };
    static Plain plain;
    static uint64_t id[ROWS], more[BATCH];
    static float *at[ROWS];
    plain.count = 0;
    RowStore *store = row_store_new(TABLE, WIDTH, row_store_peak_bytes(ROWS, WIDTH));
    for (int i = 0; i < ROWS; ++i) id[i] = (uint64_t)i;
    CHECK_OK(row_store_add(store, id, ROWS, at, NULL));
    for (int i = 0; i < ROWS; ++i) {
        fill(at[i], id[i]);
        plain_add(&plain, id[i], at[i]);
    }
    size_t bytes = row_store_bytes(store);
    for (int i = 0; i < BATCH; ++i) more[i] = (uint64_t)(i < 10 ? i : 1000 + i);
    CHECK_FAILS(row_store_add(store, more, BATCH, at, NULL), ERR_MEMORY,
                "300 rows on this rank use 12.3 KB of 12.3 KB allowed; 110 more need ");
    check_same(store, &plain);
    CU_ASSERT_EQUAL(row_store_bytes(store), bytes);
    /* room of removed rows is reused */
    for (int i = 0; i < BATCH; ++i) {
        row_store_remove(store, (uint64_t)i);
        plain_remove(&plain, (uint64_t)i);
    }
    for (int i = 0; i < BATCH; ++i) more[i] = (uint64_t)(1000 + i);
    CHECK_OK(row_store_add(store, more, BATCH, at, NULL));
    for (int i = 0; i < BATCH; ++i) {
        CU_ASSERT(is_zero(at[i]));
        fill(at[i], more[i]);
        plain_add(&plain, more[i], at[i]);
    }
    check_same(store, &plain);
    CU_ASSERT_EQUAL(row_store_bytes(store), bytes);
    row_store_free(&store);
}

/* Criteo's ids, rows of 16 floats and one number of state: the case of bench/rows.sh. */
static void size_of_many(void)
{
    CU_ASSERT(row_store_peak_bytes(33762577, 17) < 3400000000u);
}

TEST_MAIN("rows", {"the hash", mix}, {"the same as a plain array", same_as_plain},
          {"the ends of ids", ends_of_ids}, {"one id repeated", one_id_repeated},
          {"growth at every load", growth}, {"slabs", slabs}, {"limit", limit},
          {"a refusal changes nothing", refusal}, {"33.8 million rows", size_of_many})
