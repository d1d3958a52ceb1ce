/* Adds a model several times, for a rollout. Each step after the first reads fields that earlier
 * steps have computed, and shares the parameters of the first step.
 *
 *     data --> step1.state --> model --> y1 ------------------> z1 --+
 *       |----> step2.state <--------------------------------- z1    |--> leads --> loss
 *       |           `--------> model (step2.*) --> y2 --(+ z1)--> z2 --+
 *
 * z of a step is its output. For a channel whose output is the change of a field, z is the sum of
 * the changes of all steps so far, so that the field is the data's field plus z. */
#include "build.h"

#include <string.h>

int graph_add_sums(Graph *graph, const char *name, const ChannelSum *sum, int count,
                   const int *node, int nodes)
{
    Draft draft;
    ChannelSum *own = mem_new((size_t)count * sizeof *own);
    int in[SPEC_INPUTS], ins = 0, index = GRAPH_FAILED;
    Status st = OK;
    memcpy(own, sum, (size_t)count * sizeof *own);
    graph->channel_sums = mem_resize(graph->channel_sums, (size_t)(graph->channel_sum_count + 1) *
                                                              sizeof *graph->channel_sums);
    graph->channel_sums[graph->channel_sum_count++] = own;
    for (int i = 0; st == OK && i < nodes; ++i) {
        bool reads = false;
        for (int c = 0; c < count; ++c)
            for (int k = 0; k < sum[c].terms; ++k) {
                if (sum[c].term[k].input != i) continue;
                reads = true;
                own[c].term[k].input = (int16_t)ins;
            }
        if (reads && ins == SPEC_INPUTS)
            st = fail(ERR_CONFIG, "the inputs of a step come from more than %d steps before it",
                      SPEC_INPUTS - 1);
        else if (reads)
            in[ins++] = node[i];
    }
    if (st == OK) st = draft_begin(graph, &draft, &layer_channel_sum, name, in, ins);
    draft.spec.channel_sums = own;
    draft.spec.sums = count;
    if (st == OK) st = draft_finish(graph, &draft, &index);
    return st == OK ? index : GRAPH_FAILED;
}

/* Adds the node that computes the input of a step (counted from 1). z[0] is NODE_INPUT, and z[k] is
 * the node of z of step k; the terms of GraphRollout.input_terms are indexes into z. */
static int add_state(Graph *graph, const GraphRollout *r, int step, const int *z)
{
    char name[GRAPH_PREFIX + 8];
    snprintf(name, sizeof name, "step%d.state", step);
    return graph_add_sums(graph, name, r->input_terms + (ptrdiff_t)(step - 1) * r->inputs,
                          r->inputs, z, step);
}

/* Returns the node of z of a step whose output is node y. If some channels are changes, and this is
 * not the first step, it is a new node, which adds z of the step before (node `before`) to these
 * channels. Otherwise it is y itself. */
static int add_output(Graph *graph, const GraphRollout *r, int step, int y, int before)
{
    char name[GRAPH_PREFIX + 8];
    bool adds = false;
    for (int c = 0; c < r->targets; ++c) adds = adds || r->z_terms[c].terms > 1;
    if (step == 1 || !adds) return y;
    snprintf(name, sizeof name, "step%d.sum", step);
    return graph_add_sums(graph, name, r->z_terms, r->targets, (int[]){y, before}, 2);
}

/* Ties the parameters of a step, numbers `first` to `first` + count - 1, to those of step 1,
 * numbers 0 to count - 1. */
static Status tie_step(Graph *graph, int first, int count)
{
    char a[64], b[64];
    for (int i = 0; i < count; ++i) {
        Param *p = &graph->param[first + i];
        const Param *original = &graph->param[i];
        if (p->info.is_statistic)
            return fail(ERR_CONFIG,
                        "%s: the running statistics of a batch norm would be those of fields of "
                        "several steps: choose another norm (model.norm: group), or set it to 1",
                        original->name);
        if (!shape_equal(p->shape, original->shape))
            return fail(ERR_BUG, "%s is %s, but %s is %s", p->name, shape_text(p->shape, a),
                        original->name, shape_text(original->shape, b));
        p->tied_param = original->tied_param >= 0 ? original->tied_param : i;
        graph->node[p->node].spec.shared_weight = true;
        graph->node[original->node].spec.shared_weight = true;
    }
    return OK;
}

/* Adds the node that concatenates z of all steps along the channels. If there are more than
 * SPEC_INPUTS steps, groups of at most SPEC_INPUTS steps are concatenated first. */
static int add_leads(Graph *graph, const int *z, int steps)
{
    int part[ROLLOUT_STEPS], parts = 0;
    char name[GRAPH_PREFIX + 8];
    if (steps <= SPEC_INPUTS) return graph_add(graph, "concat", "leads", z, steps, NULL);
    for (int i = 0, n; i < steps; i += n) {
        n = steps - i < SPEC_INPUTS ? steps - i : SPEC_INPUTS;
        snprintf(name, sizeof name, "leads%d", parts + 1);
        part[parts++] = n == 1 ? z[i] : graph_add(graph, "concat", name, z + i, n, NULL);
    }
    return graph_add(graph, "concat", "leads", part, parts, NULL);
}

/* Adds the model for one step (counted from 1), with the node `state` in place of the data. *y: the
 * node of its output. */
static Status add_step(Graph *graph, const Config *config, int step, int state, StepAdd add, int *y)
{
    char prefix[GRAPH_PREFIX];
    snprintf(prefix, sizeof prefix, "step%d.", step);
    graph->source = state - NODE_INPUT;
    if (step > 1) graph->prefix = prefix;
    const Status st = add(graph, config, y);
    graph->source = 0;
    graph->prefix = NULL;
    return st;
}

/* Puts the place of the key train.rollout before the message of the last failure. */
static Status steps_fail(const Config *config)
{
    char *message = mem_text(fail_message());
    const Status st = config_fail_key(config, "train.rollout", "%s", message);
    mem_free(&message);
    return st;
}

Status graph_add_steps(Graph *graph, const Config *config, const GraphRollout *r, StepAdd add,
                       int *all_steps_node)
{
    int z[ROLLOUT_STEPS + 1] = {NODE_INPUT}, params = 0, y;
    if (r->steps > ROLLOUT_STEPS)
        return fail(ERR_BUG, "a rollout of %d steps, at most %d", r->steps, ROLLOUT_STEPS);
    for (int step = 1; step <= r->steps; ++step) {
        const int first = graph->param_count, state = add_state(graph, r, step, z);
        if (state == GRAPH_FAILED) return steps_fail(config);
        TRY(add_step(graph, config, step, state, add, &y));
        if (graph->table_count > 0)
            return config_fail_key(config, "train.rollout", "%s is a sparse table of ids",
                                   graph->table[0].name);
        if (step == 1) params = graph->param_count;
        if (step > 1 && tie_step(graph, first, params) != OK) return steps_fail(config);
        z[step] = add_output(graph, r, step, y, z[step - 1]);
        if (z[step] == GRAPH_FAILED) return steps_fail(config);
    }
    *all_steps_node = add_leads(graph, z + 1, r->steps);
    return *all_steps_node == GRAPH_FAILED ? steps_fail(config) : OK;
}

const char *graph_name_without_step(const Graph *graph, const char *name)
{
    int chars = 0;
    if (graph->steps > 1 && sscanf(name, "step%*d.%n", &chars) == 0 && chars > 0)
        return name + chars;
    return name;
}
