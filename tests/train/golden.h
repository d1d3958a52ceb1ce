/* Loss curves computed by PyTorch, in tests/golden (tools/golden_models.py). The script's weights
 * and data are made here by the same formula. Rounding differences grow from step to step, by a
 * factor that depends on the model (deep batch norms on 8 samples: a lot). The files give with each
 * loss the distance between PyTorch's single and double precision, which measures that growth.
 * Tolerance, relative to double precision: a floor, or GOLDEN_SPREAD times the largest such
 * distance up to this step. */
#ifndef WEFT_TESTS_GOLDEN_H
#define WEFT_TESTS_GOLDEN_H

#include "next_step.h"
#include "train/trainer.h"

#include "harness.h"
#include "train.h"

#include <math.h>

/* A single relu that falls on the other side of 0 moves the loss by 2e-5; a model without relus
 * moves only by its rounding. */
static const double GOLDEN_FLOOR_CORNERS = 1e-4, GOLDEN_FLOOR_SMOOTH = 4e-6, GOLDEN_SPREAD = 3;
enum { GOLDEN_STEPS = 10, GOLDEN_LINE = 512 };

static inline uint32_t golden_hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; ++text) h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* Returns element i of the tensor whose name has the hash `name`, by the script's formula: in [-1,
 * 1), a multiple of 2^-23. */
static inline float golden_noise(uint32_t name, uint32_t i)
{
    uint32_t h = i * 0x9E3779B9u + name;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    h ^= h >> 16;
    return ((float)(h >> 8) - 8388608.0f) * 0x1p-23f;
}

/* Hash of a name like "y7". */
static inline uint32_t golden_hash_of(char name, int64_t i)
{
    char label[32];
    snprintf(label, sizeof label, "%c%lld", name, (long long)i);
    return golden_hash(label);
}

/* Returns the script's draw for a name like "y7", below `count`. */
static inline int32_t golden_draw(char name, int64_t i, int64_t count)
{
    return (int32_t)(golden_hash_of(name, i) % (uint32_t)count);
}

typedef struct Golden {
    char name[64], options[GOLDEN_LINE];
    double loss[GOLDEN_STEPS], strays[GOLDEN_STEPS];
} Golden;

/* Finds the line "KIND NAME a b c OPTIONS" of a file, with `numbers` numbers (1 to 3) before the
 * options, and reads the curve after it. */
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

/* Returns a configuration: `text` with the options from the file. */
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

/* Fills the arena with the script's weights: uniform with He's variance; scales of norms 1 +- 0.1;
 * biases and shifts +- 0.1; running statistics 0 and 1. */
static inline void golden_params(const Graph *graph, const Plan *plan, float *arena)
{
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        if (p->tied >= 0) continue;
        int64_t n = shape_count(p->shape);
        bool weight = strstr(p->name, ".weight") != NULL;
        float scale = p->shape.ndim > 1 ? (float)sqrt(6.0 / (double)(n / p->shape.dim[0])) : 0.1f;
        float shift = p->shape.ndim == 1 && weight ? 1.0f : 0.0f;
        float *plain = mem_new((size_t)n * sizeof *plain);
        uint32_t name = golden_hash(p->name);
        for (int64_t k = 0; k < n; ++k) {
            float v = golden_noise(name, (uint32_t)k) * scale;
            plain[k] = p->info.buffer ? (float)(p->info.init == INIT_ONE) : v + shift;
        }
        op_pack(graph->node[p->node].op, p->slot, plain, arena + plan->param_offset[i]);
        mem_free(&plain);
    }
}

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

/* Compares the first numbers of every tensor, running statistics too, with a file's lines "tensor
 * NAME numbers": at most `near` max(1, |number|) apart. The executor holds all parameters. */
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
