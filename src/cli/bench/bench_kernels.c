/* weft bench kernels [NAME ...]: measures the CPU's memory-bound kernels in every memory layout and
 * with every instruction set of this processor. Each is compared with a copy of the same number of
 * bytes; if the data of the kernel fit into a cache, the data of the copy do, too. Most shapes are
 * from resnet50, resnet18 and GPT-2. Flat arrays have two sizes: one that fits into a cache, and
 * about the number of resnet50's parameters. */
#include "../private.h"

#include "bench_op.h"
#include "layers.h"
#include "model.h"

#include <string.h>

/* One layer to measure. */
typedef struct Case {
    /* name of the layer kind */
    const char *kind;
    /* attributes of the layer, "key=value ..." */
    const char *attrs;
    /* activation that is fused into the layer */
    Act act;
    /* true: the addition of another input is fused into the layer */
    bool residual;
    /* number of dimensions of the input */
    int ndim;
    /* shape of the input, [ndim] */
    int64_t dim[4];
} Case;

#define IMAGES(n, c, h)                                                                            \
    4,                                                                                             \
    {                                                                                              \
        n, c, h, h                                                                                 \
    }
#define SEQUENCE(n, t, c)                                                                          \
    3,                                                                                             \
    {                                                                                              \
        n, t, c, 1                                                                                 \
    }
static const Case cases[] = {
    {"max_pool", "kernel=3 stride=2 pad=1", ACT_NONE, false, IMAGES(32, 64, 112)},
    {"max_pool", "kernel=3 stride=2 pad=1", ACT_NONE, false, IMAGES(2, 64, 56)},
    {"max_pool", "kernel=2 stride=2", ACT_RELU, false, IMAGES(64, 32, 28)},
    {"avg_pool", "kernel=2 stride=2", ACT_NONE, false, IMAGES(64, 32, 28)},
    {"global_pool", "", ACT_NONE, false, IMAGES(8, 2048, 7)},
    {"global_pool", "", ACT_NONE, false, IMAGES(32, 512, 4)},
    {"batch_norm", "", ACT_RELU, false, IMAGES(32, 64, 112)},
    {"batch_norm", "", ACT_RELU, false, IMAGES(32, 64, 28)},
    {"batch_norm", "", ACT_RELU, false, IMAGES(32, 256, 7)},
    {"batch_norm", "", ACT_RELU, true, IMAGES(32, 512, 4)},
    {"batch_norm", "", ACT_RELU, true, IMAGES(8, 256, 56)},
    {"group_norm", "groups=32", ACT_NONE, false, IMAGES(8, 256, 56)},
    {"upsample", "", ACT_NONE, false, IMAGES(8, 64, 56)},
    {"upsample", "mode=bilinear", ACT_NONE, false, IMAGES(8, 64, 56)},
    {"pad", "pad=1 mode=circular", ACT_NONE, false, IMAGES(8, 64, 56)},
    {"pixel_shuffle", "", ACT_NONE, false, IMAGES(8, 64, 56)},
    {"relu", "", ACT_NONE, false, IMAGES(32, 64, 28)},
    {"add", "", ACT_RELU, false, IMAGES(32, 64, 28)},
    {"add", "", ACT_RELU, false, IMAGES(32, 256, 56)},
    {"dropout", "p=0.5", ACT_NONE, false, IMAGES(32, 64, 28)},
    {"layer_norm", "", ACT_NONE, false, SEQUENCE(4, 1024, 768)},
    {"rms_norm", "", ACT_NONE, false, SEQUENCE(4, 1024, 768)},
    {"gelu", "", ACT_NONE, false, SEQUENCE(4, 1024, 3072)},
    {"silu", "", ACT_NONE, false, SEQUENCE(4, 1024, 3072)},
    {"tanh", "", ACT_NONE, false, SEQUENCE(4, 1024, 3072)},
    {"swiglu", "", ACT_NONE, false, SEQUENCE(4, 1024, 3072)},
    {"add", "", ACT_NONE, false, SEQUENCE(4, 1024, 768)},
    {"dropout", "p=0.1", ACT_NONE, false, SEQUENCE(4, 1024, 768)},
};
enum { CASES = sizeof cases / sizeof *cases, FLAT_KERNELS_MAX = 16 };
/* numbers of elements of flat arrays: an array that fits into a cache, and one of about the size of
 * resnet50's parameters */
static const int64_t flat_sizes[] = {1 << 20, 25 << 20};

typedef struct Layout {
    const char *name;
    /* number of channels that are adjacent in memory; 0: all channels of an image */
    int block;
} Layout;
static const Layout layouts[] = {
    {"plain", 1}, {"blocks of 8", 8}, {"blocks of 16", 16}, {"channels last", 0}};

typedef struct KernelsOptions {
    /* index of an instruction set in CPU_SET_WORDS; -1: all sets */
    int cpu;
    int64_t threads;
    bool json;
} KernelsOptions;

static const Flag flags[] = {
    {"--cpu", FLAG_FIELD(KernelsOptions, cpu), .value = LIST_TEXT(CPU_SET_WORDS),
     .help = "measures only this instruction set"},
    {"--threads", FLAG_FIELD(KernelsOptions, threads), .value = "T", .lo = 1, .hi = 1024,
     .default_text = "1", .help = "CPU threads"},
    {"--json", FLAG_FIELD(KernelsOptions, json), .help = "one JSON object per line"},
};

