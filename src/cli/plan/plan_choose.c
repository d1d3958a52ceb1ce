/* weft plan --choose: makes plans for all grids of the ranks, with different schedules, values of
 * grid.zero and values of grid.recompute. Forecasts a step of each plan, and prints the fastest
 * plans that fit in memory. Plans are skipped if a lower bound shows that they are clearly slower
 * than the fastest, or if another plan with the same grid and schedule makes this likely. Nothing
 * is timed, so equal files give equal choices. */
#include "plan_choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* If two forecasts differ by less than this fraction, it is not known which plan is faster. The
 * fraction is about the largest error of a forecast in bench/results/forecast.md. */
static const double NEAR = 0.05;
/* memory limit, in bytes, while plans are made; the memory of a plan is compared with the real
 * limit afterwards */
static const double NO_LIMIT = 1e18;
/* sizes of texts in bytes. CELL: a cell of the table; KEYS_TEXT: the keys of a plan; WHY_TEXT: a
 * reason */
enum { CELL = 16, KEYS_TEXT = 160, WHY_TEXT = 300 };

/* ---- one plan ---- */

/* The keys by which plans differ. */
typedef struct Candidate {
    GridShape shape;
    /* name of the schedule; borrowed */
    const char *schedule;
    /* values of grid.chunks, grid.zero and grid.recompute */
    int chunks, zero, recompute;
} Candidate;

/* The result of planning a candidate. */
typedef enum Outcome {
    /* the plan fits in memory, and has a forecast */
    CHOICE_FITS,
    /* the plan needs too much memory, and has a forecast */
    CHOICE_TOO_LARGE,
    /* the configuration or the model does not allow the plan */
    CHOICE_REFUSED,
    /* results have the same bits only on some grids, and any_bits is not set */
    CHOICE_OTHER_BITS,
    /* there is no forecast; for example, the machine's file lacks a time that the plan needs */
    CHOICE_UNMEASURED,
    /* number of outcomes */
    CHOICE_OUTCOMES
} Outcome;

/* A plan that has been forecast. */
typedef struct Choice {
    Candidate candidate;
    Forecast forecast;
    /* memory of the rank that needs most, in bytes */
    double bytes;
    /* true: results have the same bits on every grid (train_same_bits) */
    bool same_bits;
} Choice;

/* The state of the search. */
typedef struct Choosing {
    const ChooseInput *input;
    /* number of bytes that a rank may use */
    double limit;
    /* number of plans by outcome */
    int outcomes[CHOICE_OUTCOMES];
    /* memory of the smallest plan that is too large, in bytes; INFINITY: there is none */
    double too_large_bytes;
    /* reason why the first refused plan was refused; "": no plan was refused */
    char refused[WHY_TEXT];
    /* reason why the first plan without a forecast has none; "": all plans have one */
    char unmeasured[WHY_TEXT];
    /* plans that fit, [count]; owned */
    Choice *choice;
    int count;
    /* number of plans for which `choice` has room */
    int capacity;
    /* forecast time of a step of the fastest plan that fits; INFINITY: no plan fits yet */
    double best_s;
} Choosing;

/* Returns the configuration with the keys of a candidate and without a limit on memory. Its texts
 * are borrowed. */
