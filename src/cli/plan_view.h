/* What `weft plan` shows: a design, the plans of all its stages, and its schedule on the clock. */
#ifndef WEFT_CLI_PLAN_VIEW_H
#define WEFT_CLI_PLAN_VIEW_H

#include "train.h"

typedef struct StageView {
    /* owned */
    Plan *plan;
    TrainBytes bytes;
    /* estimated seconds of a micro-batch, forward and backward, on one core */
    double cost_s;
} StageView;

typedef struct PlanView {
    /* owned */
    Trainer *trainer;
    /* chunks: of the whole model */
    int stages, chunks;
    /* the one asked for with --stage, or -1 */
    int stage;
    /* between nodes */
    Link link;
    /* owned; one a stage */
    StageView *stage_view;
    /* owned; one a chunk of the model */
    TaskCost *cost;
    /* of the whole model */
    double cost_s;
    /* stages */
    int heaviest, costliest;
    ScheduleReport equal,
        real; /* all tasks alike; with the chunks' costs. Messages cost nothing in either */
} PlanView;

static inline int view_stage(const PlanView *v, int chunk)
{
    return schedule_stage(trainer_schedule(v->trainer), chunk);
}

static inline TableMode view_mode(const PlanView *v)
{
    return (TableMode)trainer_config(v->trainer)->grid.mode;
}

/* Chunk `chunk` of the model, on its stage. */
static inline const ChunkPlan *view_chunk(const PlanView *v, int chunk)
{
    const Schedule *s = trainer_schedule(v->trainer);
    return &v->stage_view[schedule_stage(s, chunk)].plan->chunk[schedule_local(s, chunk)];
}

/* A parameter that is tied across stages sends its gradient both ways once a step: the bytes of one
 * way, or 0. */
size_t view_tie(const PlanView *view, int param, int *from, int *to);

/* plan_update.c: rules and their parameters, where parameters differ in that; bytes of whole
 * tensors' slices that the rank which takes most takes in a step. */
void plan_update_text(const PlanView *view, FILE *out);
void plan_update_json(const PlanView *view, Json *json);
double view_gathered_bytes(const PlanView *view);

/* plan_tables.c: sparse tables, where there are any. */
void plan_tables_text(const PlanView *view, FILE *out);
void plan_tables_json(const PlanView *view, Json *json);

/* plan_sums.c: sums over replicas, where there are several. The default of --link, and what it
 * says; ERR_USAGE where it is no link. */
#define PLAN_LINK "2,12.5"
Status view_link(const char *text, Link *link);
void plan_sums_text(const PlanView *view, FILE *out);
/* What of a stage is summed at a time: gradients of a step, in mode geo what a border's steps have
 * changed, in mode async nothing. */
double view_summed_bytes(const PlanView *view, int stage);
void plan_sums_json(const PlanView *view, int stage, Json *json);

void plan_view_text(const PlanView *view, int columns, FILE *out);
void plan_view_json(const PlanView *view, FILE *out);

#endif
