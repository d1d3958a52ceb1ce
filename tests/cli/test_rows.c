/* The tables of the whole program: every row is complete, and a row that leaves something unsaid,
 * or says something that is not so, is refused by name. Each refused row is a copy of a good one
 * with one fault. */
#include "checkpoint/foreign/families.h"
#include "cli/cli.h"
#include "doctor.h"
#include "harness.h"
#include "layers/kinds.h"
#include "model.h"
#include "optim/curves.h"
#include "tensor/op_list.h"
#include "train.h"
#include "train/eval/best.h"

#include <string.h>

static void all_rows(void)
{
    train_use_words();
    CHECK_OK(rows_check());
    for (int i = 0; i < verb_count(); ++i)
        for (int j = 0; j < i; ++j) CU_ASSERT_STRING_NOT_EQUAL(verb_at(i)->name, verb_at(j)->name);
    CU_ASSERT_PTR_NULL(verb_at(verb_count()));
}

/* ---- operations and layers ---- */

/* Makes a copy of an operation's row with one enum set to 0. */
#define UNSAID(info, field)                                                                        \
    do {                                                                                           \
        OpInfo row = *(info);                                                                      \
        row.field = 0;                                                                             \
        CHECK_FAILS(op_info_check(&row), ERR_BUG,                                                  \
                    "operation batch_norm: ." #field " is not given");                             \
    } while (0)

static void operations(void)
{
    const OpInfo *norm = op_info(OP_BATCH_NORM);
    CHECK_OK(op_info_check(norm));
    UNSAID(norm, split);
    UNSAID(norm, fuse);
    UNSAID(norm, residual);
    UNSAID(norm, communication);
    UNSAID(norm, tokens);
    UNSAID(norm, params);
    UNSAID(norm, reads);
    UNSAID(norm, traffic);
    UNSAID(norm, dx);
    UNSAID(norm, acts);
    OpInfo row = *norm;
    row.name = NULL;
    CHECK_FAILS(op_info_check(&row), ERR_BUG, "operation without a name: .name is not given");
    row = *op_info(OP_BAG);
    row.params = PARAMS_NONE;
    CHECK_FAILS(op_info_check(&row), ERR_BUG, "operation bag: READS_IDS and PARAMS_SPARSE_ROWS");
    row = *op_info(OP_ADD);
    row.layer_help = NULL;
    CHECK_FAILS(op_info_check(&row), ERR_BUG, "operation add: .layer_inputs and .layer_help");
    row = *op_info(OP_LAYER_NORM);
    row.tokens = TOKENS_SEPARATE;
    CHECK_FAILS(op_info_check(&row), ERR_BUG, "operation layer_norm: .tokens is TOKENS_SEPARATE");
    row = *op_info(OP_ACTIVATION);
    row.tokens = TOKENS_SUMMED;
    CHECK_FAILS(op_info_check(&row), ERR_BUG, "operation activation: .tokens is TOKENS_SUMMED");
}

/* A shape rule whose parameter lacks its initialiser, then its use. */
static LayerParamUse infer_use;
static Init infer_init;
static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    spec->y = spec->x[0];
    set_norm_params(spec, param, spec->x[0].shape.dim[1], true);
    param[1].use = infer_use;
    param[1].init = infer_init;
    return OK;
}

static void refused_kind(LayerKind kind, const char *why)
{
    OpSpec spec = {0};
    LayerSize size = {0};
    CHECK_FAILS(layer_begin(&kind, &spec, &size), ERR_BUG, why);
}

static Status infer_kind(OpKind op)
{
    const LayerKind kind = {.name = "new",
                            .op = op,
                            .inputs = 1,
                            .channels = CHANNELS_KEEP,
                            .help = "?",
                            .infer = infer};
    OpSpec spec = {.x_count = 1, .x = {desc_plain(shape_of(2, 2, 8, 1, 1), DTYPE_F32)}};
    LayerSize size = {0};
    LayerParam param[SPEC_PARAMS];
    TRY(layer_begin(&kind, &spec, &size));
    return layer_infer_shapes(&kind, &spec, &size, param);
}