static Status set_attrs(const LayerKind *kind, const char *attrs, OpSpec *spec, LayerSize *size)
{
    char *text = mem_text(attrs), *rest = text;
    Status status = OK;
    for (char *word; status == OK && (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value = '\0';
        status = layer_set_attr(kind, spec, size, word, value + 1);
    }
    mem_free(&text);
    return status;
}

/* Makes the operation of a case with channels in blocks of `block`. */
static Status make_spec(const Case *c, int block, OpSpec *spec)
{
    const LayerKind *kind = layer_kind(c->kind);
    LayerParam param[SPEC_PARAMS] = {{0}};
    LayerSize size = {0};
    *spec = (OpSpec){0};
    if (!kind) return fail(ERR_BUG, "%s: no such layer", c->kind);
    TRY(layer_begin(kind, spec, &size));
    spec->residual = c->residual;
    TRY(set_attrs(kind, c->attrs, spec, &size));
    spec->x_count = (kind->inputs < 0 ? 2 : kind->inputs) + c->residual;
    for (int i = 0; i < spec->x_count; ++i) {
        spec->x[i] =
            desc_plain(shape_of(c->ndim, c->dim[0], c->dim[1], c->dim[2], c->dim[3]), DTYPE_F32);
        spec->x[i].block = block;
        spec->need_dx[i] = true;
    }
    TRY(layer_infer_shapes(kind, spec, &size, param));
    if (c->act != ACT_NONE) spec->act = c->act;
    return OK;
}

static Status measure(const Case *c, const Layout *layout, InstructionSet set, Backend *backend,
                      bool json)
{
    OpSpec spec;
    Op *op = NULL;
    Desc preferred[SPEC_INPUTS];
    BenchLine line[2];
    TRY(make_spec(c, layout->block ? layout->block : (int)c->dim[1], &spec));
    TRY(op_new(&op, backend, &spec, preferred));
    int count = bench_op(line, op, c->kind);
    for (int i = 0; i < count; ++i) {
        line[i].cpu_set = cpu_name(set);
        line[i].layout = c->ndim == 4 ? layout->name : "rows";
        bench_line_print(&line[i], json);
    }
    fflush(stdout);
    op_free(&op);
    return OK;
}

static bool is_selected(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; ++i)
        if (strcmp(argv[i], name) == 0) return true;
    return argc == 0;
}

static void measure_flat(int kernel, InstructionSet set, Backend *backend, bool json)
{
    for (size_t i = 0; i < sizeof flat_sizes / sizeof *flat_sizes; ++i) {
        BenchLine line;
        bench_flat(&line, backend, kernel, flat_sizes[i]);
        line.cpu_set = cpu_name(set);
        line.layout = "rows";
        bench_line_print(&line, json);
        fflush(stdout);
    }
}

static Status measure_set(InstructionSet set, Backend *backend, int argc, char **argv, bool json)
{
    if (!cpu_kernels_use(set))
        return fail(ERR_CONFIG, "this processor has no %s, or weft was built without it",
                    cpu_name(set));
    for (int c = 0; c < CASES; ++c) {
        int count = cases[c].ndim == 4 ? (int)(sizeof layouts / sizeof *layouts) : 1;
        for (int l = 0; is_selected(cases[c].kind, argc, argv) && l < count; ++l)
            TRY(measure(&cases[c], &layouts[l], set, backend, json));
    }
    for (int k = 0; bench_flat_name(k); ++k)
        if (is_selected(bench_flat_name(k), argc, argv)) measure_flat(k, set, backend, json);
    return OK;
}

static Status check_names(int argc, char **argv)
{
    const char *names[CASES + FLAT_KERNELS_MAX];
    int count = 0;
    for (int c = 0; c < CASES; ++c)
        if (c == 0 || strcmp(cases[c].kind, cases[c - 1].kind) != 0) names[count++] = cases[c].kind;
    for (int k = 0; k < FLAT_KERNELS_MAX && bench_flat_name(k); ++k)
        names[count++] = bench_flat_name(k);
    for (int i = 0; i < argc; ++i) {
        bool known = false;
        for (int n = 0; n < count; ++n) known = known || strcmp(names[n], argv[i]) == 0;
        if (known) continue;
        const char *near = text_nearest(argv[i], names, count);
        return fail(ERR_USAGE, "'%s' is not among the measured kernels%s%s%s", argv[i],
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return OK;
}

static Status run(int argc, char **argv, const void *options)
{
    const KernelsOptions *o = options;
    Backend *backend = NULL;
    const int first = o->cpu < 0 ? CPU_BASE : CPU_BASE + o->cpu;
    const int last = o->cpu < 0 ? (int)cpu_best() : first;
    TRY(check_names(argc, argv));
    TRY(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = (int)o->threads}));
    if (!o->json) bench_line_head(true);
    Status status = OK;
    for (int set = first; status == OK && set <= last; ++set)
        status = measure_set((InstructionSet)set, backend, argc, argv, o->json);
    backend_close(&backend);
    return status;
}

const Verb verb_bench_kernels = {
    .name = "bench kernels",
    .words = "[NAME ...]",
    .help = "times memory-bound CPU kernels by layout and instruction set, and compares them "
            "with a copy",
    .more = "NAME is a layer, as max_pool, or an operation on flat arrays, as sgd. A share is "
            "the kernel's rate divided by that of a copy of as many bytes.\n"
            "The bytes are those that the algorithm has to move.\n",
    VERB_FLAGS(KernelsOptions, flags),
    .traits = VERB_THREADS,
    .run = run,
};
