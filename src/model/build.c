/* Builds a graph from a configuration: a model of the zoo or the configuration's list of layers,
 * then the loss. Errors name file and line of the configuration. */
#include "build.h"

#include <string.h>

/* Adds file and line to the message of the last failure: those of the last layer in model.layers
 * or, without such a list, those of model.name. Changes only failures with ERR_CONFIG. */
static Status add_place(const Config *config, Status status)
{
    if (status != ERR_CONFIG) return status;
    char *message = mem_text(fail_message());
    int n = config->model.layer_count;
    if (n)
        status = config_fail(config, config->model.layer[n - 1].line,
                             config->model.layer[n - 1].column, "%s", message);
    else
        status = config_fail_key(config, "model.name", "%s", message);
    mem_free(&message);
    return status;
}

/* Returns the models that use a key, as "gpt2, llama"; the caller owns the text. */
static char *models_using(const char *leaf)
{
    char *all = mem_text("");
    for (int i = 0; zoo[i]; ++i) {
        if (!word_uses((ConfigWord){.word = zoo[i]->name, .uses = zoo[i]->uses}, leaf)) continue;
        char *longer = mem_format("%s%s%s", all, *all ? ", " : "", zoo[i]->name);
        mem_free(&all);
        all = longer;
    }
    return all;
}

/* Fails if one of the keys below is set and this model does not use it. Defaults are accepted for
 * all models, because a resolved configuration sets all keys. With a list of layers, the keys
 * context and vocab, which describe its input, and outputs and anchors, which describe its outputs,
 * may be set. */
static Status check_keys(const Config *config)
{
    const bool list = config->model.layer_count > 0;
    const char *name = config->model.name ? config->model.name : "", *uses = NULL;
    const struct {
        /* name in ZooEntry.uses */
        const char *leaf;
        /* true: the key differs from its default, and this model may not use it */
        bool set;
    } keys[] = {{"size", config->model.size != GPT_OWN},
                {"blocks", config->model.depth > 0},
                {"width", config->model.width > 0},
                {"heads", config->model.heads > 0},
                {"kv_heads", config->model.kv_heads > 0},
                {"ffn", config->model.ffn > 0},
                {"positions", config->model.positions != POSITIONS_LEARNED},
                {"rotary_base", !config_key_is_default(config, "model.rotary_base")},
                {"rms_eps", !config_key_is_default(config, "model.rms_eps")},
                {"rope_scaling", config->model.rope_scaling.count > 0},
                {"window", config->model.window > 0},
                {"window_from", config->model.window_from > 0},
                {"qkv_bias", config->model.qkv_bias},
                {"tied", config->model.tied},
                {"activation", config->model.activation != 0},
                {"hidden",
                 config->model.hidden.count > 0 && !config_key_is_default(config, "model.hidden")},
                {"bottom", config->model.bottom.count > 0},
                {"depth_multiple", config->model.depth_multiple > 0},
                {"channels", config->model.channels.count > 0},
                {"norm", config->model.norm != FIELD_NORM_GROUP},
                {"pad_mode", strcmp(config->model.pad_mode, "zero") != 0},
                {"residual", config->model.residual},
                {"up", config->model.up != UP_TRANSPOSE},
                {"down", config->model.down != DOWN_MAX},
                {"attention", config->model.attention > 0},
                {"film", config->model.film > 0},
                {"width_multiple", config->model.width_multiple > 0},
                {"anchors", config->model.anchors.count > 0 && !list},
                {"outputs", *config->model.outputs && !list},
                {"context", config->model.context > 0 && !list},
                {"vocab", config->model.vocab > 0 && !list}};
    if (!list && !*name) return OK;
    for (int i = 0; zoo[i] && !list; ++i)
        if (strcmp(zoo[i]->name, name) == 0) uses = zoo[i]->uses;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
        const char *leaf = keys[i].leaf;
        if (!keys[i].set || word_uses((ConfigWord){.word = name, .uses = uses}, leaf)) continue;
        char *users = models_using(leaf);
        char *key = mem_format("model.%s", strcmp(leaf, "blocks") == 0 ? "layers" : leaf);
        Status st = config_fail_key(config, key, "%s does not use it; it is for %s",
                                    list ? "a list of layers" : name, users);
        mem_free(&key);
        mem_free(&users);
        return st;
    }
    return OK;
}

