/* weft plan on the sums over replicas: prints how many bytes are summed, and the number of
 * messages, the number of partners and the estimated time. The last three assume that each replica
 * is on a node of its own. */
#include "plan_view.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { CELL = 16 };

/* ---- links ---- */

/* Reads a positive number and the character `end`, which must follow it, and moves *text past both.
 * Returns false if the text has another form. */
static bool read_positive(const char **text, char end, double *value)
{
    char *rest;
    if (!isdigit((unsigned char)**text) && **text != '.') return false;
    *value = strtod(*text, &rest);
    bool good = isfinite(*value) && isfinite(1 / *value) && *rest == end;
    *text = rest + 1;
    return good;
}

Status view_parse_link(const char *text, Link *link)
{
    double microseconds, gigabytes;
    const char *at = text;
    if (!read_positive(&at, ',', &microseconds) || !read_positive(&at, 0, &gigabytes))
        return fail(ERR_USAGE,
                    "--link %s: expected the microseconds of a message and GB/s, as " PLAN_LINK,
                    text);
    *link = (Link){.latency_s = 1e-6 * microseconds, .s_per_byte = 1e-9 / gigabytes};
    return OK;
}

/* ---- counts ---- */

/* The sums of a stage in one step or, in mode geo, at one sync point. */
typedef struct StepSums {
    /* number of sums */
    int64_t count;
    /* number of sums that use the algorithm halving */
    int64_t halved;
    /* total cost of the sums */
    SumCost cost;
} StepSums;

/* Adds `times` equal sums. algorithm: COMM_BY_RULE, or an algorithm. */
static void add_sum(StepSums *sums, const SumShape *shape, SumAlgorithm algorithm, Link link,
                    int64_t times)
{
    SumAlgorithm taken = sum_algorithm(shape, algorithm);
    SumCost one = sum_cost(shape, taken, link);
    sums->count += times;
    sums->halved += taken == COMM_HALVING ? times : 0;
    sums->cost.messages += times * one.messages;
    sums->cost.mean_messages += (double)times * one.mean_messages;
    sums->cost.bytes += (double)times * one.bytes;
    sums->cost.seconds += (double)times * one.seconds;
    if (one.partners > sums->cost.partners) sums->cost.partners = one.partners;
}

/* Counts the sums of a bucket. The bucket's gradients are sent once for each group of consecutive
 * micro-batches that a replica has (deal_runs). Then the sums are sent back or, with grid.zero, the
 * new parameters. If plan->gathers is set, parameters are not sent back, but gathered in
 * forward. */
static void add_bucket(const PlanView *v, const Plan *plan, const ChunkPlan *c, int bucket,
                       SumAlgorithm algorithm, StepSums *sums)
{
    int runs = deal_runs(plan->deal, trainer_sizes(v->trainer).micro_batches_local);
    bool sharded = plan_shards_gradients(plan), back = !plan->zero;
    const Bounds *shard = plan->zero ? &c->shard[bucket] : runs > 1 ? &c->push_shard[bucket] : NULL;
    SumShape shape = {.ranks = plan->shape.dp,
                      .width = 1,
                      .arena_elements = plan->micro_grad_elements,
                      .elements = c->buckets.elements[bucket],
                      .collect = true,
                      .is_push = sharded || runs > 1,
                      .longest = shard ? bounds_longest(shard) : 0};
    add_sum(sums, &shape, algorithm, v->link, runs - back);
    shape.spread = back;
    if (back) add_sum(sums, &shape, algorithm, v->link, 1);
    SumShape gather = shape;
    gather.is_push = gather.collect = false;
    gather.spread = true;
    if (!back && !plan->gathers) add_sum(sums, &gather, algorithm, v->link, 1);
}

/* Counts the sums of a stage. algorithm: COMM_BY_RULE, or one algorithm for all sums. In mode geo
 * there is a single sum, of the changes of all parameters at a sync point. */
static StepSums step_sums(const PlanView *v, int stage, SumAlgorithm algorithm)
{
    const Plan *plan = v->stage_view[stage].plan;
    StepSums sums = {0};
    if (view_mode(v) == UPDATE_GEO) {
        SumShape shape = {.ranks = plan->shape.dp,
                          .width = 1,
                          .arena_elements = plan->param_elements,
                          .elements = plan->param_elements,
                          .collect = true,
                          .spread = true};
        add_sum(&sums, &shape, algorithm, v->link, 1);
        return sums;
    }
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int b = 0; b < plan->chunk[c].buckets.count; ++b)
            add_bucket(v, plan, &plan->chunk[c], b, algorithm, &sums);
    return sums;
}

static bool has_sums(const PlanView *v)
{
    return trainer_shape(v->trainer).dp > 1 && view_mode(v) != UPDATE_ASYNC;
}

