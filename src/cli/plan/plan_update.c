/* weft plan on the optimizer: prints which rule updates which parameters, and the cost of tensors
 * that are updated as a whole. Names of parameters that differ only in numbers are printed as one,
 * for example "h.*.ln_1.weight x 12". */
#include "plan_view.h"

#include <ctype.h>
#include <string.h>

/* sizes in bytes of a name and of a short text */
enum { NAME_BYTES = 128, CELL = 32 };

/* Different names of parameters, after "*" has replaced their numbers. */
typedef struct Names {
    /* number of names */
    int count;
    /* number of parameters with each name, [count]; owned */
    int *occurrences;
    /* [count]; owned */
    char (*name)[NAME_BYTES];
} Names;

/* Copies a name and replaces each number in it by "*". */
static void replace_numbers(const char *name, char out[NAME_BYTES])
{
    size_t used = 0;
    while (*name && used + 1 < NAME_BYTES) {
        bool digit = isdigit((unsigned char)*name);
        out[used++] = digit ? '*' : *name++;
        while (digit && isdigit((unsigned char)*name)) ++name;
    }
    out[used] = 0;
}

static void names_add(Names *names, const char *name)
{
    char pattern[NAME_BYTES];
    replace_numbers(name, pattern);
    for (int i = 0; i < names->count; ++i)
        if (strcmp(names->name[i], pattern) == 0) {
            ++names->occurrences[i];
            return;
        }
    names->name = mem_resize(names->name, (size_t)(names->count + 1) * sizeof *names->name);
    names->occurrences =
        mem_resize(names->occurrences, (size_t)(names->count + 1) * sizeof *names->occurrences);
    memcpy(names->name[names->count], pattern, sizeof pattern);
    names->occurrences[names->count++] = 1;
}

static bool is_trained(const Param *p)
{
    return !p->info.is_statistic && !p->frozen && p->tied_param < 0;
}

/* Returns whether a rule updates a parameter. rule: number of a group of optim.groups, counted from
 * 1, or 0 for the rule of optim.name. */
static bool is_updated_by(const Trainer *t, int param, int rule)
{
    return is_trained(&trainer_graph(t)->param[param]) && trainer_rules(t)[param] == rule;
}

/* Returns the highest learning rate of a parameter. */
static double lr_max(const Trainer *t, int param)
{
    return optim_rule(trainer_config(t), trainer_rules(t)[param]).constants->lr *
           trainer_lr_scales(t)[param];
}

static void print_names(const Trainer *t, int rule, FILE *out)
{
    const Graph *graph = trainer_graph(t);
    Names names = {0};
    for (int i = 0; i < graph->param_count; ++i)
        if (is_updated_by(t, i, rule)) names_add(&names, graph->param[i].name);
    char *all = mem_text("");
    for (int i = 0; i < names.count; ++i) {
        char times[CELL] = "";
        if (names.occurrences[i] > 1) snprintf(times, sizeof times, " x %d", names.occurrences[i]);
        char *longer = mem_format("%s%s%s%s", all, i ? ", " : "", names.name[i], times);
        mem_free(&all);
        all = longer;
    }
    fputs("    ", out);
    print_wrapped(out, 4, all);
    mem_free(&all);
    mem_free(&names.name);
    mem_free(&names.occurrences);
}

/* Returns the number of elements that a rule updates in the model, over all stages and slices. */
static int64_t element_count(const Trainer *t, int rule)
{
    const Graph *g = graph_undivided(trainer_graph(t));
    int64_t elements = 0;
    for (int i = 0; i < g->param_count; ++i)
        if (is_updated_by(t, i, rule)) elements += shape_count(g->param[i].shape);
    return elements;
}

static void print_rule(const Trainer *t, int rule, FILE *out)
{
    char title[CELL] = "others";
    OptimRule r = optim_rule(trainer_config(t), rule);
    int64_t elements = element_count(t, rule);
    if (rule > 0) snprintf(title, sizeof title, "group %d", rule);
    if (elements == 0) return;
    fprintf(out, "  %-9s %s, lr %g, weight_decay %g, %d number%s of state each; %lld parameters\n",
            title, r.table->word.word, r.constants->lr, r.constants->weight_decay, r.slots,
            r.slots == 1 ? "" : "s", (long long)elements);
    print_names(t, rule, out);
}

/* Prints the learning rates of depth groups. Consecutive parameters with equal rates share a
 * line. */
static void print_depth_groups(const Trainer *t, FILE *out)
{
    const Graph *g = trainer_graph(t);
    const Param *from = NULL, *to = NULL;
    double rate = 0;
    if (trainer_config(t)->optim.layer_decay == 1) return;
    for (int i = 0; i <= g->param_count; ++i) {
        bool end = i == g->param_count;
        if (!end && (trainer_rules(t)[i] > 0 || !is_trained(&g->param[i]))) continue;
        if (from && (end || lr_max(t, i) != rate))
            fprintf(out, "  lr %-9.4g %s%s%s\n", rate, from->name, from == to ? "" : " to ",
                    from == to ? "" : to->name);
        if (end) break;
        if (!from || lr_max(t, i) != rate) from = &g->param[i];
        to = &g->param[i];
        rate = lr_max(t, i);
    }
}