static Config configure(const Choosing *c, const Candidate *candidate)
{
    Config config = *c->input->config;
    config.grid.dp = candidate->shape.dp;
    if (config.grid.pp != candidate->shape.pp || config.grid.chunks != candidate->chunks)
        config.grid.cuts = "";
    config.grid.pp = candidate->shape.pp;
    config.grid.tp = candidate->shape.tp;
    config.grid.pipeline_schedule = schedule_kind(candidate->schedule);
    config.grid.chunks = candidate->chunks;
    config.grid.zero = candidate->zero;
    config.grid.recompute = candidate->recompute;
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

/* Copies the message of a failure to `why`, if no earlier message is there. */
static void note(char why[WHY_TEXT])
{
    if (!*why) snprintf(why, WHY_TEXT, "%s", fail_message());
}

/* Computes the memory and the forecast of the candidate that t has planned. Computes nothing if
 * results have the same bits only on some grids and any_bits is not set. */
static Outcome forecast_of(Choosing *c, const Trainer *t, bool median_only, Choice *found)
{
    const ChooseInput *input = c->input;
    const ForecastMachine by = {input->machine, input->path, median_only};
    Plan **plan = NULL;
    found->same_bits = train_same_bits(t);
    if (!found->same_bits && !input->any_bits) return CHOICE_OTHER_BITS;
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
    const DryRun dry_run = {c->input->ranks, NULL, c->input->data, c->input->machine->ranks};
    found->bytes = 0;
    if (trainer_dry_run(&t, config, c->input->world, &dry_run) == OK)
        outcome = forecast_of(c, t, median_only, found);
    else
        note(c->refused);
    trainer_free(&t);
    return outcome;
}

/* Plans a candidate. If the outcome is CHOICE_FITS or CHOICE_TOO_LARGE, sets its memory and
 * forecast in *found. A run that has no memory for a copy of its state writes checkpoints without
 * the copy, so a candidate that is too large is tried again without the copy. median_only: the
 * forecast has no range of times. */
static Outcome try_candidate(Choosing *c, const Candidate *candidate, bool median_only,
                             Choice *found)
{
    Config config = configure(c, candidate);
    *found = (Choice){.candidate = *candidate};
    Outcome outcome = try_config(c, &config, median_only, found);
    if (outcome != CHOICE_TOO_LARGE || !config.checkpoint.background) return outcome;
    config.checkpoint.background = false;
    return try_config(c, &config, median_only, found);
}

/* ---- the search ---- */

/* A grid, and a lower bound on the time of its step. */
typedef struct GridBound {
    GridShape shape;
    /* lower bound: time of a step without the bubble, which another schedule may avoid, and with
     * the update divided among the replicas, as grid.zero may do */
    double least_s;
} GridBound;

/* The schedules that are tried for grids with several stages, each with a number of chunks. Grids
 * with one stage use only the first. */
static const struct {
    const char *schedule;
    int chunks;
} orders[] = {{"1f1b", 1},        {"gpipe", 1}, {"interleaved", 2}, {"interleaved", 4},
              {"zero-bubble", 1}, {"zb-v", 2},  {"dualpipe-v", 2}};
enum { ORDERS = sizeof orders / sizeof *orders };

/* Tries a schedule with the values of grid.zero and grid.recompute. Values 2 and 3 of grid.zero,
 * and recomputation, take more time, so they are tried only as long as nothing else fits.
 * candidate: only its shape is used. order: index in `orders`. */
static void try_order(Choosing *c, Candidate candidate, int order)
{
    static const int modes[] = {RECOMPUTE_NONE, RECOMPUTE_BLOCK};
    candidate.schedule = orders[order].schedule;
    candidate.chunks = orders[order].chunks;
    for (int m = 0; m < 2; ++m) {
        bool fits = false;
        candidate.recompute = modes[m];
        for (candidate.zero = ZERO_NONE; candidate.zero <= ZERO_PARAMS; ++candidate.zero) {
            Choice found;
            if (candidate.zero > ZERO_NONE && candidate.shape.dp == 1) break;
            if (candidate.zero > ZERO_STATE && fits) break;
            Outcome outcome = try_candidate(c, &candidate, true, &found);
            ++c->outcomes[outcome];
            if (outcome == CHOICE_FITS) keep(c, &found);
            if (outcome == CHOICE_TOO_LARGE)
                c->too_large_bytes = fmin(c->too_large_bytes, found.bytes);
            fits = fits || outcome == CHOICE_FITS;
            if (outcome != CHOICE_FITS && outcome != CHOICE_TOO_LARGE) return;
            /* assumes that with other values of grid.zero the schedule is not nearly as fast as the
             * best plan either */
            if (fits && found.forecast.step.median > c->best_s * (1 + NEAR)) return;
        }
        if (fits) break;
    }
}

/* Computes the bound of a grid from its plan with the first schedule. If that plan has no forecast,
 * counts its outcome and returns false. */
static bool bound_grid(Choosing *c, GridShape shape, GridBound *grid)
{
    Choice found;
    const Candidate candidate = {shape, orders[0].schedule, orders[0].chunks, ZERO_NONE,
                                 RECOMPUTE_NONE};
    Outcome outcome = try_candidate(c, &candidate, true, &found);
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

/* Compares two GridBounds for qsort: ascending lower bound. */
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
 * pipelines take longer to simulate. Therefore the list ends after DEPTHS_SLOWER consecutive slow
 * grids. A grid is slow if its lower bound is not below that of the grid before it, and exceeds the
 * best time by more than NEAR. */
static void list_depths(Choosing *c, int tp, GridList *list)
{
    enum { DEPTHS_SLOWER = 2 };
    int replicas = c->input->ranks / tp, slower = 0;
    double before_s = INFINITY;
    for (int pp = 1; pp <= replicas && slower < DEPTHS_SLOWER; ++pp) {
        GridBound bound;
        if (replicas % pp != 0 || replicas / pp > c->input->micro_batches) continue;
        if (!bound_grid(c, (GridShape){.dp = replicas / pp, .pp = pp, .tp = tp}, &bound)) continue;
        bool far = bound.least_s > c->best_s * (1 + NEAR) && bound.least_s >= before_s;
        slower = far ? slower + 1 : 0;
        before_s = bound.least_s;
        list->grid = mem_resize(list->grid, ((size_t)list->count + 1) * sizeof *list->grid);
        list->grid[list->count++] = bound;
    }
}

/* Tries the grids by ascending lower bound, until no further grid can be nearly as fast as the best
 * plan. */
static void search(Choosing *c)
{
    GridList list = {NULL, 0};
    for (int tp = 1; tp <= c->input->ranks; ++tp)
        if (c->input->ranks % tp == 0) list_depths(c, tp, &list);
    qsort(list.grid, (size_t)list.count, sizeof *list.grid, by_least);
    for (int i = 0; i < list.count && list.grid[i].least_s <= c->best_s * (1 + NEAR); ++i)
        for (int o = 0; o < (list.grid[i].shape.pp > 1 ? ORDERS : 1); ++o)
            try_order(c, (Candidate){.shape = list.grid[i].shape}, o);
    mem_free(&list.grid);
}

/* ---- output ---- */

/* Compares two Choices for qsort: ascending time, then ascending memory. */
static int by_time(const void *a, const void *b)
{
    const Choice *x = a, *y = b;
    double s = x->forecast.step.median, t = y->forecast.step.median;
    if (s != t) return s < t ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Writes the keys of a candidate as key=value words of a command line. */
static void put_keys(const Candidate *candidate, char text[KEYS_TEXT])
{
    static const char *const zero[] = {ZERO_WORDS(LIST_NAME)};
    static const char *const recompute[] = {RECOMPUTE_WORDS(LIST_NAME)};
    char order[64] = "";
    if (candidate->shape.pp > 1)
        snprintf(order, sizeof order, " grid.pipeline_schedule=%s grid.chunks=%d",
                 candidate->schedule, candidate->chunks);
    snprintf(text, KEYS_TEXT, "grid.dp=%d grid.pp=%d grid.tp=%d%s grid.zero=%s grid.recompute=%s",
             candidate->shape.dp, candidate->shape.pp, candidate->shape.tp, order,
             zero[candidate->zero], recompute[candidate->recompute]);
}

/* Forecasts the choices that are printed again, now with the ranges of their times. */
static void add_ranges(Choosing *c)
{
    for (int i = 0; i < c->count && i < c->input->top; ++i) {
        const Candidate candidate = c->choice[i].candidate;
        try_candidate(c, &candidate, false, &c->choice[i]);
    }
}

/* Returns the number of choices whose time exceeds the best time by at most NEAR. The choices are
 * sorted by time. */
static int count_near(const Choosing *c)
{
    int near = 0;
    while (near < c->count && c->choice[near].forecast.step.median <= c->best_s * (1 + NEAR))
        ++near;
    return near;
}

static void print_text(const Choosing *c, FILE *out)
{
    int near = count_near(c), shown = c->count < c->input->top ? c->count : c->input->top;
    char keys[KEYS_TEXT], bytes[CELL];
    fprintf(out, "%d ranks: %d plans fit in %s a rank, %d need more, %d are impossible",
            c->input->ranks, c->outcomes[CHOICE_FITS], text_bytes(c->limit, bytes),
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
        put_keys(&choice->candidate, keys);
        fprintf(out, "%c%3d %11.4g %17s %11.4g %10s  %s%s\n", i < near ? '~' : ' ', i + 1,
                1e3 * step->median, range, (double)c->input->batch / step->median,
                text_bytes(choice->bytes, bytes), keys, choice->same_bits ? "" : "  other bits");
    }
    if (near > 1)
        fprintf(out,
                "~ too near to call: %d plans are within %.0f %% of the first, the error of "
                "forecasts; to compare two of them: weft bench step CONFIG KEYS -n %d\n",
                near, 100 * NEAR, c->input->ranks);
    if (c->outcomes[CHOICE_UNMEASURED])
        fprintf(out, "not forecast, and perhaps faster: %d, the first because %s\n",
                c->outcomes[CHOICE_UNMEASURED], c->unmeasured);
    if (c->input->machine->has_rates)
        fprintf(out, "times follow from given rates, not from measured times\n");
    put_keys(&c->choice[0].candidate, keys);
    fprintf(out, "chosen: %s\n", keys);
}

static void print_json(const Choosing *c, FILE *out)
{
    Json json = json_to(out, true);
    char keys[KEYS_TEXT];
    int near = count_near(c), shown = c->count < c->input->top ? c->count : c->input->top;
    json_object(&json, NULL);
    json_int(&json, "ranks", c->input->ranks);
    json_int(&json, "fit", c->outcomes[CHOICE_FITS]);
    json_int(&json, "too_large", c->outcomes[CHOICE_TOO_LARGE]);
    json_int(&json, "impossible", c->outcomes[CHOICE_REFUSED]);
    json_int(&json, "other_bits", c->outcomes[CHOICE_OTHER_BITS]);
    json_int(&json, "unmeasured", c->outcomes[CHOICE_UNMEASURED]);
    json_text(&json, "unmeasured_because", c->unmeasured);
    json_bool(&json, "described", c->input->machine->has_rates);
    json_array(&json, "plans");
    for (int i = 0; i < shown; ++i) {
        const Choice *choice = &c->choice[i];
        put_keys(&choice->candidate, keys);
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

/* Returns "TEXT; MORE", which the caller owns, and frees `text` and `more`. */
static char *joined(char *text, char *more)
{
    char *both = mem_format("%s; %s", text, more);
    mem_free(&text);
    mem_free(&more);
    return both;
}

/* Fails with a message that has the number of plans by outcome, and reasons. */
static Status none_fits(const Choosing *c)
{
    const int *n = c->outcomes;
    char limit[CELL], least[CELL], *text = mem_format("no plan for %d ranks", c->input->ranks);
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

Status plan_choose(const ChooseInput *input, FILE *out)
{
    Choosing c = {
        .input = input, .limit = input->memory, .too_large_bytes = INFINITY, .best_s = INFINITY};
    Status st = OK;
    search(&c);
    if (c.count == 0) st = none_fits(&c);
    if (st == OK) {
        qsort(c.choice, (size_t)c.count, sizeof *c.choice, by_time);
        add_ranges(&c);
        if (input->world->rank == 0) (input->json ? print_json : print_text)(&c, out);
    }
    mem_free(&c.choice);
    return st;
}
