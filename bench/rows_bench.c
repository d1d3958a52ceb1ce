/* Measures the row store of sparse tables on one core next to random reads and writes of the same
 * size. These visit, for each row, 8 bytes of an array as long as the store's index and one row
 * of an array as long as its slabs, at positions known beforehand and with the same prefetching.
 * Rounds of the two take turns; the ratios' medians are printed. Times are of the thread's own
 * clock, so other load on the machine matters only through memory.
 *
 *   rows_bench [ROWS] [WIDTH] [BATCH]     default: 33762577 rows (Criteo's) of 16 floats and one
 *                                         of state; BATCH: ids looked up at a time */
#include "optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, VISITS = 2000000, AHEAD = 12, LINE = 64, BATCH_MOST = 1 << 16 };

static int64_t rows = 33762577;
static int width = 16, batch = 256;
static size_t stride;
static uint64_t sink;

typedef struct Plain {
    char *row;
    uint64_t *place;
    size_t row_bytes, place_bytes;
    uint64_t mask;
} Plain;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Resident memory of this process in bytes. */
static double resident_bytes(void)
{
    long pages = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    if (!in || fscanf(in, "%*d %ld", &pages) != 1) pages = 0;
    if (in) fclose(in);
    return (double)pages * 4096;
}

/* Spreads ids over 64 bits. */
static uint64_t id_of(uint64_t number)
{
    return row_hash(99, number);
}

/* One visit: an id for the store; row number and index position for the plain arrays. Drawn in
 * advance. */
typedef struct Drawn {
    uint64_t id, number, place;
} Drawn;
static Drawn drawn[VISITS];

static void draw(int round, uint64_t mask)
{
    for (int i = 0; i < VISITS; ++i) {
        uint64_t number = row_hash((uint64_t)round + 1000, (uint64_t)i) % (uint64_t)rows;
        drawn[i] = (Drawn){id_of(number), number, row_hash(7, number) & mask};
    }
}

/* ---- the row store ---- */

static double store_add(RowStore *store)
{
    static uint64_t id[BATCH_MOST];
    static float *at[BATCH_MOST];
    double begin = now_s();
    for (int64_t i = 0; i < rows; i += batch) {
        int n = rows - i < batch ? (int)(rows - i) : batch;
        for (int k = 0; k < n; ++k) id[k] = id_of((uint64_t)(i + k));
        if (row_store_add(store, id, n, at, NULL) != OK) die("%s", fail_message());
    }
    return now_s() - begin;
}

static uint64_t bits_of(const float *row, int floats)
{
    uint64_t sum = 0;
    uint32_t bits;
    for (int c = 0; c < floats; ++c) {
        memcpy(&bits, row + c, sizeof bits);
        sum += bits;
    }
    return sum;
}

/* Reads rows if rule is NULL, else updates them. */
static double store_visit(RowStore *store, const OptimRule *rule)
{
    static uint64_t id[BATCH_MOST];
    static float *at[BATCH_MOST];
    float *g = mem_new((size_t)width * sizeof *g);
    uint64_t sum = 0;
    for (int c = 0; c < width; ++c) g[c] = 0.01f * (float)(c + 1);
    double begin = now_s();
    for (int i = 0; i < VISITS; i += batch) {
        int n = VISITS - i < batch ? VISITS - i : batch;
        for (int k = 0; k < n; ++k) id[k] = drawn[i + k].id;
        row_store_find(store, id, n, at);
        for (int k = 0; k < n; ++k) {
            if (!rule) sum += bits_of(at[k], width + 1);
            if (rule)
                rule->table->row_update(rule, &(OptimRowArgs){.w = at[k],
                                                              .state = at[k] + width,
                                                              .g = g,
                                                              .width = width,
                                                              .lr = 0.01f,
                                                              .grad_scale = 1});
        }
    }
    double s = now_s() - begin;
    sink += sum;
    mem_free(&g);
    return s;
}

/* ---- plain arrays ---- */

static Plain plain_new(void)
{
    Plain p = {.row_bytes = (size_t)rows * stride, .mask = 511};
    while ((double)(p.mask + 1) * 0.7 < (double)rows) p.mask = 2 * p.mask + 1;
    p.place_bytes = (p.mask + 1) * sizeof *p.place;
    p.row = mem_pages_new(p.row_bytes);
    p.place = mem_pages_new(p.place_bytes);
    return p;
}

