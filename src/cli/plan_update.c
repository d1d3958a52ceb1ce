/* `weft plan` on the optimizer: which rule updates which parameters, and what whole tensors cost. Names that differ only in their
 * numbers are one line's worth: h.*.ln_1.weight x 12. */
#include "plan_view.h"

#include <ctype.h>
#include <string.h>

enum { NAME = 128, CELL = 32 };

typedef struct Names {
    int count, *times; /* owned, as name */
    char (*name)[NAME];
} Names;

static void fold(const char *name, char *out)
{
    size_t used = 0;
    while (*name && used + 1 < NAME) {
        bool digit = isdigit((unsigned char)*name);
        out[used++] = digit ? '*' : *name++;
        while (digit && isdigit((unsigned char)*name)) ++name;
    }
    out[used] = 0;
}

static void names_add(Names *names, const char *name)
{
    char folded[NAME];
    fold(name, folded);
    for (int i = 0; i < names->count; ++i)
        if (strcmp(names->name[i], folded) == 0) {
            ++names->times[i];
            return;
        }
    names->name = mem_resize(names->name, (size_t)(names->count + 1) * sizeof *names->name);
    names->times = mem_resize(names->times, (size_t)(names->count + 1) * sizeof *names->times);
    memcpy(names->name[names->count], folded, sizeof folded);
    names->times[names->count++] = 1;
}

/* Is the parameter one that this rule of the configuration updates, and no other's? */
static bool is_of(const Trainer *t, int param, int rule)
{
    const Param *p = &t->graph->param[param];
    return !p->info.buffer && p->tied < 0 && t->rule[param] == rule;
}

static void print_names(const Trainer *t, int rule, FILE *out)
{
    Names names = {0};
    for (int i = 0; i < t->graph->param_count; ++i)
        if (is_of(t, i, rule)) names_add(&names, t->graph->param[i].name);
    char *all = mem_text("");
    for (int i = 0; i < names.count; ++i) {
        char times[CELL] = "";
        if (names.times[i] > 1) snprintf(times, sizeof times, " x %d", names.times[i]);
        char *longer = mem_format("%s%s%s%s", all, i ? ", " : "", names.name[i], times);
        mem_free(&all);
        all = longer;
    }
    fputs("    ", out);
    print_wrapped(out, 4, all);
    mem_free(&all);
    mem_free(&names.name);
    mem_free(&names.times);
}

static int64_t numbers_of(const Trainer *t, int rule)
{
    const Graph *g = graph_whole(t->graph);
    int64_t numbers = 0;
    for (int i = 0; i < g->param_count; ++i)
        if (is_of(t, i, rule)) numbers += shape_count(g->param[i].shape);
    return numbers;
}

static void print_rule(const Trainer *t, int rule, FILE *out)
{
    char title[CELL] = "others";
    OptimRule r = optim_rule(t->config, rule);
    int64_t numbers = numbers_of(t, rule);
    if (rule > 0) snprintf(title, sizeof title, "group %d", rule);
    if (numbers == 0) return;
    fprintf(out, "  %-9s %s, lr %g, weight_decay %g, %d number%s of state each; %lld parameters\n",
            title, r.table->word.word, r.is->lr, r.is->weight_decay, r.slots,
            r.slots == 1 ? "" : "s", (long long)numbers);
    print_names(t, rule, out);
}

/* What a rank of a tensor group takes from the others in a step: of each tensor that its replica updates whole, or, where nothing
 * is shared out, of all of the stage. The widest slices count. */
static double gathered_bytes(const PlanView *v, int stage, int dp_rank)
{
    const Trainer *t = v->trainer;
    const Plan *plan = v->stage_view[stage].plan;
    double bytes = 0;
    for (int i = 0; i < t->graph->param_count; ++i) {
        int64_t first, count;
        const Param *p = &t->graph->param[i];
        if (p->info.buffer || plan->value_at[i] < 0 || !t->updates[i].whole || !p->cut.parts)
            continue;
        plan_share(plan, i, dp_rank, &first, &count);
        if (count > 0)
            bytes += (double)param_slice_count(t->graph, i, 0) * sizeof(float) * (t->shape.tp - 1);
    }
    return bytes;
}

double view_gathered_bytes(const PlanView *v)
{
    double most = 0;
    for (int s = 0; s < v->stages; ++s)
        for (int r = 0; r < v->trainer->shape.dp; ++r) {
            double bytes = gathered_bytes(v, s, r);
            if (bytes > most) most = bytes;
        }
    return most;
}

static void print_whole(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    char bytes[CELL];
    int tensors = 0;
    for (int i = 0; i < t->graph->param_count; ++i)
        tensors += t->graph->param[i].tied < 0 && t->updates[i].whole;
    if (tensors == 0) return;
    fprintf(out, "  %d whole tensors, ", tensors);
    if (t->shape.dp == 1)
        fprintf(out, "updated once");
    else if (t->plan->zero)
        fprintf(out, "each updated by one replica, which no message more is for");
    else
        fprintf(out, "updated by each of %d replicas; with grid.zero=1 by one", t->shape.dp);
    if (t->shape.tp > 1)
        fprintf(out, "; of slices a rank sends and takes %s a step",
                text_bytes(view_gathered_bytes(v), bytes));
    fputc('\n', out);
}

void plan_update_text(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    if (!optim_packs(t->config)) return;
    fprintf(out, "\noptimizer\n");
    for (int rule = 1; rule < optim_rule_count(t->config); ++rule) print_rule(t, rule, out);
    print_rule(t, 0, out);
    print_whole(v, out);
}

static void put_rule(const Trainer *t, int rule, FILE *out)
{
    OptimRule r = optim_rule(t->config, rule);
    const char *comma = "";
    fprintf(out, "{\"group\": %d, \"name\": \"%s\", \"lr\": ", rule, r.table->word.word);
    json_number(out, r.is->lr);
    fprintf(out, ", \"weight_decay\": ");
    json_number(out, r.is->weight_decay);
    fprintf(out, ", \"slots\": %d, \"names\": [", r.slots);
    for (int i = 0; i < t->graph->param_count; ++i) {
        if (!is_of(t, i, rule)) continue;
        fputs(comma, out);
        json_text(out, t->graph->param[i].name);
        comma = ", ";
    }
    fprintf(out, "]}");
}

void plan_update_json(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    fprintf(out, ", \"optimizer\": [");
    for (int rule = 0; rule < optim_rule_count(t->config); ++rule) {
        if (rule) fputs(", ", out);
        put_rule(t, rule, out);
    }
    fprintf(out, "], \"gathered_bytes\": ");
    json_number(out, view_gathered_bytes(v));
}
