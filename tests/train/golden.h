/* Comparison with loss curves that PyTorch has computed. The curves are in tests/golden; the script
 * tools/golden_models.py has made them. The script's weights and data are made here by the same
 * formula.
 *
 * Differences by rounding grow from step to step, by a factor that depends on the model; the factor
 * is large for deep models with batch norms on 8 samples. To measure this growth, the files have a
 * second number with each loss: the relative difference between PyTorch's results in single and in
 * double precision, called `strays` here. The tolerance, relative to the loss in double precision,
 * is GOLDEN_SPREAD times the largest such difference up to the step, but at least a floor. */
#ifndef WEFT_TESTS_GOLDEN_H
#define WEFT_TESTS_GOLDEN_H

#include "next_step.h"
#include "train/trainer.h"

#include "harness.h"
#include "train.h"

#include <math.h>

/* Floors of the tolerance. In a model with relus, a single input of a relu that falls on the other
 * side of 0 changes the loss by 2e-5 (GOLDEN_FLOOR_CORNERS). A model without relus only has its
 * rounding (GOLDEN_FLOOR_SMOOTH). */
static const double GOLDEN_FLOOR_CORNERS = 1e-4, GOLDEN_FLOOR_SMOOTH = 4e-6, GOLDEN_SPREAD = 3;
enum { GOLDEN_STEPS = 10, GOLDEN_LINE = 512 };

static inline uint32_t golden_hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; ++text) h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* Returns element i of the tensor whose name has the hash `name`, by the script's formula. It is in
 * [-1, 1), and a multiple of 2^-23. */
static inline float golden_noise(uint32_t name, uint32_t i)
{
    uint32_t h = i * 0x9E3779B9u + name;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    h ^= h >> 16;
    return ((float)(h >> 8) - 8388608.0f) * 0x1p-23f;
}

/* Returns the hash of a name such as "y7", that is, name 'y' and i 7. */
static inline uint32_t golden_hash_of(char name, int64_t i)
{
    char label[32];
    snprintf(label, sizeof label, "%c%lld", name, (long long)i);
    return golden_hash(label);
}

/* Returns the number from 0 to count - 1 that the script draws for a name such as "y7". */
static inline int32_t golden_draw(char name, int64_t i, int64_t count)
{
    return (int32_t)(golden_hash_of(name, i) % (uint32_t)count);
}

/* A loss curve of PyTorch. */
typedef struct Golden {
    /* name: name of the model; options: key=value words of its configuration */
    char name[64], options[GOLDEN_LINE];
    /* loss: loss of each step in double precision; strays: relative difference of the loss in
     * single precision */
    double loss[GOLDEN_STEPS], strays[GOLDEN_STEPS];
} Golden;

/* Finds the line "KIND NAME a b c OPTIONS" of a file, and reads the curve after it. numbers: number
 * of numbers before the options, 1 to 3. number: receives these numbers. Returns whether the line
 * was found. */
static inline bool golden_read(const char *path, const char *kind, const char *name, int numbers,
                               int *number, Golden *g)
{
    char line[GOLDEN_LINE], word[16];
    bool found = false;
    FILE *in = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    while (!found && fgets(line, sizeof line, in)) {
        int at = 0;
        found = sscanf(line, "%15s %63s%n", word, g->name, &at) == 2 && strcmp(word, kind) == 0 &&
                strcmp(g->name, name) == 0;
        char *rest = line + at;
        for (int i = 0; found && i < numbers; ++i) number[i] = (int)strtol(rest, &rest, 10);
        if (found) found = sscanf(rest, " %511[^\n]", g->options) == 1;
    }
    for (int s = 0; found && s < GOLDEN_STEPS; ++s)
        found = fscanf(in, "%lf %lf", &g->loss[s], &g->strays[s]) == 2;
    fclose(in);
    CU_ASSERT_TRUE(found);
    return found;
}

/* Returns the configuration `text` with the options from the file, which it takes apart. The caller
 * owns it. */