/* Adds the layers of the model that model.name selects. *logits: its last node. */
static Status add_named_model(Graph *graph, const Config *config, int *logits)
{
    const char *name = config->model.name;
    if (!name || !*name)
        return config_fail_key(config, "model.name", "no model: set model.name, or model.layers");
    TRY(zoo_check(config));
    if (config->model.stem == STEM_SMALL && strncmp(name, "resnet", 6) != 0)
        return config_fail_key(config, "model.stem",
                               "%s has one stem only; model.stem is for resnet*", name);
    *logits = zoo_find(name)->build(graph, config);
    return *logits == GRAPH_FAILED ? add_place(config, ERR_CONFIG) : OK;
}

/* ---- the loss ---- */

/* The nodes that the loss reads, in the order of its inputs. */
typedef struct Outputs {
    int count;
    int node[SPEC_INPUTS];
} Outputs;

/* Finds the nodes that the loss reads. Their names are in model.outputs for a list of layers, and
 * in ZooEntry.outputs for a model of the zoo. Without names, `last` is the only output. */
static Status find_outputs(const Graph *graph, const Config *config, int last, Outputs *out)
{
    const bool list = config->model.layer_count > 0;
    const char *names = list ? config->model.outputs : zoo_find(config->model.name)->outputs;
    *out = (Outputs){.count = 1, .node = {last}};
    if (last == NODE_INPUT) return add_place(config, fail(ERR_CONFIG, "the model has no layers"));
    if (!names || !*names) return OK;
    char *text = mem_text(names), *rest = text;
    Status st = OK;
    out->count = 0;
    for (char *name; st == OK && (name = strsep(&rest, ","));) {
        const int node = graph_find(graph, name);
        if (node == GRAPH_FAILED)
            st = config_fail_key(config, "model.outputs", "no layer is named '%s'", name);
        else if (out->count == SPEC_INPUTS)
            st = config_fail_key(config, "model.outputs", "more than %d layers", SPEC_INPUTS);
        else
            out->node[out->count++] = node;
    }
    mem_free(&text);
    return st;
}

/* Checks that the last layer has one output for each class or target of a sample. For fields it
 * must have one channel for each class or target, and in a rollout one for each class or target of
 * each step. If the loss needs a fixed number of outputs, the last layer must have that number. */
static Status check_logits(const Graph *graph, const Config *config, int logits)
{
    char text[64];
    Shape y = graph->node[logits].spec.y.shape;
    const char *name = graph->node[logits].name;
    const LossInfo *loss = loss_info(config);
    const bool targets = loss->reads == LOSS_READS_TARGETS;
    const char *outputs = targets                           ? "targets"
                          : loss->outputs > 0               ? "outputs"
                          : graph->input.dtype == DTYPE_I32 ? "tokens"
                                                            : "classes";
    const bool fields = y.ndim == 4;
    const int64_t given = fields    ? y.dim[1]
                          : targets ? shape_count(y) / y.dim[0]
                                    : y.dim[y.ndim - 1];
    if (fields && loss->outputs > 0)
        return fail(ERR_CONFIG,
                    "layer %s: the last layer gives images %s, the loss needs (N,%s): end with "
                    "flatten and dense",
                    name, shape_text(y, text), outputs);
    if (loss->outputs > 0 && y.dim[y.ndim - 1] != loss->outputs)
        return fail(ERR_CONFIG,
                    "layer %s: the last layer gives %lld outputs, train.loss %s needs %lld", name,
                    (long long)y.dim[y.ndim - 1], loss_name(config), (long long)loss->outputs);
    if (given != graph->classes * graph->steps)
        return fail(ERR_CONFIG,
                    "layer %s: the last layer gives %lld outputs, but the data has %lld %s", name,
                    (long long)given, (long long)graph->classes * graph->steps, outputs);
    return OK;
}

