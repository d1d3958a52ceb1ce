/* optim.slim adds the slope of the channel scales' absolute values to their gradients, and to
 * nothing else; a shard of a tensor gets the same as the whole. */
#include "golden.h"

enum { N = 96, SCALES = 40, FIRST = 16 };
static const float SLIM = 1e-2f;

static Backend *backend_new(void)
{
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    return backend;
}

static Config *config_new(const char *text)
{
    Config *config = NULL;
    config_use_words(optim_words, OPTIM_WORDS);
    CHECK_OK(config_parse(&config, "test", text, 0, NULL));
    return config;
}

/* A weight, then channel scales: some positive, some negative, one 0. */
static const OptimRange ranges[] = {{.elements = FIRST, .decay = true},
                                    {.offset = FIRST, .elements = SCALES, .channel_scale = true}};

static void fill(float *w, float *g)
{
    for (int i = 0; i < N; ++i) {
        w[i] = noise("w", (uint32_t)i);
        g[i] = noise("g", (uint32_t)i);
    }
    w[FIRST + 3] = 0;
}

static float expected(float g, float w, float by)
{
    return w > 0 ? g + by : w < 0 ? g - by : g;
}

/* Compared with the formula, and with one step of SGD after it: w - lr (g + slim sign(w)), as in
 * PyTorch with the same term added to .grad. */
static void adds(void)
{
    float w[N], g[N], w0[N], g0[N];
    Optim *optim = NULL;
    Backend *backend = backend_new();
    Config *config = config_new("optim: {name: sgd, lr: 0.1, slim: 0.01}");
    CHECK_OK(optim_new(&optim, config, backend, ranges, 2, N));
    fill(w, g);
    memcpy(w0, w, sizeof w);
    memcpy(g0, g, sizeof g);
    int moved[3] = {0};
    optim_add_slim(optim, w, g, 1);
    for (int i = 0; i < N; ++i) {
        bool scale = i >= FIRST && i < FIRST + SCALES;
        CU_ASSERT_EQUAL(g[i], scale ? expected(g0[i], w0[i], SLIM) : g0[i]);
        ++moved[1 + (g[i] > g0[i]) - (g[i] < g0[i])];
    }
    CU_ASSERT(moved[0] > 5 && moved[2] > 5);
    CU_ASSERT_EQUAL(g[FIRST + 3], g0[FIRST + 3]);
    optim_step(optim, w, g, 0.1, 1);
    for (int i = FIRST; i < FIRST + SCALES; ++i)
        CU_ASSERT_DOUBLE_EQUAL(w[i], w0[i] - 0.1f * expected(g0[i], w0[i], SLIM), 1e-7);
    /* with a loss scale: larger by that factor */
    fill(w, g);
    optim_add_slim(optim, w, g, 1024);
    CU_ASSERT_EQUAL(g[FIRST], expected(g0[FIRST], w0[FIRST], 1024 * SLIM));
    optim_free(&optim);
    config_free(&config);
    backend_close(&backend);
}

static void gather(void *user, double *chunk, int sets)
{
    (void)user;
    (void)chunk;
    (void)sets;
}

/* This rank has only the scales, packed: both arenas begin with them. */
static void shares(void)
{
    static const int64_t zero[] = {0, 0}, count[] = {0, SCALES};
    const OptimShard share = {.first = zero,
                              .count = count,
                              .value_offset = zero,
                              .grad_arena_offset = zero,
                              .gather = gather};
    float w[N], g[N], g0[N];
    Optim *optim = NULL;
    Backend *backend = backend_new();
    Config *config = config_new("optim: {name: sgd, slim: 0.01}");
    CHECK_OK(optim_new_shard(&optim, config, backend, ranges, 2, &share));
    fill(w, g);
    memcpy(g0, g, sizeof g);
    optim_add_slim(optim, w, g, 1);
    for (int i = 0; i < N; ++i)
        CU_ASSERT_EQUAL(g[i], i < SCALES ? expected(g0[i], w[i], SLIM) : g0[i]);
    optim_free(&optim);
    config_free(&config);
    backend_close(&backend);
}

TEST_MAIN("slim", {"the sign of each scale", adds}, {"a share", shares})