static double plain_add(Plain *p)
{
    double begin = now_s();
    for (int64_t i = 0; i < rows; ++i) {
        __builtin_prefetch(&p->place[id_of((uint64_t)i + AHEAD) & p->mask], 1);
        p->place[id_of((uint64_t)i) & p->mask] = (uint64_t)i + 1;
        memset(p->row + (size_t)i * stride, 1, stride);
    }
    return now_s() - begin;
}

/* index: also visits the array that stands for the index. */
static double plain_visit(Plain *p, bool index, bool writes)
{
    const int floats = width + 1;
    uint64_t sum = 0;
    double begin = now_s();
    for (int i = 0; i < VISITS; ++i) {
        const Drawn *next = &drawn[i + AHEAD < VISITS ? i + AHEAD : 0];
        const char *ask = p->row + next->number * stride;
        if (index) __builtin_prefetch(&p->place[next->place]);
        for (size_t b = 0; b < stride; b += LINE) __builtin_prefetch(ask + b, 1);
        __builtin_prefetch(ask + stride - 1, 1);
        float *row = (float *)(void *)(p->row + drawn[i].number * stride + sizeof(uint64_t));
        if (index) sum += p->place[drawn[i].place];
        if (!writes) sum += bits_of(row, floats);
        for (int c = 0; writes && c < floats; ++c) row[c] += 0.5f;
    }
    double s = now_s() - begin;
    sink += sum;
    return s;
}

/* ---- both in turn ---- */

static void compare(const char *what, RowStore *store, const OptimRule *rule, Plain *plain)
{
    double own[ROUNDS], bytes[ROUNDS], ratio[ROUNDS], of_rows[ROUNDS];
    for (int r = 0; r < ROUNDS; ++r) {
        draw(r, plain->mask);
        own[r] = store_visit(store, rule);
        bytes[r] = plain_visit(plain, true, rule != NULL);
        of_rows[r] = plain_visit(plain, false, rule != NULL) / own[r];
        ratio[r] = bytes[r] / own[r];
    }
    printf("%-7s %6.1f ns a row, %6.1f for as many bytes: %.2f (%.2f of the rows' bytes alone)\n",
           what, 1e9 * median(own, ROUNDS) / VISITS, 1e9 * median(bytes, ROUNDS) / VISITS,
           median(ratio, ROUNDS), median(of_rows, ROUNDS));
}

int main(int argc, char **argv)
{
    if (argc > 1) rows = atoll(argv[1]);
    if (argc > 2) width = atoi(argv[2]);
    if (argc > 3) batch = atoi(argv[3]);
    if (rows < 1000 || width < 1 || batch < 1 || batch > BATCH_MOST) return ERR_USAGE;
    Config *config = NULL;
    config_use_words(optim_words, OPTIM_WORDS);
    if (config_parse(&config, "rows_bench", "optim: {name: adagrad_row}\n", 0, NULL) != OK)
        die("%s", fail_message());
    OptimRule rule = optim_rule(config, 0);
    stride = sizeof(uint64_t) + (size_t)(width + 1) * sizeof(float);
    double before = resident_bytes();
    RowStore *store = row_store_new(hash_text("rows_bench"), width + 1, 0);
    double own = store_add(store);
    double bytes = (double)row_store_bytes(store), in_memory = resident_bytes() - before;
    Plain plain = plain_new();
    double floor = plain_add(&plain);
    printf("%lld rows of %d floats and 1 of state: %.3f GB, %.3f in memory, %.3f while it grew\n",
           (long long)row_store_count(store), width, bytes / 1e9, in_memory / 1e9,
           (double)row_store_peak_bytes(rows, width + 1) / 1e9);
    printf("add     %6.1f ns a row, %6.1f for as many bytes: %.2f\n", 1e9 * own / (double)rows,
           1e9 * floor / (double)rows, floor / own);
    compare("find", store, NULL, &plain);
    compare("update", store, &rule, &plain);
    row_store_free(&store);
    mem_pages_free(plain.row, plain.row_bytes);
    mem_pages_free(plain.place, plain.place_bytes);
    config_free(&config);
    return sink == 1;
}