/* Checks that each output is a grid with BOX_CHANNELS channels and a channel for each class, for
 * each of `anchors` anchors. */
static Status check_grids(const Graph *graph, const Config *config, const Outputs *out,
                          int64_t anchors)
{
    char text[64];
    for (int k = 0; k < out->count; ++k) {
        const Shape y = graph->node[out->node[k]].spec.y.shape;
        const int64_t channels = anchors * (BOX_CHANNELS + graph->classes);
        if (y.ndim == 4 && y.dim[1] == channels) continue;
        return fail(ERR_CONFIG,
                    "layer %s gives %s, train.loss %s needs a grid (N,%lld,H,W): 5 channels and "
                    "%lld classes for each of %lld anchors",
                    graph->node[out->node[k]].name, shape_text(y, text), loss_name(config),
                    (long long)channels, (long long)graph->classes, (long long)anchors);
    }
    return OK;
}

/* Sets the anchors of a detection loss, if model.anchors is given, and the sides of the pictures;
 * then checks the outputs. */
static Status describe_grids(const Graph *graph, const Config *config, const Outputs *out,
                             OpSpec *spec)
{
    const ConfigList *given = &config->model.anchors;
    for (int i = 0; i < given->count; ++i)
        spec->anchors.side[i / 2][i % 2] = (float)given->value[i];
    if (given->count > 0) spec->anchors.count = given->count / 2;
    for (int d = 0; d < 2; ++d) spec->image[d] = (int)graph->input.shape.dim[2 + d];
    return check_grids(graph, config, out, spec->anchors.count / out->count);
}

/* Fails unless the loss can read `count` outputs, and model.anchors gives each output the same
 * number of anchors. */
static Status check_outputs(const Config *config, int count)
{
    const LayerKind *kind = loss_kind(config);
    const int anchors = config->model.anchors.count;
    if (anchors > 2 * ANCHORS_MOST || anchors % (2 * count) != 0)
        return config_fail_key(
            config, "model.anchors",
            "%d numbers: each of the %d outputs needs the same number of anchors, each with "
            "a width and a height; at most %d anchors in all",
            anchors, count, ANCHORS_MOST);
    if (kind->inputs < 0 ? count > 1 : count == kind->inputs) return OK;
    if (count > 1)
        return config_fail_key(config, "train.loss",
                               "%s reads one output, and the model has %d: set train.loss: yolo",
                               loss_name(config), count);
    return config_fail_key(config, "train.loss",
                           "%s reads the outputs of several layers: use a detector (yolov5n), or "
                           "name them with model.outputs",
                           loss_name(config));
}

/* Copies the keys of section train that the loss uses to its spec. */
static Status describe_loss(const Config *config, OpSpec *spec)
{
    const ConfigWord word = loss_info(config)->word;
    if (word_uses(word, "label_smoothing")) spec->smoothing = (float)config->train.label_smoothing;
    if (word_uses(word, "huber_delta")) spec->delta = (float)config->train.huber_delta;
    if (word_uses(word, "charbonnier_eps")) spec->eps = (float)config->train.charbonnier_eps;
    if (word_uses(word, "focal_gamma")) spec->focus = (float)config->train.focal_gamma;
    if (!word_uses(word, "class_weights")) return OK;
    const ConfigList *weights = &config->train.class_weights;
    if (weights->count > CLASS_WEIGHTS_MOST)
        return config_fail_key(config, "train.class_weights", "%d weights: at most %d",
                               weights->count, CLASS_WEIGHTS_MOST);
    for (int i = 0; i < weights->count; ++i)
        spec->class_weights.value[i] = (float)weights->value[i];
    spec->class_weights.count = weights->count;
    return OK;
}