static void layers(void)
{
    LayerKind kind = *layer_kind("dense");
    CHECK_OK(layer_kind_check(&kind));
    kind.channels = CHANNELS_UNSET;
    refused_kind(kind, "layer kind dense: .channels is not given");
    kind = *layer_kind("dense");
    kind.help = NULL;
    refused_kind(kind, "layer kind dense: .help is not given");
    kind.help = "?", kind.infer = NULL;
    refused_kind(kind, "layer kind dense: .infer is not given");
    kind.op = OP_NONE;
    refused_kind(kind, "layer kind dense: .op is no operation");
    CU_ASSERT_STRING_EQUAL(layer_attr_fault(OP_DENSE, "xyzzy"), "has no row in attr.c");

    infer_use = USE_UNDECAYED, infer_init = INIT_ZERO;
    CHECK_OK(infer_kind(OP_LAYER_NORM));
    infer_init = INIT_UNSET;
    CHECK_FAILS(infer_kind(OP_LAYER_NORM), ERR_BUG, "layer kind new: parameter bias has no .init");
    infer_init = INIT_ZERO, infer_use = USE_UNSET;
    CHECK_FAILS(infer_kind(OP_LAYER_NORM), ERR_BUG, "layer kind new: parameter bias has no .use");
    infer_use = USE_UNDECAYED;
    CHECK_FAILS(infer_kind(OP_FLATTEN), ERR_BUG, "layer kind new: w_count is 2, which contradicts");
}

static void losses(void)
{
    static const char *const why[] = {".word", ".results", ".outputs", ".reads"};
    for (int i = 0; i < 4; ++i) {
        LayerKind kind = *layer_kind("mse_loss");
        LossInfo loss = *kind.loss;
        if (i == 0) loss.word.word = NULL;
        if (i == 1) loss.results = LOSS_RESULTS_UNSET;
        if (i == 2) loss.outputs = OUTPUTS_UNSET;
        if (i == 3) loss.reads = LOSS_READS_UNSET;
        kind.loss = &loss;
        char *text = mem_format("layer kind mse_loss: .loss: %s is not given", why[i]);
        refused_kind(kind, text);
        mem_free(&text);
    }
    LayerKind kind = *layer_kind("mse_loss");
    kind.loss = NULL;
    refused_kind(kind, "layer kind mse_loss: .loss is for losses");
    kind.loss = layer_kind("sigmoid_loss")->loss;
    refused_kind(kind, ".loss: .reads is not what its operation reads");
}

/* ---- rules and curves ---- */

/* A copy of the row. */
static OptimTable rule_of(const char *word)
{
    int i = 0;
    while (strcmp(optim_rule_at(i)->word.word, word)) ++i;
    return *optim_rule_at(i);
}

static void refused_rule(OptimTable table, const char *why)
{
    CHECK_FAILS(optim_rule_check(&table), ERR_BUG, why);
}

static void rules(void)
{
    OptimTable table = rule_of("adam");
    table.slot_name[1] = NULL;
    refused_rule(table, "optimizer adam: .slots is not the number of names in .slot_name");
    table = rule_of("adam");
    table.slots = 1;
    refused_rule(table, "optimizer adam: .slots is not the number of names in .slot_name");
    table.slots = OPTIM_SLOTS + 1;
    refused_rule(table, "optimizer adam: .slots is above OPTIM_SLOTS");
    table = rule_of("adam");
    table.word.word = NULL;
    refused_rule(table, "optimizer without a name: .word is not given");
    table = rule_of("adam");
    table.row_state = NULL;
    refused_rule(table, "optimizer adam: .row_state and .row_update go together");
    table = rule_of("adam");
    table.update = rule_of("lion").update;
    refused_rule(table, "optimizer adam: .update_pieces goes without .update");
    table = rule_of("adam");
    table.slots = 3, table.slot_name[2] = "third";
    refused_rule(table, "optimizer adam: .update_pieces goes with at most two .slots");
    table = rule_of("adam");
    table.scratch = SCRATCH_UNSET;
    refused_rule(table, "optimizer adam: .scratch is not given");
    table.scratch = SCRATCH_MEASURE;
    refused_rule(table, "optimizer adam: .scratch is SCRATCH_MEASURE only with .measure");
    table.scratch = SCRATCH_DIRECTION;
    refused_rule(table, "optimizer adam: .direction and SCRATCH_DIRECTION go together");
    table = rule_of("adam");
    table.devices = DEVICES_UNSET;
    refused_rule(table, "optimizer adam: .devices is not given");
    table = rule_of("lars");
    table.measure = NULL;
    refused_rule(table, "optimizer lars: .norms and .measure go together");
    table = rule_of("muon");
    table.work_floats = NULL;
    refused_rule(table, "optimizer muon: .direction, .whole and .work_floats go together");
    table.direction = NULL, table.whole = NULL, table.update = NULL;
    refused_rule(table, "optimizer muon: .update is not given");
}

