/* weft ckpt shrink: writes a checkpoint of the same model with fewer channels. */
#include "../private.h"

#include "train.h"

#include <string.h>

typedef struct ShrinkFlags {
    const char *out, *config, *input;
    int method;
    double sparsity;
    FlagList keep;
    int64_t round;
    bool force, json;
} ShrinkFlags;

static const Flag flags[] = {
    FLAG_OUT(ShrinkFlags, out, "the checkpoint to write"),
    {"--method", FLAG_FIELD(ShrinkFlags, method), .value = LIST_TEXT(PRUNE_WORDS), .required = true,
     .help = "how channels are ranked: by the sum of absolute weights (l1) or of squares (l2), "
             "by the distance to other filters of the layer (fpgm), or by the scales of batch "
             "norms, over all layers together (slim)"},
    {"--sparsity", FLAG_FIELD(ShrinkFlags, sparsity), .value = "S", .hi = 1, .required = true,
     .help = "fraction of the channels to remove, from 0 to below 1"},
    {"--keep", FLAG_FIELD(ShrinkFlags, keep), .value = "GLOB,...",
     .help = "layers, by name or pattern, that keep all channels"},
    {"--round", FLAG_FIELD(ShrinkFlags, round), .value = "N", .lo = 1, .hi = 65536,
     .default_text = "1", .help = "keep a multiple of N channels in each layer"},
    {"--config", FLAG_FIELD(ShrinkFlags, config), .value = "CONFIG",
     .help = "configuration of the model, for a checkpoint that has none (an imported one)"},
    {"--input", FLAG_FIELD(ShrinkFlags, input), .value = INPUT_VALUE,
     .help = "shape of a sample, as 3x224x224, if the data set is not on this machine"},
    FLAG_FORCE(ShrinkFlags, force),
    {"--json", FLAG_FIELD(ShrinkFlags, json), .help = "one JSON object"},
};

/* The model, before and after channels are removed. */
typedef struct Shrink {
    const ShrinkFlags *flags;
    /* path of the checkpoint; borrowed */
    const char *from;
    /* configuration of the model; owned */
    Config *config;
    /* the model before channels are removed; owned */
    Graph *before;
    /* the model afterwards; NULL until channels are removed; owned */
    Graph *after;
    /* units of the model: channels that can only be removed together; owned */
    Units *units;
    /* [units->unit_count]; true: the unit is removed; owned */
    bool *removed;
} Shrink;

/* ---- the model ---- */

/* Sets *set to a description of the samples, from --input or, without this flag, from the training
 * set. */
static Status read_input(const Shrink *s, DataSet *set)
{
    Input input;
    const Config *c = s->config;
    if (s->flags->input) {
        TRY(input_parse(s->flags->input, &input));
        return input_describe_set(set, &input, c, 1);
    }
    return input_open_train(set, c);
}

/* Builds the model and finds its units. */
static Status build(Shrink *s)
{
    const DataSet none = {0};
    DataSet set = {0};
    const FlagList *keep = &s->flags->keep;
    TRY(read_input(s, &set));
    Status st = train_build_graph(&s->before, s->config, &set, &none, 1);
    data_set_fini(&set);
    TRY(st);
    TRY(units_new(&s->units, s->before, (const char *const *)keep->word, keep->count));
    s->removed = mem_new((size_t)s->units->unit_count * sizeof *s->removed);
    return OK;
}

/* ---- the report ---- */

/* Returns the number of units that are left in a group. */
static int64_t group_left(const Shrink *s, const UnitGroup *group)
{
    int64_t left = group->count;
    for (int u = group->first; u < group->first + group->count; ++u) left -= s->removed[u];
    return left;
}

static const char *layer_name(const Shrink *s, int node)
{
    return s->before->node[node].name;
}

static void print_layers(const Shrink *s, const UnitGroup *group)
{
    enum { NAMED_MAX = 3 };
    for (int k = 0; k < group->layer_count && k < NAMED_MAX; ++k)
        printf("%s%s", k ? ", " : "", layer_name(s, group->layer[k]));
    if (group->layer_count > NAMED_MAX) printf(" and %d more", group->layer_count - NAMED_MAX);
    if (group->is_kept && group->kept_by >= 0)
        printf(" (whole: read by %s)", layer_name(s, group->kept_by));
    else if (group->is_kept)
        printf(" (whole: --keep)");
    if (group->parts > 1 && !group->is_kept)
        printf(" (equally in %d parts%s)", group->parts,
               s->flags->sparsity > 0 && group_left(s, group) == group->count
                   ? ", of which each would lose less than one"
                   : "");
    putchar('\n');
}