static inline Config *golden_config(Golden *g, const char *text)
{
    enum { MAX = 16 };
    char *word[MAX], *options = g->options;
    int count = 0;
    Config *config = NULL;
    for (char *w; count < MAX && (w = strsep(&options, " "));) word[count++] = w;
    train_use_words();
    CHECK_OK(config_parse(&config, "test.yaml", text, count, word));
    return config;
}

/* Fills the arena with the script's parameters. Weights are uniform with He's variance. Scales of
 * norms are 1 +- 0.1. Biases, and shifts of norms, are 0 +- 0.1. Running means are 0, running
 * variances 1. */
static inline void golden_params(const Graph *graph, const Plan *plan, float *arena)
{
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        if (p->tied_param >= 0) continue;
        int64_t n = shape_count(p->shape);
        bool weight = strstr(p->name, ".weight") != NULL;
        float scale = p->shape.ndim > 1 ? (float)sqrt(6.0 / (double)(n / p->shape.dim[0])) : 0.1f;
        float shift = p->shape.ndim == 1 && weight ? 1.0f : 0.0f;
        float *plain = mem_new((size_t)n * sizeof *plain);
        uint32_t name = golden_hash(p->name);
        for (int64_t k = 0; k < n; ++k) {
            float v = golden_noise(name, (uint32_t)k) * scale;
            plain[k] = p->info.is_statistic ? (float)(p->info.init == INIT_ONE) : v + shift;
        }
        op_pack(graph->node[p->node].op, p->slot, plain, arena + plan->param_offset[i]);
        mem_free(&plain);
    }
}

/* Checks the loss of a step. floor: GOLDEN_FLOOR_CORNERS or GOLDEN_FLOOR_SMOOTH. */
static inline void golden_check(const Golden *g, int step, double loss, double floor)
{
    double spread = 0, off = fabs(loss - g->loss[step]) / g->loss[step];
    for (int s = 0; s <= step; ++s) spread = fmax(spread, g->strays[s]);
    double allowed = fmax(floor, GOLDEN_SPREAD * spread);
    CU_ASSERT(off <= allowed);
    if (getenv("WEFT_TEST_VERBOSE") || !(off <= allowed))
        printf("  %s step %d: loss %.9g, PyTorch %.9g: off by %.1e, allowed %.1e\n", g->name, step,
               loss, g->loss[step], off, allowed);
}

/* Compares the first numbers of every parameter and running statistic with the lines "tensor NAME
 * NUMBERS" of a file. The difference may be at most near * max(1, |number|). The executor must have
 * all parameters. */
static inline void golden_check_tensors(const char *path, const Graph *graph, Executor *executor,
                                        double near)
{
    char line[GOLDEN_LINE], name[64];
    int found = 0;
    double most = 0;
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        int at = 0, i = 0;
        if (sscanf(line, "tensor %63s%n", name, &at) != 1) continue;
        while (i < graph->param_count && strcmp(graph->param[i].name, name) != 0) ++i;
        CU_ASSERT_TRUE_FATAL(i < graph->param_count);
        const Param *p = &graph->param[i];
        float *plain = mem_new((size_t)shape_count(p->shape) * sizeof *plain);
        op_unpack(graph->node[p->node].op, p->slot, executor_param(executor, i), plain);
        char *end = line + at;
        for (int k = 0; *end != '\n'; ++k) {
            double want = strtod(end, &end), off = fabs((double)plain[k] - want);
            CU_ASSERT(off <= near * fmax(1, fabs(want)));
            if (!(off <= near * fmax(1, fabs(want))))
                printf("  %s[%d]: %.9g, PyTorch %.9g\n", name, k, (double)plain[k], want);
            most = fmax(most, off / fmax(1, fabs(want)));
        }
        mem_free(&plain);
        ++found;
    }
    if (in) fclose(in);
    CU_ASSERT_EQUAL(found, graph->param_count);
    if (getenv("WEFT_TEST_VERBOSE"))
        printf("  %s: %d tensors, off by %.1e at most, allowed %.1e\n", path, found, most, near);
}

#endif