/* An update of SGD that forgets the average. */
static void without_average(Optim *optim, const OptimRule *rule, const UpdatePiece *piece,
                            int count)
{
    (void)optim, (void)rule;
    for (int i = 0; i < count; ++i) piece[i].m[0] = piece[i].g[0];
}

/* The fields of each rule agree with the memory and the functions that the rule uses. */
static void slots(void)
{
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    const OptimTable *t;
    for (int i = 0; (t = optim_rule_at(i)); ++i) CHECK_OK(optim_slots_check(t, backend));
    OptimTable table = rule_of("adam");
    table.slots = 1;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer adam: .slots is 1, but update_pieces uses state slot 1");
    table = rule_of("sgd");
    table.slots = 2;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer sgd: .slots is 2, but update_pieces uses no slot 1");
    table.slots = 1, table.update_pieces = without_average;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer sgd: update_pieces does not move the average");
    table = rule_of("lion");
    table.slots = 2;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer lion: .slots is 2, but update uses no slot 1");
    table = rule_of("lamb");
    table.scratch = SCRATCH_UNUSED;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer lamb: .scratch is SCRATCH_UNUSED, but the rule uses");
    table = rule_of("lars");
    table.scratch = SCRATCH_MEASURE;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer lars: .scratch is not SCRATCH_UNUSED, but the rule uses no");
    table = rule_of("lion");
    table.devices = DEVICES_ALL;
    CHECK_FAILS(optim_slots_check(&table, backend), ERR_BUG,
                "optimizer lion: .devices is not DEVICES_CPU, but optim_each needs");
    backend_close(&backend);
}

static void curves(void)
{
    Curve curve = *optim_curve_at(0);
    CHECK_OK(curve_check(&curve));
    curve.if_end_moves = NULL;
    CHECK_FAILS(curve_check(&curve), ERR_BUG, "curve constant: .if_end_moves is not given");
    curve.if_end_moves = "?", curve.rate = NULL;
    CHECK_FAILS(curve_check(&curve), ERR_BUG, "curve constant: .rate is not given");
    curve.word.help = NULL;
    CHECK_FAILS(curve_check(&curve), ERR_BUG, "curve constant: .word.help is not given");
}

/* ---- models, families, metrics, words ---- */

static void others(void)
{
    ZooEntry model = *zoo[0];
    model.build = NULL;
    CHECK_FAILS(zoo_row_check(&model), ERR_BUG, "model mlp: .build is not given");
    model = *zoo[0], model.help = NULL;
    CHECK_FAILS(zoo_row_check(&model), ERR_BUG, "model mlp: .help is not given");
    model = *zoo[0], model.maps = MAPS_UNSET;
    CHECK_FAILS(zoo_row_check(&model), ERR_BUG, "model mlp: .maps is not given");
    Family family = families[0];
    family.skip = NULL;
    CHECK_FAILS(family_check(&family, false), ERR_BUG, "family gpt2: .bare, .skip");
    family = families[0], family.foreign_mark = NULL;
    CHECK_FAILS(family_check(&family, false), ERR_BUG, "family gpt2: .foreign_mark");
    BestMetric metric = {.word = {.word = "error", .help = "falls"}};
    CHECK_FAILS(best_metric_check(&metric), ERR_BUG, "metric error: .better is not given");
    metric.better = BETTER_SMALL;
    CHECK_FAILS(best_metric_check(&metric), ERR_BUG, "metric error: .needs is not given");
    metric.needs = NEEDS_TOP1;
    CHECK_FAILS(best_metric_check(&metric), ERR_BUG, "metric error: .value is not given");
}

static ConfigWord faulty;
static ConfigWord faulty_word(int i)
{
    return i == 0 ? faulty : (ConfigWord){0};
}

