/* weft data make criteo-like: synthetic clicks in the form of Criteo's logs, from a known teacher,
 * so that the best possible result is known. There are 26 fields with as many values as in Kaggle's
 * set. In a field, value number r (from 1) has a density of r to the power -a; a share of values is
 * missing. Each value has a weight, drawn from a normal distribution keyed by its id; so have pairs
 * of values of some neighbouring fields, and the 13 numbers. The sum is the logit of a click's
 * probability p, and the label is drawn with p. A base makes 25.6 % click. best_auc is the area
 * under the curve of p itself. With drift D each value is replaced by new ones D times from the
 * first row to the last, at different times. Everything follows from (seed, row). */
#include "table_file.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

enum { NUMBERS = 13, FIELDS = 26, BLOCK = 1 << 13, PROBE_ROWS = 1 << 16, DRAWS = 64 };
#define BASE_RATE 0.256

/* Number of values of each field in Kaggle's set, empty values per thousand, and 100 a. */
static const struct {
    uint32_t values;
    int empty, hundredths;
} fields[FIELDS] = {
    {1460, 0, 120},     {583, 0, 110},      {10131227, 34, 105}, {2202608, 34, 105},
    {305, 0, 120},      {24, 121, 120},     {12517, 0, 105},     {633, 0, 120},
    {3, 0, 120},        {93145, 0, 105},    {5683, 0, 105},      {8351593, 34, 105},
    {3194, 0, 105},     {27, 0, 110},       {14992, 0, 105},     {5461306, 34, 105},
    {10, 0, 110},       {5652, 0, 110},     {2173, 440, 120},    {4, 440, 110},
    {7046547, 34, 105}, {18, 762, 110},     {15, 0, 120},        {286181, 34, 110},
    {105, 440, 120},    {142572, 440, 110},
};

typedef struct Maker {
    uint64_t seed;
    /* rows of the training set, the unit of time; ids are below rows, 0: 32 bits with the field
     * above them */
    int64_t samples, rows;
    /* drift: replacements of a value over all samples; base: added to every logit */
    double drift, base;
    /* per field: value numbers are (1 + u * span) to a power */
    double span[FIELDS];
    /* first row and number of rows of the set that is being written */
    int64_t first, count;
    const TableWriter *writer;
    /* owned by set_make: for each row p, and whether it was a click */
    float *p;
    uint8_t *clicked;
} Maker;

/* Converts random bits to a uniform number in [0, 1) with 53 bits. */
static double unit(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}

static uint64_t mix(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t text[2] = {a, b};
    return XXH3_64bits_withSeed(text, sizeof text, seed);
}

