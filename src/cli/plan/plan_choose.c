/* weft plan --choose: plans the grids of the ranks with schedules, values of grid.zero and
 * recomputation, forecasts a step of each plan, and prints the fastest that fit in memory. Plans
 * are skipped if a lower bound, or another plan of the same grid, shows that they are not near the
 * fastest. Nothing is timed, so equal files give equal choices. */
#include "plan_choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* If two forecasts differ by less than this fraction, it is not known which plan is faster. The
 * fraction is about the largest error of a forecast in bench/results/forecast.md. */
static const double NEAR = 0.05;
/* memory limit while plans are made; the memory of a plan is compared with the real limit
 * afterwards */
static const double NO_LIMIT = 1e18;
enum { CELL = 16, KEYS_TEXT = 160, WHY_TEXT = 300 };

/* ---- one plan ---- */

typedef struct Candidate {
    GridShape shape;
    /* name of the schedule; borrowed */
    const char *schedule;
    int chunks, zero, recompute;
} Candidate;

typedef enum Outcome {
    CHOICE_FITS,
    CHOICE_TOO_LARGE,
    /* the configuration or the model does not allow the plan */
    CHOICE_REFUSED,
    /* results have the same bits only on some grids, and any_bits is not set */
    CHOICE_OTHER_BITS,
    /* the machine's file lacks a time that the plan needs */
    CHOICE_UNMEASURED,
    CHOICE_OUTCOMES
} Outcome;

typedef struct Choice {
    Candidate of;
    Forecast forecast;
    /* memory of the rank that needs most, in bytes */
    double bytes;
    /* true: results have the same bits on every grid (train_same_bits) */
    bool same_bits;
} Choice;

typedef struct Choosing {
    const ChooseFrom *from;
    /* bytes that a rank may use */
    double limit;
    /* number of plans by outcome */
    int outcomes[CHOICE_OUTCOMES];
    /* memory of the smallest plan that is too large, in bytes; INFINITY: there is none */
    double too_large_bytes;
    /* reasons why the first refused plan was refused, and why the first plan without forecast has
     * none; "": there is no such plan */
    char refused[WHY_TEXT], unmeasured[WHY_TEXT];
    /* plans that fit; owned */
    Choice *choice;
    int count, capacity;
    /* time of a step of the fastest plan; INFINITY: no plan fits yet */
    double best_s;
} Choosing;

static Config configure(const Choosing *c, const Candidate *of)
{
    Config config = *c->from->config;
    config.grid.dp = of->shape.dp;
    if (config.grid.pp != of->shape.pp || config.grid.chunks != of->chunks) config.grid.cuts = "";
    config.grid.pp = of->shape.pp;
    config.grid.tp = of->shape.tp;
    config.grid.pipeline_schedule = schedule_kind(of->schedule);
    config.grid.chunks = of->chunks;
    config.grid.zero = of->zero;
    config.grid.recompute = of->recompute;
    config.train.memory = NO_LIMIT;
    return config;
}

static void keep(Choosing *c, const Choice *choice)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        c->choice = mem_resize(c->choice, (size_t)c->capacity * sizeof *c->choice);
    }
    c->choice[c->count++] = *choice;
    c->best_s = fmin(c->best_s, choice->forecast.step.median);
}

/* Copies the message of a failure to why, if that is empty. */
static void note(char why[WHY_TEXT])
{
    if (!*why) snprintf(why, WHY_TEXT, "%s", fail_message());
}

/* Computes the memory and the forecast of a candidate, which t has planned, unless its bits rule it
 * out. */
static Outcome forecast_of(Choosing *c, const Trainer *t, bool median_only, Choice *found)
{
    const ChooseFrom *from = c->from;
    const ForecastBy by = {from->machine, from->path, median_only};
    Plan **plan = NULL;
    found->same_bits = train_same_bits(t);
    if (!found->same_bits && !from->any_bits) return CHOICE_OTHER_BITS;
    Status st = train_plans(t, &plan);
    for (int s = 0; st == OK && s < trainer_shape(t).pp; ++s)
        found->bytes = fmax(found->bytes, (double)train_bytes(t, plan[s]).all);
    if (st == OK) st = train_forecast(t, (const Plan *const *)plan, &by, &found->forecast);
    train_plans_free(t, &plan);
    if (st != OK) note(c->unmeasured);
    if (st != OK) return CHOICE_UNMEASURED;
    return found->bytes > c->limit ? CHOICE_TOO_LARGE : CHOICE_FITS;
}