double view_summed_bytes(const PlanView *v, int stage)
{
    const Plan *plan = v->stage_view[stage].plan;
    if (!has_sums(v)) return 0;
    return (double)(view_mode(v) == UPDATE_GEO ? plan->param_bytes : plan->gradient_bytes);
}

static SumAlgorithm configured_way(const PlanView *v)
{
    return (SumAlgorithm)trainer_config(v->trainer)->grid.sums;
}

/* Returns the stage with most bytes of gradients. */
static int largest_stage(const PlanView *v)
{
    int most = 0;
    for (int s = 1; s < v->stages; ++s)
        if (v->stage_view[s].plan->gradient_bytes > v->stage_view[most].plan->gradient_bytes)
            most = s;
    return most;
}

/* ---- text ---- */

/* Prints the cost of the sums with one algorithm. */
static void print_way(const StepSums *sums, const char *name, FILE *out)
{
    char bytes[CELL];
    fprintf(out, "  %-10s %10lld messages, mean of ranks %.0f, to %d ranks, %s, %.3g ms\n", name,
            (long long)sums->cost.messages, sums->cost.mean_messages, sums->cost.partners,
            text_bytes(sums->cost.bytes, bytes), 1e3 * sums->cost.seconds);
}

/* Prints how the algorithm was chosen. */
static void print_rule(const PlanView *v, int stage, FILE *out)
{
    int dp = trainer_shape(v->trainer).dp;
    const Plan *plan = v->stage_view[stage].plan;
    int64_t from = sum_halving_from(dp);
    int64_t piece = sum_piece_elements(
        dp, 1, view_mode(v) == UPDATE_GEO ? plan->param_elements : plan->micro_grad_elements);
    char bytes[CELL];
    if (configured_way(v) != COMM_BY_RULE)
        fprintf(out, "  by grid.sums: ");
    else if (from == INT64_MAX)
        fprintf(out, "  by the rule, between %d ranks never halving: ", dp);
    else
        fprintf(out, "  by the rule, halving from %lld piece%s of %s on: ", (long long)from,
                from == 1 ? "" : "s", text_bytes((double)piece * sizeof(float), bytes));
}

void plan_sums_text(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    int dp = trainer_shape(t).dp, most = largest_stage(v);
    char bytes[CELL];
    bool geo = view_mode(v) == UPDATE_GEO;
    if (!has_sums(v)) return;
    StepSums taken = step_sums(v, most, configured_way(v)),
             all = step_sums(v, most, COMM_ALL_TO_ALL), halving = step_sums(v, most, COMM_HALVING);
    fprintf(out, "\n%s summed over %d replicas%s: %s in each rank",
            geo ? "changes of parameters" : "gradients", dp, geo ? " at a sync point" : "",
            text_bytes(view_summed_bytes(v, most), bytes));
    if (v->stages > 1) fprintf(out, " of stage %d, which has most", most);
    fprintf(out, "; each rank sends and receives %s\n", text_bytes(taken.cost.bytes, bytes));
    fprintf(out,
            "  with messages, one replica per node, %.4g us per message and %.4g GB/s (--link); "
            "for the rank with most messages %s:\n",
            1e6 * v->link.latency_s, 1e-9 / v->link.s_per_byte,
            geo ? "at a sync point" : "in a step");
    print_way(&all, "all to all", out);
    print_way(&halving, "halving", out);
    print_rule(v, most, out);
    fprintf(out, "%lld of %lld sums by halving, %.3g ms\n", (long long)taken.halved,
            (long long)taken.count, 1e3 * taken.cost.seconds);
}

/* ---- JSON ---- */

static void put_way(Json *json, const char *key, const StepSums *sums)
{
    json_object(json, key);
    json_int(json, "halved", sums->halved);
    json_int(json, "messages", sums->cost.messages);
    json_real(json, "mean_messages", sums->cost.mean_messages);
    json_int(json, "partners", sums->cost.partners);
    json_real(json, "sent_bytes", sums->cost.bytes);
    json_real(json, "seconds", sums->cost.seconds);
    json_end(json);
}

void plan_sums_json(const PlanView *v, int stage, Json *json)
{
    if (!has_sums(v)) return;
    StepSums taken = step_sums(v, stage, configured_way(v)),
             all = step_sums(v, stage, COMM_ALL_TO_ALL),
             halving = step_sums(v, stage, COMM_HALVING);
    json_object(json, "sums");
    json_text(json, "at", view_mode(v) == UPDATE_GEO ? "sync point" : "step");
    json_int(json, "count", taken.count);
    json_real(json, "latency_s", v->link.latency_s);
    json_real(json, "byte_s", v->link.s_per_byte);
    put_way(json, "taken", &taken);
    put_way(json, "all_to_all", &all);
    put_way(json, "halving", &halving);
    json_end(json);
}
