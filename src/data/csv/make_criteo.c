/* weft data make criteo-like: makes synthetic clicks in the form of Criteo's logs by a known
 * teacher model, so that the best possible result is known. There are 26 fields with as many values
 * as in Kaggle's data set. In a field, the value of rank r (from 1) occurs with a probability in
 * proportion to r^-a; a fraction of the values is missing. The teacher has normally distributed
 * weights: one for each id, one for each pair of ids of some neighbouring fields, and one for the
 * centred logarithm of each of the 13 numbers. The logit of a click's probability p is the weighted
 * sum plus a constant with which 25.6 % of the rows are clicks; the label is drawn with probability
 * p. The attribute best_auc is the AUC of p itself. With drift D, each value is replaced by a new
 * one D times between the first and the last row of the training set; each value has its own times
 * for this. A row follows from its number, the seed, --samples, --drift and --rows. */
#include "table_file.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    NUMBERS = 13,
    FIELDS = 26,
    /* number of rows that a thread makes and writes as a unit */
    BLOCK_ROWS = 1 << 13,
    /* largest number of rows from which the constant is found */
    SAMPLE_ROWS = 1 << 16,
    /* number of random words of 32 bits that are drawn for a row; two per field are used */
    DRAWS = 64
};
/* fraction of rows that are clicks */
#define CLICK_RATE 0.256

static const struct {
    /* number of values in Kaggle's data set */
    uint32_t values;
    /* missing values per thousand */
    int missing;
    /* 100 times the exponent a */
    int exponent_hundredths;
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
    /* rows of the training set, the unit of time */
    int64_t samples;
    /* ids are hashes below this number; 0: bits 0 to 31 of an id are the value, bit 32 is set if
     * the value is missing, and bits from 33 on are the index of the field */
    int64_t id_limit;
    /* replacements of a value over the training set */
    double drift;
    /* constant added to every logit */
    double bias;
    /* for each field: if u is uniform in [0, 1), (1 + u * span)^(1 / (1 - a)) is the rank */
    double span[FIELDS];
    /* first row of the data set that is being written */
    int64_t first;
    /* number of rows of the data set that is being written */
    int64_t count;
    const TableWriter *writer;
    /* probability of a click in each row; owned by make_set */
    float *p;
    /* 1 for each row with a click, else 0; owned by make_set */
    uint8_t *clicked;
} Maker;