static Outcome try_config(Choosing *c, const Config *config, bool median_only, Choice *found)
{
    Trainer *t = NULL;
    Outcome outcome = CHOICE_REFUSED;
    const DryRun dry_run = {c->from->ranks, NULL, c->from->data, c->from->machine->ranks};
    found->bytes = 0;
    if (trainer_dry_run(&t, config, c->from->world, &dry_run) == OK)
        outcome = forecast_of(c, t, median_only, found);
    else
        note(c->refused);
    trainer_free(&t);
    return outcome;
}

/* Plans a candidate. If it fits or is too large, *found gets its memory and forecast. A run that
 * has no memory for a copy of its state writes checkpoints without one, so a candidate that is too
 * large is tried again without the copy. */
static Outcome try_candidate(Choosing *c, const Candidate *of, bool median_only, Choice *found)
{
    Config config = configure(c, of);
    *found = (Choice){.of = *of};
    Outcome outcome = try_config(c, &config, median_only, found);
    if (outcome != CHOICE_TOO_LARGE || !config.checkpoint.background) return outcome;
    config.checkpoint.background = false;
    return try_config(c, &config, median_only, found);
}

/* ---- the search ---- */

/* A grid, and a lower bound on the time of its step: the time without the bubble, which another
 * schedule may avoid, and with the update divided among the replicas, which grid.zero may do. */
typedef struct GridBound {
    GridShape shape;
    double least_s;
} GridBound;

/* Schedules of several stages, with the numbers of chunks that are tried. */
static const struct {
    const char *schedule;
    int chunks;
} orders[] = {{"1f1b", 1},        {"gpipe", 1}, {"interleaved", 2}, {"interleaved", 4},
              {"zero-bubble", 1}, {"zb-v", 2},  {"dualpipe-v", 2}};
enum { ORDERS = sizeof orders / sizeof *orders };

/* Tries a schedule with the values of grid.zero and grid.recompute. grid.zero 2 and 3, and
 * recomputation, take more time, so they are tried only as long as nothing else fits. */
static void try_order(Choosing *c, Candidate of, int order)
{
    static const int modes[] = {RECOMPUTE_NONE, RECOMPUTE_BLOCK};
    of.schedule = orders[order].schedule;
    of.chunks = orders[order].chunks;
    for (int m = 0; m < 2; ++m) {
        bool fits = false;
        of.recompute = modes[m];
        for (of.zero = ZERO_NONE; of.zero <= ZERO_PARAMS; ++of.zero) {
            Choice found;
            if (of.zero > ZERO_NONE && of.shape.dp == 1) break;
            if (of.zero > ZERO_STATE && fits) break;
            Outcome outcome = try_candidate(c, &of, true, &found);
            ++c->outcomes[outcome];
            if (outcome == CHOICE_FITS) keep(c, &found);
            if (outcome == CHOICE_TOO_LARGE)
                c->too_large_bytes = fmin(c->too_large_bytes, found.bytes);
            fits = fits || outcome == CHOICE_FITS;
            if (outcome != CHOICE_FITS && outcome != CHOICE_TOO_LARGE) return;
            /* assumes that the schedule is not near the best with other values of grid.zero
             * either */
            if (fits && found.forecast.step.median > c->best_s * (1 + NEAR)) return;
        }
        if (fits) break;
    }
}

static void try_grid(Choosing *c, const GridBound *grid)
{
    for (int o = 0; o < (grid->shape.pp > 1 ? ORDERS : 1); ++o)
        try_order(c, (Candidate){.shape = grid->shape}, o);
}

/* Computes the bound of a grid from its plan with the first schedule. Returns false if that plan
 * has no forecast, and counts the outcome. */
static bool bound_grid(Choosing *c, GridShape shape, GridBound *grid)
{
    Choice found;
    const Candidate of = {shape, orders[0].schedule, orders[0].chunks, ZERO_NONE, RECOMPUTE_NONE};
    Outcome outcome = try_candidate(c, &of, true, &found);
    if (outcome != CHOICE_FITS && outcome != CHOICE_TOO_LARGE) {
        ++c->outcomes[outcome];
        return false;
    }
    const Forecast *f = &found.forecast;
    if (outcome == CHOICE_FITS) c->best_s = fmin(c->best_s, f->step.median);
    double update_s = f->line[FORECAST_UPDATE];
    *grid = (GridBound){shape,
                        f->step.median - f->line[FORECAST_BUBBLE] - update_s + update_s / shape.dp};
    return true;
}

static int by_least(const void *a, const void *b)
{
    double x = ((const GridBound *)a)->least_s, y = ((const GridBound *)b)->least_s;
    return (x > y) - (x < y);
}

/* Grids that have a bound. */
typedef struct GridList {
    /* [count]; owned */
    GridBound *grid;
    int count;
} GridList;

