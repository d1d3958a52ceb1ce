/* Data of `weft plan`: the trainer of a dry run, the plans of all its stages, and its simulated
 * schedule. */
#ifndef WEFT_CLI_PLAN_VIEW_H
#define WEFT_CLI_PLAN_VIEW_H

#include "train.h"

typedef struct StageView {
    /* owned */
    Plan *plan;
    /* memory of a rank of the stage */
    TrainBytes bytes;
    /* estimated seconds for one micro-batch, forward and backward, on one core */
    double cost_s;
} StageView;

typedef struct PlanView {
    /* owned */
    Trainer *trainer;
    int stages;
    /* number of chunks of the whole model */
    int chunks;
    /* stage given by --stage; -1: not given */
    int stage;
    /* network between nodes */
    Link link;
    /* plan of each stage, [stages]; owned */
    StageView *stage_view;
    /* estimated cost of each chunk for one micro-batch, [chunks]; owned */
    TaskCost *cost;
    /* estimated seconds of the whole model for one micro-batch */
    double cost_s;
    /* the stage that needs most memory, and the stage that needs most time */
    int largest, slowest;
    /* simulated schedules; owned. equal: all tasks have the same cost; real: tasks have the costs
     * of their chunks. Messages take no time in both. */
    ScheduleReport equal, real;
    /* true: a file with the times of a machine is given, and forecast and files are set */
    bool has_forecast;
    /* forecast time of a step */
    Forecast forecast;
    FileForecast files;
} PlanView;

/* Returns the stage of a chunk of the model. */
static inline int view_stage(const PlanView *v, int chunk)
{
    return schedule_stage(trainer_schedule(v->trainer), chunk);
}

static inline TableMode view_mode(const PlanView *v)
{
    return (TableMode)trainer_config(v->trainer)->grid.mode;
}

/* Returns by how much the slowest stage's time exceeds the mean of all stages, as a fraction. */
static inline double view_imbalance(const PlanView *v)
{
    return v->stage_view[v->slowest].cost_s * v->stages / v->cost_s - 1;
}

/* Returns chunk `chunk` of the model in the plan of its stage. */
static inline const ChunkPlan *view_chunk(const PlanView *v, int chunk)
{
    const Schedule *s = trainer_schedule(v->trainer);
    return &v->stage_view[schedule_stage(s, chunk)].plan->chunk[schedule_local(s, chunk)];
}

/* If a parameter is tied across two stages, the stages exchange its gradients once a step. Returns
 * the bytes sent in one direction, and sets *from and *to to the two stages; returns 0 for other
 * parameters. */
size_t view_tie(const PlanView *view, int param, int *from, int *to);

/* plan_update.c: prints the update rules and their parameters; the text only if there are several
 * rules or learning rates. */
void plan_update_text(const PlanView *view, FILE *out);
void plan_update_json(const PlanView *view, Json *json);
/* Some rules update whole tensors, whose slices a rank must gather. Returns the bytes that a rank
 * receives for this in a step; the largest number over all ranks. */
double view_gathered_bytes(const PlanView *view);

/* plan_tables.c: prints the sparse tables; the text is empty if there are none. */
void plan_tables_text(const PlanView *view, FILE *out);
void plan_tables_json(const PlanView *view, Json *json);

/* plan_sums.c: default of --link */
#define PLAN_LINK "2,12.5"
/* Parses --link: microseconds per message, and GB/s. ERR_USAGE. */
Status view_parse_link(const char *text, Link *link);
/* Prints the sums over replicas, if there are several replicas. */
void plan_sums_text(const PlanView *view, FILE *out);
/* Returns the bytes of a rank of the stage that are summed in one step (gradients) or, in mode geo,
 * at one sync point (changes of parameters); 0 in mode async and with one replica. */
double view_summed_bytes(const PlanView *view, int stage);
void plan_sums_json(const PlanView *view, int stage, Json *json);

/* columns: width of the picture of the schedule, in characters */
void plan_view_text(const PlanView *view, int columns, FILE *out);
void plan_view_json(const PlanView *view, FILE *out);

#endif