static double normal(uint64_t x)
{
    double u = unit(x), v = (double)(x & 0x7ff) / 2048;
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* Maps 32 bits to 32 bits, one to one. */
static uint32_t scramble(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

/* Returns a field's id: its value number is drawn by u, and `times` counts how often that value was
 * replaced so far. */
static uint64_t field_value(const Maker *m, int f, double u, double time)
{
    double a = fields[f].hundredths / 100.0, n = fields[f].values;
    double x = pow(1 + u * m->span[f], 1 / (1 - a));
    uint64_t rank = x < 1 ? 1 : x > n ? (uint64_t)n : (uint64_t)x;
    double begin = unit(mix(m->seed, rank, (uint64_t)f));
    uint64_t times = (uint64_t)(m->drift * time + begin);
    return (uint64_t)f << 33 | scramble((uint32_t)(rank - 1 + times * fields[f].values));
}

/* Makes one row: numbers, ids, and (returned) the teacher's logit without the base. */
static double row_make(const Maker *m, int64_t row, float *dense, uint64_t *id)
{
    uint32_t draw[DRAWS];
    RngKey key = rng_key(m->seed, RNG_TEST, (uint64_t)row, 0x637269);
    double time = (double)row / (double)m->samples, logit = 0;
    for (uint64_t i = 0; i < DRAWS / 4; ++i) rng_block(key, i, draw + 4 * i);
    for (int f = 0; f < FIELDS; ++f) {
        uint64_t u = (uint64_t)draw[2 * f] << 32 | draw[2 * f + 1];
        bool empty = (int)(draw[2 * f + 1] % 1000) < fields[f].empty;
        id[f] = empty ? (uint64_t)f << 33 | UINT64_C(1) << 32 : field_value(m, f, unit(u), time);
        logit += 0.35 * normal(mix(m->seed, id[f], 1));
        if (f > 0 && f % 3 == 0) logit += 0.25 * normal(mix(id[f - 1], id[f], m->seed));
    }
    for (int i = 0; i < NUMBERS; ++i) {
        double z = normal(mix(m->seed, (uint64_t)row, (uint64_t)(1000 + i)));
        double x = floor(exp(0.5 + 0.2 * i + 1.2 * z));
        dense[i] = (float)log1p(x);
        logit += 0.1 * normal(mix(m->seed, (uint64_t)i, 2)) * (log1p(x) - 1 - 0.2 * i);
    }
    return logit;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Finds the base that gives the base rate over a sample of rows. */
static void base_find(Maker *m)
{
    int64_t rows = PROBE_ROWS < m->samples ? PROBE_ROWS : m->samples;
    double *logit = mem_new((size_t)rows * sizeof *logit), lo = -30, hi = 30;
    float dense[NUMBERS];
    uint64_t id[FIELDS];
    for (int64_t i = 0; i < rows; ++i) logit[i] = row_make(m, i * (m->samples / rows), dense, id);
    for (int step = 0; step < 60; ++step) {
        double sum = 0, middle = (lo + hi) / 2;
        for (int64_t i = 0; i < rows; ++i) sum += sigmoid(logit[i] + middle);
        *(sum > BASE_RATE * (double)rows ? &hi : &lo) = middle;
    }
    m->base = (lo + hi) / 2;
    mem_free(&logit);
}

static Status block_make(void *user, int worker, int64_t block)
{
    Maker *m = user;
    int64_t first = block * BLOCK, count = m->count - first < BLOCK ? m->count - first : BLOCK;
    float *dense = mem_new(BLOCK * NUMBERS * sizeof *dense);
    uint64_t *ids = mem_new(BLOCK * FIELDS * sizeof *ids);
    int32_t *y = mem_new(BLOCK * sizeof *y);
    (void)worker;
    for (int64_t i = 0; i < count; ++i) {
        int64_t row = m->first + first + i;
        uint64_t *id = ids + i * FIELDS;
        double p = sigmoid(row_make(m, row, dense + i * NUMBERS, id) + m->base);
        y[i] = unit(mix(m->seed, (uint64_t)row, 3)) < p;
        m->p[first + i] = (float)p;
        m->clicked[first + i] = (uint8_t)y[i];
        for (uint64_t f = 0; m->rows > 0 && f < FIELDS; ++f)
            id[f] = mix(f, id[f], 4) % (uint64_t)m->rows;
    }
    Status st = table_put(m->writer, first, count, dense, ids, y);
    mem_free(&dense);
    mem_free(&ids);
    mem_free(&y);
    return st;
}

typedef struct Scored {
    float p;
    uint32_t clicked;
} Scored;

static int by_p(const void *a, const void *b)
{
    float x = ((const Scored *)a)->p, y = ((const Scored *)b)->p;
    return (x > y) - (x < y);
}

/* Returns the share of pairs of a click and a non-click in which the click has the larger p; equal
 * ones count half. */
static double auc_of(const float *p, const uint8_t *clicked, int64_t n)
{
    Scored *s = mem_new((size_t)n * sizeof *s);
    double pairs = 0, below = 0, clicks = 0;
    for (int64_t i = 0; i < n; ++i) s[i] = (Scored){p[i], clicked[i]};
    qsort(s, (size_t)n, sizeof *s, by_p);
    for (int64_t i = 0, end; i < n; i = end) {
        double yes = 0, no = 0;
        for (end = i; end < n && s[end].p == s[i].p; ++end) *(s[end].clicked ? &yes : &no) += 1;
        pairs += yes * (below + no / 2);
        below += no;
        clicks += yes;
    }
    mem_free(&s);
    return clicks > 0 && below > 0 ? pairs / (clicks * below) : 0.5;
}

static herr_t put_best(void *user, hid_t file)
{
    return h5_put_numbers(file, "best_auc", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, user, 0);
}

/* Writes rows first .. first + count - 1 as a data set. */
static Status set_make(Maker *m, const char *out, bool force, int threads)
{
    static const char *const column[NUMBERS] = {"I1", "I2", "I3",  "I4",  "I5",  "I6", "I7",
                                                "I8", "I9", "I10", "I11", "I12", "I13"};
    static const char *const field[FIELDS] = {
        "C1",  "C2",  "C3",  "C4",  "C5",  "C6",  "C7",  "C8",  "C9",  "C10", "C11", "C12", "C13",
        "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21", "C22", "C23", "C24", "C25", "C26"};
    TableLayout layout = {.samples = m->count,
                          .columns = NUMBERS,
                          .fields = FIELDS,
                          .column_name = column,
                          .field_name = field,
                          .id_rows = m->rows > 0 ? (uint64_t)m->rows : 0,
                          .class_name = {"0", "1"}};
    TableWriter writer;
    TRY(table_new(&writer, out, force, &layout));
    m->writer = &writer;
    m->p = mem_new((size_t)m->count * sizeof *m->p);
    m->clicked = mem_new((size_t)m->count);
    Status st = worker_pool_run(threads, (m->count + BLOCK - 1) / BLOCK, block_make, m);
    double best = st == OK ? auc_of(m->p, m->clicked, m->count) : 0;
    if (st == OK) st = part_change(&writer.part, put_best, &best);
    if (st == OK) st = table_finish(&writer);
    if (st == OK) log_info("wrote %s: best AUC %.6f", out, best);
    table_drop(&writer);
    mem_free(&m->p);
    mem_free(&m->clicked);
    return st;
}

typedef struct MakeOptions {
    const char *out, *test;
    int64_t samples, test_samples, seed, rows, threads;
    double drift;
    bool force;
} MakeOptions;

static const Flag flags[] = {
    FLAG_OUT(MakeOptions, out, "the data set to write"),
    {"--samples", FLAG_FIELD(MakeOptions, samples), .value = "N", .lo = 1, .hi = 0x1p40,
     .fallback = "1000000", .help = "number of samples"},
    {"--test", FLAG_FIELD(MakeOptions, test), .value = "OUT", .writes = true,
     .help = "a second data set, with the rows that follow"},
    {"--test-samples", FLAG_FIELD(MakeOptions, test_samples), .value = "N", .lo = 1, .hi = 0x1p40,
     .fallback = "100000", .needs = "--test", .help = "number of samples in the second data set"},
    {"--seed", FLAG_FIELD(MakeOptions, seed), .value = "S", .lo = 0, .hi = FLAG_WHOLE_MOST,
     .fallback = "0", .help = "seed of the teacher and the rows"},
    {"--rows", FLAG_FIELD(MakeOptions, rows), .value = "R", .lo = 2, .hi = FLAG_WHOLE_MOST,
     .help = "ids are a hash of field and value, below R; by default an id is the 32 bits of the "
             "value with the field above them, so that no two values share an id"},
    {"--drift", FLAG_FIELD(MakeOptions, drift), .value = "D", .hi = 100, .fallback = "0",
     .help = "how often each value is replaced by a new one between the first row and the last"},
    {"--threads", FLAG_FIELD(MakeOptions, threads), .value = "T", .lo = 1, .hi = 1024,
     .help = "threads that generate rows; by default one for each core"},
    FLAG_FORCE(MakeOptions, force),
};

static Status run(int argc, char **argv, const void *options)
{
    const MakeOptions *o = options;
    int threads = (int)(o->threads > 0 ? o->threads : threads_share(1));
    (void)argv;
    if (argc > 0) return fail(ERR_USAGE, "%s: this command takes flags only", argv[0]);
    TRY(part_free_places(o->out, o->test, o->force));
    Maker m = {.seed = (uint64_t)o->seed,
               .samples = o->samples,
               .rows = o->rows > 1 ? o->rows : 0,
               .drift = o->drift,
               .count = o->samples};
    for (int f = 0; f < FIELDS; ++f)
        m.span[f] = pow(fields[f].values + 1.0, 1 - fields[f].hundredths / 100.0) - 1;
    base_find(&m);
    TRY(set_make(&m, o->out, o->force, threads));
    m.first = o->samples;
    m.count = o->test_samples;
    return o->test ? set_make(&m, o->test, o->force, threads) : OK;
}

const Verb import_make_criteo = {
    .name = "data make criteo-like",
    .help = "generates clicks from a known teacher model, in the form of Criteo's logs",
    .more = "Each row has 13 numbers and 26 fields with as many values as in Kaggle's data set. "
            "A teacher model gives the probability of a click for each row. The attribute "
            "best_auc is the AUC of these probabilities; no model can exceed it except by chance.",
    VERB_FLAGS(MakeOptions, flags),
    .traits = VERB_PLAIN,
    .run = run,
};