static Status add_loss(Graph *graph, const Config *config, const Outputs *out)
{
    const LayerKind *kind = loss_kind(config);
    Draft draft;
    TRY(draft_begin(graph, &draft, kind, "loss", out->node, out->count));
    if (kind->loss->outputs == OUTPUTS_GRIDS)
        TRY(describe_grids(graph, config, out, &draft.spec));
    else
        TRY(check_logits(graph, config, out->node[0]));
    TRY(describe_loss(config, &draft.spec));
    const Status st = draft_finish(graph, &draft, &graph->loss_node);
    if (st != OK) {
        char *message = mem_text(fail_message());
        fail(st, "layer loss: %s", message);
        mem_free(&message);
        return st;
    }
    graph->logits_node = out->node[0];
    for (int k = 1; k < out->count; ++k)
        if (out->node[k] > graph->logits_node) graph->logits_node = out->node[k];
    return OK;
}

/* Adds the layers from the data to the logits, and finds the outputs that the loss reads. */
static Status add_model(Graph *graph, const Config *config, Outputs *outputs)
{
    int logits = NODE_INPUT;
    if (config->model.layer_count)
        TRY(graph_add_list(graph, config, &logits));
    else
        TRY(add_named_model(graph, config, &logits));
    return find_outputs(graph, config, logits, outputs);
}

/* Adds the model for one step of a rollout (StepAdd). Fails if it has several outputs. */
static Status add_step(Graph *graph, const Config *config, int *output)
{
    Outputs outputs;
    TRY(add_model(graph, config, &outputs));
    *output = outputs.node[0];
    if (outputs.count == 1) return OK;
    return config_fail_key(config, "train.rollout", "the model has %d outputs, and needs one",
                           outputs.count);
}

/* Adds the model once, or once for each step of a rollout. */
static Status add_all(Graph *graph, const Config *config, const GraphRollout *rollout,
                      Outputs *outputs)
{
    if (!rollout) return add_model(graph, config, outputs);
    graph->steps = rollout->steps;
    graph->step_input.shape.dim[1] = rollout->inputs;
    outputs->count = 1;
    return graph_add_steps(graph, config, rollout, add_step, &outputs->node[0]);
}

/* Builds the graph from its description (input, ids, classes). rollout: NULL for one application of
 * the model. */
static Status build(Graph *graph, const Config *config, const GraphRollout *rollout)
{
    Outputs outputs;
    if (graph->classes < 1)
        return config_fail_key(config, "model.classes",
                               "the data does not give the number of classes: set model.classes");
    TRY(check_keys(config));
    TRY(add_all(graph, config, rollout, &outputs));
    TRY(graph_set_widths(graph, config));
    TRY(check_outputs(config, outputs.count));
    Status status = add_loss(graph, config, &outputs);
    if (status != OK) return add_place(config, status);
    TRY(graph_freeze(graph, config));
    graph_set_need_dx(graph);
    return OK;
}

static Status build_new(Graph **graph, const Config *config, const Graph *description,
                        const GraphRollout *rollout)
{
    Graph *g = *graph = mem_new(sizeof *g);
    *g = *description;
    g->step_input = g->input;
    g->steps = 1;
    Status status = build(g, config, rollout);
    if (status != OK) graph_free(graph);
    return status;
}

Status graph_build(Graph **graph, const Config *config, Desc input, int64_t classes)
{
    return graph_build_ids(graph, config, input, (GraphIds){0}, classes);
}

Status graph_build_ids(Graph **graph, const Config *config, Desc input, GraphIds ids,
                       int64_t classes)
{
    const Graph description = {.input = input, .ids = ids, .classes = classes};
    return build_new(graph, config, &description, NULL);
}

Status graph_build_rollout(Graph **graph, const Config *config, Desc input,
                           const GraphRollout *rollout, int64_t classes)
{
    const Graph description = {.input = input, .classes = classes};
    return build_new(graph, config, &description, rollout);
}
