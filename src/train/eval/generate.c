/* Generates text with a trained model of tokens. For each new token the whole model runs forward on
 * the last model.context tokens, and the new token is drawn from the logits at the last of them. A
 * causal model ignores the padding that follows if there are fewer tokens. */
#include "../trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Candidate {
    float logit;
    int32_t token;
} Candidate;

typedef struct Generator {
    const Sampling *sampling;
    Trainer *trainer;
    RngKey key;
    /* number of tokens of a sample */
    int64_t context;
    /* number of different tokens */
    int64_t vocab;
    /* one sample; its arrays are owned */
    MicroBatch batch;
    /* number of tokens in the sample; padding follows them */
    int64_t filled;
    /* all tokens with their logits, Candidate[vocab]; owned */
    Candidate *candidate;
} Generator;

static void generator_init(Generator *g, Trainer *t, const Sampling *sampling)
{
    *g = (Generator){.sampling = sampling,
                     .trainer = t,
                     .key = rng_key(sampling->seed, RNG_GENERATE, 0, 0),
                     .context = t->train_set.context,
                     .vocab = t->graph->classes};
    size_t bytes = (size_t)g->context * sizeof *g->batch.tokens;
    g->batch = (MicroBatch){.tokens = mem_new(bytes),
                            .labels = mem_new(bytes),
                            .sample = mem_new(sizeof *g->batch.sample),
                            .rows = 1};
    g->candidate = mem_new((size_t)g->vocab * sizeof *g->candidate);
}

static void generator_fini(Generator *g)
{
    mem_free(&g->batch.tokens);
    mem_free(&g->batch.labels);
    mem_free(&g->batch.sample);
    mem_free(&g->candidate);
}

/* Appends a token. If the sample is full, its oldest token is dropped. */
static void append(Generator *g, int32_t token)
{
    int32_t *window = g->batch.tokens;
    if (g->filled == g->context)
        memmove(window, window + 1, (size_t)(--g->filled) * sizeof *window);
    window[g->filled++] = token;
}

/* Compares two candidates for qsort: the larger logit is first; of equal logits, the lower
 * token. */
static int likelier(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

/* Sorts the candidates for the next token, the likeliest first. */
static Status rank_candidates(Generator *g)
{
    const float *all;
    TRY(train_logits(g->trainer, &g->batch, &all));
    const float *logits = all + (g->filled - 1) * g->vocab;
    TRY(logits_check(logits, g->vocab));
    for (int64_t v = 0; v < g->vocab; ++v) g->candidate[v] = (Candidate){logits[v], (int32_t)v};
    qsort(g->candidate, (size_t)g->vocab, sizeof *g->candidate, likelier);
    return OK;
}

/* Returns the softmax weight of candidate i, before division by the sum. */
static double weight(const Generator *g, int64_t i)
{
    return exp((double)(g->candidate[i].logit - g->candidate[0].logit) / g->sampling->temperature);
}

/* Draws the new token with this number, counted from 0. */
static int32_t draw(const Generator *g, int64_t number)
{
    const Sampling *s = g->sampling;
    int64_t count = s->top_k ? s->top_k : g->vocab, i = 0;
    double sum = 0;
    if (s->temperature == 0) return g->candidate[0].token;
    for (int64_t k = 0; k < count; ++k) sum += weight(g, k);
    double left = (double)rng_uniform(g->key, (uint64_t)number) * sum - weight(g, 0);
    while (left >= 0 && i + 1 < count) left -= weight(g, ++i);
    return g->candidate[i].token;
}

static Status generate(Generator *g)
{
    const Sampling *s = g->sampling;
    for (int64_t i = 0; i < s->prompt_count; ++i) append(g, s->prompt[i]);
    for (int64_t n = 0; n < s->tokens; ++n) {
        TRY(rank_candidates(g));
        int32_t token = draw(g, n);
        append(g, token);
        s->take(s->user, token);
    }
    return OK;
}

/* Checks the requirements of train_generate, for which the caller is responsible. */
static Status check(const Trainer *t, const Sampling *s)
{
    int64_t vocab = t->graph->classes;
    bool good = data_has_tokens(&t->train_set) && t->world->size == 1 && t->batch == 1;
    good = good && s->prompt_count > 0 && s->top_k <= vocab && s->temperature >= 0;
    for (int64_t i = 0; good && i < s->prompt_count; ++i)
        good = s->prompt[i] >= 0 && s->prompt[i] < vocab;
    return good ? OK : fail(ERR_BUG, "this model cannot continue this prompt");
}

Status train_generate(Trainer *t, const Sampling *sampling)
{
    Generator g;
    TRY(check(t, sampling));
    generator_init(&g, t, sampling);
    Status st = generate(&g);
    generator_fini(&g);
    return st;
}