/* Converts random bits to a uniform number in [0, 1) with 53 bits. */
static double uniform(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

static uint64_t hash(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t key[2] = {a, b};
    return XXH3_64bits_withSeed(key, sizeof key, seed);
}

/* Converts random bits to a normally distributed number (Box and Muller 1958). */
static double normal(uint64_t bits)
{
    double u = uniform(bits), v = (double)(bits & 0x7ff) / 2048;
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* Returns the image of x under a permutation of the numbers of 32 bits, so that ids do not show the
 * ranks. */
static uint32_t scramble(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

/* Returns an id of field f. u: a uniform number in [0, 1), which selects the rank of the value.
 * time: 0 at the first row, 1 at the end of the training set; the value of this rank has been
 * replaced drift * time times until then. */
static uint64_t draw_id(const Maker *m, int f, double u, double time)
{
    double a = fields[f].exponent_hundredths / 100.0, n = fields[f].values;
    double x = pow(1 + u * m->span[f], 1 / (1 - a));
    uint64_t rank = x < 1 ? 1 : x > n ? (uint64_t)n : (uint64_t)x;
    double phase = uniform(hash(m->seed, rank, (uint64_t)f));
    uint64_t replaced = (uint64_t)(m->drift * time + phase);
    return (uint64_t)f << 33 | scramble((uint32_t)(rank - 1 + replaced * fields[f].values));
}

/* Makes one row: NUMBERS numbers and FIELDS ids. Returns the teacher's logit without the bias. */
static double make_row(const Maker *m, int64_t row, float *dense, uint64_t *id)
{
    uint32_t draw[DRAWS];
    RngKey key = rng_key(m->seed, RNG_TEST, (uint64_t)row, 0x637269);
    double time = (double)row / (double)m->samples, logit = 0;
    for (uint64_t i = 0; i < DRAWS / 4; ++i) rng_block(key, i, draw + 4 * i);
    for (int f = 0; f < FIELDS; ++f) {
        uint64_t bits = (uint64_t)draw[2 * f] << 32 | draw[2 * f + 1];
        bool missing = (int)(draw[2 * f + 1] % 1000) < fields[f].missing;
        id[f] =
            missing ? (uint64_t)f << 33 | UINT64_C(1) << 32 : draw_id(m, f, uniform(bits), time);
        logit += 0.35 * normal(hash(m->seed, id[f], 1));
        if (f > 0 && f % 3 == 0) logit += 0.25 * normal(hash(id[f - 1], id[f], m->seed));
    }
    /* the numbers are counts with a log-normal distribution; its mean grows with the index i */
    for (int i = 0; i < NUMBERS; ++i) {
        double z = normal(hash(m->seed, (uint64_t)row, (uint64_t)(1000 + i)));
        double x = floor(exp(0.5 + 0.2 * i + 1.2 * z));
        dense[i] = (float)log1p(x);
        logit += 0.1 * normal(hash(m->seed, (uint64_t)i, 2)) * (log1p(x) - 1 - 0.2 * i);
    }
    return logit;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Finds by bisection the bias with which a fraction CLICK_RATE of some rows are clicks. */
static void find_bias(Maker *m)
{
    int64_t rows = SAMPLE_ROWS < m->samples ? SAMPLE_ROWS : m->samples;
    double *logit = mem_new((size_t)rows * sizeof *logit), lo = -30, hi = 30;
    float dense[NUMBERS];
    uint64_t id[FIELDS];
    for (int64_t i = 0; i < rows; ++i) logit[i] = make_row(m, i * (m->samples / rows), dense, id);
    for (int step = 0; step < 60; ++step) {
        double sum = 0, middle = (lo + hi) / 2;
        for (int64_t i = 0; i < rows; ++i) sum += sigmoid(logit[i] + middle);
        *(sum > CLICK_RATE * (double)rows ? &hi : &lo) = middle;
    }
    m->bias = (lo + hi) / 2;
    mem_free(&logit);
}

static Status make_block(void *user, int worker, int64_t block)
{
    Maker *m = user;
    int64_t first = block * BLOCK_ROWS,
            count = m->count - first < BLOCK_ROWS ? m->count - first : BLOCK_ROWS;
    float *dense = mem_new(BLOCK_ROWS * NUMBERS * sizeof *dense);
    uint64_t *ids = mem_new(BLOCK_ROWS * FIELDS * sizeof *ids);
    int32_t *y = mem_new(BLOCK_ROWS * sizeof *y);
    (void)worker;
    for (int64_t i = 0; i < count; ++i) {
        int64_t row = m->first + first + i;
        uint64_t *id = ids + i * FIELDS;
        double p = sigmoid(make_row(m, row, dense + i * NUMBERS, id) + m->bias);
        y[i] = uniform(hash(m->seed, (uint64_t)row, 3)) < p;
        m->p[first + i] = (float)p;
        m->clicked[first + i] = (uint8_t)y[i];
        for (uint64_t f = 0; m->id_limit > 0 && f < FIELDS; ++f)
            id[f] = hash(f, id[f], 4) % (uint64_t)m->id_limit;
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

/* Returns the AUC. A pair is a row with a click and a row without. The AUC is the fraction of all
 * pairs in which the row with the click has the larger p; pairs with equal p count half. */
static double compute_auc(const float *p, const uint8_t *clicked, int64_t n)
{
    Scored *s = mem_new((size_t)n * sizeof *s);
    double pairs = 0, negatives = 0, clicks = 0;
    for (int64_t i = 0; i < n; ++i) s[i] = (Scored){p[i], clicked[i]};
    qsort(s, (size_t)n, sizeof *s, by_p);
    for (int64_t i = 0, end; i < n; i = end) {
        double equal_clicks = 0, equal_negatives = 0;
        for (end = i; end < n && s[end].p == s[i].p; ++end)
            *(s[end].clicked ? &equal_clicks : &equal_negatives) += 1;
        pairs += equal_clicks * (negatives + equal_negatives / 2);
        negatives += equal_negatives;
        clicks += equal_clicks;
    }
    mem_free(&s);
    return clicks > 0 && negatives > 0 ? pairs / (clicks * negatives) : 0.5;
}

static herr_t put_best(void *user, hid_t file)
{
    return h5_put_numbers(file, "best_auc", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, user, 0);
}

/* Writes m->count rows, from row m->first on, as a data set. */
static Status make_set(Maker *m, const char *out, bool force, int threads)
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
                          .id_limit = (uint64_t)m->id_limit,
                          .class_name = {"0", "1"}};
    TableWriter writer;
    TRY(table_new(&writer, out, force, &layout));
    m->writer = &writer;
    m->p = mem_new((size_t)m->count * sizeof *m->p);
    m->clicked = mem_new((size_t)m->count);
    Status st = worker_pool_run(threads, (m->count + BLOCK_ROWS - 1) / BLOCK_ROWS, make_block, m);
    double best = st == OK ? compute_auc(m->p, m->clicked, m->count) : 0;
    if (st == OK) st = part_update(&writer.part, put_best, &best);
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
     .default_text = "1000000", .help = "number of samples"},
    {"--test", FLAG_FIELD(MakeOptions, test), .value = "OUT", .writes = true,
     .help = "second data set, with the rows that follow"},
    {"--test-samples", FLAG_FIELD(MakeOptions, test_samples), .value = "N", .lo = 1, .hi = 0x1p40,
     .default_text = "100000", .needs = "--test",
     .help = "number of samples in the second data set"},
    {"--seed", FLAG_FIELD(MakeOptions, seed), .value = "S", .lo = 0, .hi = FLAG_WHOLE_MAX,
     .default_text = "0", .help = "seed of the teacher and the rows"},
    {"--rows", FLAG_FIELD(MakeOptions, rows), .value = "R", .lo = 2, .hi = FLAG_WHOLE_MAX,
     .help =
         "ids are hashes of field and value, below R; by default the value is the low 32 bits of "
         "an id and the field the bits above, so that values never share an id"},
    {"--drift", FLAG_FIELD(MakeOptions, drift), .value = "D", .hi = 100, .default_text = "0",
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
    TRY(part_check_outputs(o->out, o->test, o->force));
    Maker m = {.seed = (uint64_t)o->seed,
               .samples = o->samples,
               .id_limit = o->rows > 1 ? o->rows : 0,
               .drift = o->drift,
               .count = o->samples};
    for (int f = 0; f < FIELDS; ++f)
        m.span[f] = pow(fields[f].values + 1.0, 1 - fields[f].exponent_hundredths / 100.0) - 1;
    find_bias(&m);
    TRY(make_set(&m, o->out, o->force, threads));
    m.first = o->samples;
    m.count = o->test_samples;
    return o->test ? make_set(&m, o->test, o->force, threads) : OK;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_make_criteo = {
    .name = "data make criteo-like",
    .help = "generates clicks from a known teacher model, in the form of Criteo's logs",
    .more = "Each row has 13 numbers and 26 fields with as many values as in Kaggle's data set. "
            "A teacher model gives the probability of a click for each row. The attribute "
            "best_auc is the AUC of these probabilities; no model can exceed it except by chance.",
    VERB_FLAGS(MakeOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