/* Returns the bytes that a rank of a tensor-parallel group receives in a step. For each tensor that
 * its replica updates as a whole, it receives the slices of all other ranks of the group. Without
 * grid.zero, each replica updates all such tensors of the stage. Every slice is counted with the
 * size of the first slice. */
static double gathered_bytes(const PlanView *v, int stage, int dp_rank)
{
    const Trainer *t = v->trainer;
    const Graph *graph = trainer_graph(t);
    const Plan *plan = v->stage_view[stage].plan;
    double bytes = 0;
    for (int i = 0; i < graph->param_count; ++i) {
        int64_t first, count;
        const Param *p = &graph->param[i];
        if (p->info.is_statistic || p->frozen || plan->param_offset[i] < 0 ||
            !trainer_updates(t)[i].is_uncut || !p->split.parts)
            continue;
        plan_shard(plan, i, dp_rank, &first, &count);
        if (count > 0)
            bytes +=
                (double)param_slice_count(graph, i, 0) * sizeof(float) * (trainer_shape(t).tp - 1);
    }
    return bytes;
}

double view_gathered_bytes(const PlanView *v)
{
    double most = 0;
    for (int s = 0; s < v->stages; ++s)
        for (int r = 0; r < trainer_shape(v->trainer).dp; ++r) {
            double bytes = gathered_bytes(v, s, r);
            if (bytes > most) most = bytes;
        }
    return most;
}

/* Prints how many tensors are updated as a whole, which replicas update them, and how many bytes of
 * their slices a rank gathers. */
static void print_whole(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    GridShape shape = trainer_shape(t);
    const Graph *graph = trainer_graph(t);
    char bytes[CELL];
    int tensors = 0;
    for (int i = 0; i < graph->param_count; ++i)
        tensors += graph->param[i].tied_param < 0 && trainer_updates(t)[i].is_uncut;
    if (tensors == 0) return;
    fprintf(out, "  %d whole tensors, ", tensors);
    if (shape.dp == 1)
        fprintf(out, "updated once");
    else if (trainer_plan(t)->zero)
        fprintf(out, "each updated by one replica, without additional messages");
    else
        fprintf(out, "updated by each of %d replicas; with grid.zero=1 by one", shape.dp);
    if (shape.tp > 1)
        fprintf(out, "; a rank sends and receives %s of slices a step",
                text_bytes(view_gathered_bytes(v), bytes));
    fputc('\n', out);
}

void plan_update_text(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    const Config *config = trainer_config(t);
    if (!optim_state_is_packed(config) && config->optim.layer_decay == 1) return;
    fprintf(out, "\noptimizer\n");
    for (int rule = 1; rule < optim_rule_count(config); ++rule) print_rule(t, rule, out);
    print_rule(t, 0, out);
    print_depth_groups(t, out);
    print_whole(v, out);
}

static void put_rule(const Trainer *t, int rule, Json *json)
{
    const Graph *graph = trainer_graph(t);
    OptimRule r = optim_rule(trainer_config(t), rule);
    json_object(json, NULL);
    json_int(json, "group", rule);
    json_text(json, "name", r.table->word.word);
    json_real(json, "lr", r.constants->lr);
    json_real(json, "weight_decay", r.constants->weight_decay);
    json_int(json, "slots", r.slots);
    json_array(json, "names");
    for (int i = 0; i < graph->param_count; ++i)
        if (is_updated_by(t, i, rule)) json_text(json, NULL, graph->param[i].name);
    json_end(json);
    json_end(json);
}

/* Writes parameter i, unless it is a running statistic or is tied to another parameter. The value
 * of "lr" is its highest learning rate, or 0 if it is frozen. */
static void put_param(const Trainer *t, int i, Json *json)
{
    const Graph *whole = graph_undivided(trainer_graph(t));
    const Param *p = &whole->param[i];
    if (p->info.is_statistic || p->tied_param >= 0) return;
    json_object(json, NULL);
    json_text(json, "name", p->name);
    json_int(json, "elements", shape_count(p->shape));
    json_bool(json, "frozen", p->frozen);
    json_real(json, "lr", p->frozen ? 0 : lr_max(t, i));
    json_end(json);
}

void plan_update_json(const PlanView *v, Json *json)
{
    const Trainer *t = v->trainer;
    json_array(json, "optimizer");
    for (int rule = 0; rule < optim_rule_count(trainer_config(t)); ++rule) put_rule(t, rule, json);
    json_end(json);
    json_array(json, "parameter");
    for (int i = 0; i < trainer_graph(t)->param_count; ++i) put_param(t, i, json);
    json_end(json);
    json_real(json, "gathered_bytes", view_gathered_bytes(v));
}
