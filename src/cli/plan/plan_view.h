/* Data of `weft plan`: the trainer of a dry run, the plans of all its stages, and its simulated
 * schedule. */
#ifndef WEFT_CLI_PLAN_VIEW_H
#define WEFT_CLI_PLAN_VIEW_H

#include "train.h"

typedef struct StageView {
    /* owned */
    Plan *plan;
    TrainBytes bytes;
    /* estimated seconds of one micro-batch, forward and backward, on one core */
    double cost_s;
} StageView;

typedef struct PlanView {
    /* owned */
    Trainer *trainer;
    /* chunks: of the whole model */
    int stages, chunks;
    /* stage given by --stage; -1: none */
    int stage;
    /* network between nodes */
    Link link;
    /* plan of each stage; owned */
    StageView *stage_view;
    /* cost of each chunk of the model; owned */
    TaskCost *cost;
    /* estimated seconds of the whole model, for one micro-batch */
    double cost_s;
    /* stages with most memory and most work */
    int heaviest, costliest;
    /* simulations with equal costs for all tasks, and with the costs of their chunks; messages take
     * no time in either */
    ScheduleReport equal, real;
} PlanView;

static inline int view_stage(const PlanView *v, int chunk)
{
    return schedule_stage(trainer_schedule(v->trainer), chunk);
}

static inline TableMode view_mode(const PlanView *v)
{
    return (TableMode)trainer_config(v->trainer)->grid.mode;
}

/* Returns chunk `chunk` of the model in the plan of its stage. */
static inline const ChunkPlan *view_chunk(const PlanView *v, int chunk)
{
    const Schedule *s = trainer_schedule(v->trainer);
    return &v->stage_view[schedule_stage(s, chunk)].plan->chunk[schedule_local(s, chunk)];
}

/* A parameter tied across stages sends its gradient both ways once a step: returns the bytes of one
 * way and the two stages; 0 if the parameter is not tied across stages. */
size_t view_tie(const PlanView *view, int param, int *from, int *to);

/* plan_update.c: update rules and their parameters, if there are several rules or rates.
 * view_gathered_bytes: bytes of slices of whole tensors that a rank receives in a step, the largest
 * over the ranks. */
void plan_update_text(const PlanView *view, FILE *out);
void plan_update_json(const PlanView *view, Json *json);
double view_gathered_bytes(const PlanView *view);

/* plan_tables.c: sparse tables, if there are any. */
void plan_tables_text(const PlanView *view, FILE *out);
void plan_tables_json(const PlanView *view, Json *json);

/* plan_sums.c: sums over replicas, if there are several. PLAN_LINK: default of --link. view_link
 * parses it; ERR_USAGE for anything that is not a link. */
#define PLAN_LINK "2,12.5"
Status view_link(const char *text, Link *link);
void plan_sums_text(const PlanView *view, FILE *out);
/* Bytes that a stage sums at a time: gradients of a step; in mode geo the changes since the last
 * sync point; in mode async 0. */
double view_summed_bytes(const PlanView *view, int stage);
void plan_sums_json(const PlanView *view, int stage, Json *json);

void plan_view_text(const PlanView *view, int columns, FILE *out);
void plan_view_json(const PlanView *view, FILE *out);

#endif