/* Adds the grids with tensor-parallel groups of tp ranks, by ascending number of stages. Deeper
 * pipelines take longer to simulate. Therefore the list ends after DEPTHS_SLOWER consecutive grids
 * whose lower bound is not below that of the grid before and is not near the best time. */
static void list_depths(Choosing *c, int tp, GridList *list)
{
    enum { DEPTHS_SLOWER = 2 };
    int replicas = c->from->ranks / tp, slower = 0;
    double before_s = INFINITY;
    for (int pp = 1; pp <= replicas && slower < DEPTHS_SLOWER; ++pp) {
        GridBound bound;
        if (replicas % pp != 0 || replicas / pp > c->from->micros) continue;
        if (!bound_grid(c, (GridShape){.dp = replicas / pp, .pp = pp, .tp = tp}, &bound)) continue;
        bool far = bound.least_s > c->best_s * (1 + NEAR) && bound.least_s >= before_s;
        slower = far ? slower + 1 : 0;
        before_s = bound.least_s;
        list->grid = mem_resize(list->grid, ((size_t)list->count + 1) * sizeof *list->grid);
        list->grid[list->count++] = bound;
    }
}

/* Tries the grids by ascending lower bound, until no further grid can be near the best. */
static void search(Choosing *c)
{
    GridList list = {NULL, 0};
    for (int tp = 1; tp <= c->from->ranks; ++tp)
        if (c->from->ranks % tp == 0) list_depths(c, tp, &list);
    qsort(list.grid, (size_t)list.count, sizeof *list.grid, by_least);
    for (int i = 0; i < list.count && list.grid[i].least_s <= c->best_s * (1 + NEAR); ++i)
        try_grid(c, &list.grid[i]);
    mem_free(&list.grid);
}

/* ---- output ---- */

