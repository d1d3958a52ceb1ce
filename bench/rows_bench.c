/* Measures the row store of sparse tables on one core, compared with random reads and writes of the
 * same size in plain arrays. For each row the plain arrays are read at two positions known
 * beforehand, with the same prefetching: 8 bytes of an array as long as the store's index, and a
 * row of an array as long as the store's slabs. Rounds of the store and of the arrays alternate;
 * medians of their ratios are printed. Times are from the thread's CPU clock, so other load on the
 * machine matters only if it uses memory.
 *
 *   rows_bench [ROWS] [WIDTH] [BATCH]     default: 33762577 rows (Criteo's) of 16 floats and one
 *                                         of state; BATCH: ids looked up at a time */
#include "optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* VISITS: rows that are read in a round. AHEAD: prefetch distance in rows. LINE: bytes of a cache
 * line. */
enum { ROUNDS = 9, VISITS = 2000000, AHEAD = 12, LINE = 64, BATCH_MAX = 1 << 16 };

static int64_t rows = 33762577;
static int width = 16, batch = 256;
/* bytes of a row in the store's slabs */
static size_t stride;
/* receives all results, so that the compiler cannot remove the reads */
static uint64_t sink;

/* Plain arrays of the size of the store's slabs and index; owned. */
typedef struct Plain {
    /* array with the length of the store's slabs */
    char *row;
    /* array with the length of the store's index */
    uint64_t *slot;
    size_t row_bytes, slot_bytes;
    /* number of slots - 1 */
    uint64_t mask;
} Plain;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the resident memory of this process in bytes. */
static double resident_bytes(void)
{
    long pages = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    if (!in || fscanf(in, "%*d %ld", &pages) != 1) pages = 0;
    if (in) fclose(in);
    return (double)pages * 4096;
}

/* Returns the id of row `number`; ids are spread over 64 bits. */
static uint64_t make_id(uint64_t number)
{
    return row_hash(99, number);
}

/* One visit of a row, drawn in advance: id for the store; number of the row, and slot of the index,
 * for the plain arrays. */
typedef struct Drawn {
    uint64_t id, number, slot;
} Drawn;
static Drawn drawn[VISITS];

static void draw(int round, uint64_t mask)
{
    for (int i = 0; i < VISITS; ++i) {
        uint64_t number = row_hash((uint64_t)round + 1000, (uint64_t)i) % (uint64_t)rows;
        drawn[i] = (Drawn){make_id(number), number, row_hash(7, number) & mask};
    }
}

/* ---- the row store ---- */

static double store_add(RowStore *store)
{
    static uint64_t id[BATCH_MAX];
    static float *at[BATCH_MAX];
    double begin = now_s();
    for (int64_t i = 0; i < rows; i += batch) {
        int n = rows - i < batch ? (int)(rows - i) : batch;
        for (int k = 0; k < n; ++k) id[k] = make_id((uint64_t)(i + k));
        if (row_store_add(store, id, n, at, NULL) != OK) die("%s", fail_message());
    }
    return now_s() - begin;
}

static uint64_t sum_bits(const float *row, int floats)
{
    uint64_t sum = 0;
    uint32_t bits;
    for (int c = 0; c < floats; ++c) {
        memcpy(&bits, row + c, sizeof bits);
        sum += bits;
    }
    return sum;
}