static void print_text(const Shrink *s)
{
    int64_t params = graph_param_elements(s->before), params_left = graph_param_elements(s->after);
    double macs = graph_sample_macs(s->before), macs_left = graph_sample_macs(s->after);
    printf("channels        layers\n");
    for (int i = 0; i < s->units->group_count; ++i) {
        const UnitGroup *group = &s->units->group[i];
        if (group->layer_count == 0) continue;
        printf("%5d -> %-5lld  ", group->count, (long long)group_left(s, group));
        print_layers(s, group);
    }
    printf("parameters  %lld -> %lld (%.1f %%)\n", (long long)params, (long long)params_left,
           100 * (double)params_left / (double)params);
    printf("MACs        %.0f -> %.0f (%.1f %%) a sample\n", macs, macs_left,
           100 * macs_left / macs);
    printf("wrote %s\n", s->flags->out);
}

static void json_group(const Shrink *s, const UnitGroup *group, Json *json)
{
    json_object(json, NULL);
    json_array(json, "layers");
    for (int k = 0; k < group->layer_count; ++k)
        json_text(json, NULL, layer_name(s, group->layer[k]));
    json_end(json);
    json_int(json, "channels", group->count);
    json_int(json, "units_channels_left", group_left(s, group));
    json_bool(json, "whole", group->is_kept);
    json_end(json);
}

static void print_json(const Shrink *s)
{
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "from", s->from);
    json_text(&json, "file", s->flags->out);
    json_text(&json, "method", prune_methods[s->flags->method].name);
    json_real(&json, "sparsity", s->flags->sparsity);
    json_array(&json, "groups");
    for (int i = 0; i < s->units->group_count; ++i)
        if (s->units->group[i].layer_count > 0) json_group(s, &s->units->group[i], &json);
    json_end(&json);
    json_int(&json, "parameters", graph_param_elements(s->before));
    json_int(&json, "parameters_left", graph_param_elements(s->after));
    json_real(&json, "macs", graph_sample_macs(s->before));
    json_real(&json, "macs_left", graph_sample_macs(s->after));
    json_end(&json);
}

/* ---- the verb ---- */

static Status shrink(Shrink *s, int count, char **overrides)
{
    const ShrinkFlags *f = s->flags;
    TRY(checkpoint_read_config(&s->config, s->from, f->config, count, overrides));
    TRY(job_check_output(s->config, f->out));
    TRY(build(s));
    const CheckpointShrink request = {.from = s->from,
                                      .out = f->out,
                                      .units = s->units,
                                      .method = &prune_methods[f->method],
                                      .sparsity = f->sparsity,
                                      .round = f->round};
    TRY(checkpoint_shrink(&request, s->config, s->removed, &s->after));
    if (f->sparsity == 0)
        log_info("--sparsity 0 removes no channel: %s is the same model as %s", f->out, s->from);
    if (f->json)
        print_json(s);
    else
        print_text(s);
    return OK;
}

static Status run(int argc, char **argv, const void *options)
{
    Shrink s = {.flags = options, .from = argv[0]};
    if (s.flags->sparsity >= 1)
        return fail(ERR_USAGE, "--sparsity 1: nothing would be left; give a number from 0 to "
                               "below 1");
    TRY(file_check_writable(s.flags->out, s.flags->force));
    Status st = shrink(&s, argc - 1, argv + 1);
    units_free(&s.units);
    graph_free(&s.before);
    graph_free(&s.after);
    config_free(&s.config);
    mem_free(&s.removed);
    return st;
}

const Verb verb_ckpt_shrink = {
    .name = "ckpt shrink",
    .words = "FILE [key=value ...]",
    .words_min = 1,
    .expects = "a checkpoint",
    .help = "removes channels from a trained model, for further training",
    .more = "Channels that depend on each other are removed together: across sums, "
            "concatenations, depthwise convolutions and flattened images. The configuration in "
            "the new file has the remaining widths as model.widths; train, eval and generate "
            "read them there.",
    VERB_FLAGS(ShrinkFlags, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