static int by_time(const void *a, const void *b)
{
    const Choice *x = a, *y = b;
    double s = x->forecast.step.median, t = y->forecast.step.median;
    if (s != t) return s < t ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Writes the keys of a choice as they are given on a command line. */
static void put_keys(const Candidate *of, char text[KEYS_TEXT])
{
    static const char *const zero[] = {ZERO_WORDS(LIST_NAME)};
    static const char *const recompute[] = {RECOMPUTE_WORDS(LIST_NAME)};
    char order[64] = "";
    if (of->shape.pp > 1)
        snprintf(order, sizeof order, " grid.pipeline_schedule=%s grid.chunks=%d", of->schedule,
                 of->chunks);
    snprintf(text, KEYS_TEXT, "grid.dp=%d grid.pp=%d grid.tp=%d%s grid.zero=%s grid.recompute=%s",
             of->shape.dp, of->shape.pp, of->shape.tp, order, zero[of->zero],
             recompute[of->recompute]);
}

/* Forecasts the printed choices again, now with the ranges of their times. */
static void add_ranges(Choosing *c)
{
    for (int i = 0; i < c->count && i < c->from->top; ++i) {
        const Candidate of = c->choice[i].of;
        try_candidate(c, &of, false, &c->choice[i]);
    }
}

/* Returns the number of choices whose step is nearly as fast as the best. */
static int count_near(const Choosing *c)
{
    int near = 0;
    while (near < c->count && c->choice[near].forecast.step.median <= c->best_s * (1 + NEAR))
        ++near;
    return near;
}

static void print_text(const Choosing *c, FILE *out)
{
    int near = count_near(c), shown = c->count < c->from->top ? c->count : c->from->top;
    char keys[KEYS_TEXT], bytes[CELL];
    fprintf(out, "%d ranks: %d plans fit in %s a rank, %d need more, %d are impossible",
            c->from->ranks, c->outcomes[CHOICE_FITS], text_bytes(c->limit, bytes),
            c->outcomes[CHOICE_TOO_LARGE], c->outcomes[CHOICE_REFUSED]);
    if (c->outcomes[CHOICE_OTHER_BITS])
        fprintf(out, ", %d give other bits (--any-bits)", c->outcomes[CHOICE_OTHER_BITS]);
    if (c->outcomes[CHOICE_UNMEASURED])
        fprintf(out, ", %d have times that were not measured", c->outcomes[CHOICE_UNMEASURED]);
    fprintf(out, "\n%4s %11s %17s %11s %10s  %s\n", "", "ms a step", "range", "samples/s", "memory",
            "keys");
    for (int i = 0; i < shown; ++i) {
        const Choice *choice = &c->choice[i];
        const TimeRange *step = &choice->forecast.step;
        char range[40];
        snprintf(range, sizeof range, "%.4g to %.4g", 1e3 * step->low, 1e3 * step->high);
        put_keys(&choice->of, keys);
        fprintf(out, "%c%3d %11.4g %17s %11.4g %10s  %s%s\n", i < near ? '~' : ' ', i + 1,
                1e3 * step->median, range, (double)c->from->batch / step->median,
                text_bytes(choice->bytes, bytes), keys, choice->same_bits ? "" : "  other bits");
    }
    if (near > 1)
        fprintf(out,
                "~ too near to call: %d plans are within %.0f %% of the first, the error of "
                "forecasts; to compare two of them: weft bench step CONFIG KEYS -n %d\n",
                near, 100 * NEAR, c->from->ranks);
    if (c->outcomes[CHOICE_UNMEASURED])
        fprintf(out, "not forecast, and perhaps faster: %d, the first because %s\n",
                c->outcomes[CHOICE_UNMEASURED], c->unmeasured);
    if (c->from->machine->has_rates)
        fprintf(out, "times follow from given rates, not from measured times\n");
    put_keys(&c->choice[0].of, keys);
    fprintf(out, "chosen: %s\n", keys);
}

static void print_json(const Choosing *c, FILE *out)
{
    Json json = json_to(out, true);
    char keys[KEYS_TEXT];
    int near = count_near(c), shown = c->count < c->from->top ? c->count : c->from->top;
    json_object(&json, NULL);
    json_int(&json, "ranks", c->from->ranks);
    json_int(&json, "fit", c->outcomes[CHOICE_FITS]);
    json_int(&json, "too_large", c->outcomes[CHOICE_TOO_LARGE]);
    json_int(&json, "impossible", c->outcomes[CHOICE_REFUSED]);
    json_int(&json, "other_bits", c->outcomes[CHOICE_OTHER_BITS]);
    json_int(&json, "unmeasured", c->outcomes[CHOICE_UNMEASURED]);
    json_text(&json, "unmeasured_because", c->unmeasured);
    json_bool(&json, "described", c->from->machine->has_rates);
    json_array(&json, "plans");
    for (int i = 0; i < shown; ++i) {
        const Choice *choice = &c->choice[i];
        put_keys(&choice->of, keys);
        json_object(&json, NULL);
        json_text(&json, "keys", keys);
        json_real(&json, "step_s", choice->forecast.step.median);
        json_real(&json, "low_s", choice->forecast.step.low);
        json_real(&json, "high_s", choice->forecast.step.high);
        json_real(&json, "bytes", choice->bytes);
        json_bool(&json, "too_near_to_call", near > 1 && i < near);
        json_bool(&json, "same_bits_on_every_grid", choice->same_bits);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
}

/* ---- the verb's part ---- */

/* Returns "text; more", and frees both. */
static char *joined(char *text, char *more)
{
    char *both = mem_format("%s; %s", text, more);
    mem_free(&text);
    mem_free(&more);
    return both;
}

/* Fails with the number of plans by outcome, and reasons. */
static Status none_fits(const Choosing *c)
{
    const int *n = c->outcomes;
    char limit[CELL], least[CELL], *text = mem_format("no plan for %d ranks", c->from->ranks);
    if (n[CHOICE_TOO_LARGE])
        text = joined(text, mem_format("%d need more than %s a rank, the smallest %s",
                                       n[CHOICE_TOO_LARGE], text_bytes(c->limit, limit),
                                       text_bytes(c->too_large_bytes, least)));
    if (n[CHOICE_OTHER_BITS])
        text = joined(text, mem_format("%d give other bits (--any-bits)", n[CHOICE_OTHER_BITS]));
    if (n[CHOICE_UNMEASURED])
        text = joined(text, mem_format("%d have times that were not measured, the first because %s",
                                       n[CHOICE_UNMEASURED], c->unmeasured));
    if (n[CHOICE_REFUSED])
        text = joined(text, mem_format("%d are impossible, the first because %s", n[CHOICE_REFUSED],
                                       c->refused));
    fail(ERR_CONFIG, "%s", text);
    mem_free(&text);
    return ERR_CONFIG;
}

Status plan_choose(const ChooseFrom *from, FILE *out)
{
    Choosing c = {
        .from = from, .limit = from->memory, .too_large_bytes = INFINITY, .best_s = INFINITY};
    Status st = OK;
    search(&c);
    if (c.count == 0) st = none_fits(&c);
    if (st == OK) {
        qsort(c.choice, (size_t)c.count, sizeof *c.choice, by_time);
        add_ranges(&c);
        if (from->world->rank == 0) (from->json ? print_json : print_text)(&c, out);
    }
    mem_free(&c.choice);
    return st;
}