/* Reads the drawn rows of the store if rule is NULL, else updates them. Returns seconds per row. */
static double store_visit(RowStore *store, const OptimRule *rule)
{
    static uint64_t id[BATCH_MAX];
    static float *at[BATCH_MAX];
    float *g = mem_new((size_t)width * sizeof *g);
    uint64_t sum = 0;
    for (int c = 0; c < width; ++c) g[c] = 0.01f * (float)(c + 1);
    double begin = now_s();
    for (int i = 0; i < VISITS; i += batch) {
        int n = VISITS - i < batch ? VISITS - i : batch;
        for (int k = 0; k < n; ++k) id[k] = drawn[i + k].id;
        row_store_find(store, id, n, at);
        for (int k = 0; k < n; ++k) {
            if (!rule) sum += sum_bits(at[k], width + 1);
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
    p.slot_bytes = (p.mask + 1) * sizeof *p.slot;
    p.row = mem_pages_new(p.row_bytes);
    p.slot = mem_pages_new(p.slot_bytes);
    return p;
}

static double plain_add(Plain *p)
{
    double begin = now_s();
    for (int64_t i = 0; i < rows; ++i) {
        __builtin_prefetch(&p->slot[make_id((uint64_t)i + AHEAD) & p->mask], 1);
        p->slot[make_id((uint64_t)i) & p->mask] = (uint64_t)i + 1;
        memset(p->row + (size_t)i * stride, 1, stride);
    }
    return now_s() - begin;
}

/* Reads the drawn rows of the plain arrays. index: also reads the array that stands for the index;
 * writes: also writes the rows. */
static double plain_visit(Plain *p, bool index, bool writes)
{
    const int floats = width + 1;
    uint64_t sum = 0;
    double begin = now_s();
    for (int i = 0; i < VISITS; ++i) {
        const Drawn *next = &drawn[i + AHEAD < VISITS ? i + AHEAD : 0];
        const char *next_row = p->row + next->number * stride;
        if (index) __builtin_prefetch(&p->slot[next->slot]);
        for (size_t b = 0; b < stride; b += LINE) __builtin_prefetch(next_row + b, 1);
        __builtin_prefetch(next_row + stride - 1, 1);
        float *row = (float *)(void *)(p->row + drawn[i].number * stride + sizeof(uint64_t));
        if (index) sum += p->slot[drawn[i].slot];
        if (!writes) sum += sum_bits(row, floats);
        for (int c = 0; writes && c < floats; ++c) row[c] += 0.5f;
    }
    double s = now_s() - begin;
    sink += sum;
    return s;
}

/* ---- comparison ---- */

/* Prints the medians of seconds and of ratios. what: the printed name. Rows are read if rule is
 * NULL, else updated. ratio: store / plain arrays; rows_ratio: store / plain arrays without the
 * index. */
static void compare(const char *what, RowStore *store, const OptimRule *rule, Plain *plain)
{
    double store_s[ROUNDS], plain_s[ROUNDS], ratio[ROUNDS], rows_ratio[ROUNDS];
    for (int r = 0; r < ROUNDS; ++r) {
        draw(r, plain->mask);
        store_s[r] = store_visit(store, rule);
        plain_s[r] = plain_visit(plain, true, rule != NULL);
        rows_ratio[r] = plain_visit(plain, false, rule != NULL) / store_s[r];
        ratio[r] = plain_s[r] / store_s[r];
    }
    printf("%-7s %6.1f ns a row, %6.1f for as many bytes: %.2f (%.2f of the rows' bytes alone)\n",
           what, 1e9 * median(store_s, ROUNDS) / VISITS, 1e9 * median(plain_s, ROUNDS) / VISITS,
           median(ratio, ROUNDS), median(rows_ratio, ROUNDS));
}

int main(int argc, char **argv)
{
    if (argc > 1) rows = atoll(argv[1]);
    if (argc > 2) width = atoi(argv[2]);
    if (argc > 3) batch = atoi(argv[3]);
    if (rows < 1000 || width < 1 || batch < 1 || batch > BATCH_MAX) return ERR_USAGE;
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
    double plain_s = plain_add(&plain);
    printf("%lld rows of %d floats and 1 of state: %.3f GB, %.3f in memory, %.3f while it grew\n",
           (long long)row_store_count(store), width, bytes / 1e9, in_memory / 1e9,
           (double)row_store_peak_bytes(rows, width + 1) / 1e9);
    printf("add     %6.1f ns a row, %6.1f for as many bytes: %.2f\n", 1e9 * own / (double)rows,
           1e9 * plain_s / (double)rows, plain_s / own);
    compare("find", store, NULL, &plain);
    compare("update", store, &rule, &plain);
    row_store_free(&store);
    mem_pages_free(plain.row, plain.row_bytes);
    mem_pages_free(plain.slot, plain.slot_bytes);
    config_free(&config);
    return sink == 1;
}