static void words(void)
{
    static const ConfigWords list = {"optim.lr_schedule", .word = faulty_word};
    static const char *const why[] = {"has no help", "uses a key that is not in its section",
                                      "has a default of a key that it does not use"};
    for (int i = 0; i < 3; ++i) {
        faulty = (ConfigWord){"saw", i ? "a saw" : NULL, i == 1 ? "tooth" : "gamma",
                              i == 2 ? "power=2" : NULL};
        config_use_words(&list, 1);
        char *text = mem_format("optim.lr_schedule saw: %s", why[i]);
        CHECK_FAILS(config_words_check(), ERR_BUG, text);
        mem_free(&text);
    }
    static const ConfigWords rules = {"optim.name", .word = faulty_word};
    faulty = (ConfigWord){"rmsprop", "a rule", "clip", NULL};
    config_use_words(&rules, 1);
    CHECK_FAILS(config_words_check(), ERR_BUG,
                "optim.name rmsprop: uses a key whose row has no .constant");
    train_use_words();
    CHECK_OK(config_words_check());
}

/* ---- verbs ---- */

static char *help_of(const Verb *verb)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    verb_print_help(out, verb);
    fclose(out);
    return text;
}

static Status run(int argc, char **argv, const void *options)
{
    (void)argc, (void)argv, (void)options;
    return OK;
}

typedef struct Options {
    const char *out;
    int64_t count;
    bool force;
} Options;

static void refused_verb(Flag flag, const char *why)
{
    const Verb verb = {.name = "new",
                       .help = "?",
                       .traits = VERB_NO_TRAITS,
                       .flag = &flag,
                       .flag_count = 1,
                       .options_bytes = sizeof(Options),
                       .run = run};
    CHECK_FAILS(verb_check(&verb), ERR_BUG, why);
}

static void verbs(void)
{
    Verb verb = *verb_at(0);
    verb.traits = 0;
    CHECK_FAILS(verb_check(&verb), ERR_BUG, "verb train: .traits is not given");
    verb = *verb_at(0), verb.run = NULL;
    CHECK_FAILS(verb_check(&verb), ERR_BUG, "verb train: .run is not given");
    verb = *verb_at(0), verb.words_min = 1;
    verb.expects = NULL;
    CHECK_FAILS(verb_check(&verb), ERR_BUG, "verb train: .expects goes with");
    refused_verb((Flag){"-o", FLAG_FIELD(Options, out), .value = "OUT", .help = "?"},
                 "verb new: -o: .writes is not set");
    refused_verb((Flag){"--count", FLAG_FIELD(Options, count), .value = "N", .help = "?"},
                 "verb new: --count: .lo and .hi are not given");
    refused_verb((Flag){"--force", FLAG_FIELD(Options, force)},
                 "verb new: --force: .help is not given");
    refused_verb((Flag){"force", FLAG_FIELD(Options, force), .help = "?"},
                 "verb new: force: the name does not begin with -");
    refused_verb((Flag){"--of", FLAG_FIELD(Options, out), .value = "X", .help = "?", .needs = "-o"},
                 "verb new: --of: .needs is no flag of the verb");
}

/* Help fits its columns, and each default is one that the flag takes. */
static void flags(void)
{
    for (int i = 0; i < verb_count(); ++i) {
        const Verb *v = verb_at(i);
        char *text = help_of(v);
        for (const char *line = text; *line; line = strchr(line, '\n') + 1)
            CU_ASSERT(strcspn(line, "\n") <= 100);
        free(text);
        for (int k = 0; k < v->flag_count; ++k) {
            const Flag *f = &v->flag[k];
            CU_ASSERT(strlen(f->name) + (f->value ? 1 + strlen(f->value) : 0) <= 24);
            if (!f->default_text) continue;
            Flag alone = *f;
            alone.needs = NULL;
            Verb one = {.name = v->name, .flag = &alone, .flag_count = 1};
            void *options = calloc(1, v->options_bytes);
            int none = 0;
            CHECK_OK(verb_options_init(&one, &none, NULL, options));
            verb_options_fini(&one, options);
            free(options);
        }
    }
}

TEST_MAIN("rows", {"all rows", all_rows}, {"operations", operations}, {"layers", layers},
          {"losses", losses}, {"rules", rules}, {"slots", slots}, {"curves", curves},
          {"models, families, metrics", others}, {"words", words}, {"verbs", verbs},
          {"flags", flags})
