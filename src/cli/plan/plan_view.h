/* The data that `weft plan` prints: the trainer of a dry run, the plans of all its stages, and its
 * simulated schedule. */
#ifndef WEFT_CLI_PLAN_VIEW_H
#define WEFT_CLI_PLAN_VIEW_H

#include "train.h"

typedef struct StageView {
    /* plan of a rank of the stage; owned */
    Plan *plan;
    /* memory of a rank of the stage */
    TrainBytes bytes;
    /* estimated time of forward and backward of one micro-batch on one core */
    double cost_s;
} StageView;

typedef struct PlanView {
    /* owned */
    Trainer *trainer;
    int stages;
    /* number of chunks of the model, over all stages */
    int chunks;
    /* stage given by --stage; -1: not given */
    int stage;
    /* network between nodes, from --link */
    Link link;
    /* plan, memory and cost of each stage, [stages]; owned */
    StageView *stage_view;
    /* estimated cost of each chunk for one micro-batch, [chunks]; owned */
    TaskCost *cost;
    /* sum of cost_s over all stages */
    double cost_s;
    /* the stage that needs most memory */
    int largest;
    /* the stage that needs most time */
    int slowest;
    /* simulated schedule in which all tasks have the same cost and messages take no time; owned */
    ScheduleReport equal;
    /* simulated schedule in which tasks have the costs of their chunks and messages take no time;
     * owned */
    ScheduleReport real;
    /* true: a file with the times of a machine is given, and `forecast` and `files` are set */
    bool has_forecast;
    /* forecast time of a step */
    Forecast forecast;
    /* forecast times of reading the training set and of saving a checkpoint */
    FileForecast files;
} PlanView;

/* Returns the stage of a chunk of the model. */
static inline int view_stage(const PlanView *v, int chunk)
{
    return schedule_stage(trainer_schedule(v->trainer), chunk);
}

static inline UpdateMode view_mode(const PlanView *v)
{
    return (UpdateMode)trainer_config(v->trainer)->grid.mode;
}

/* Returns by how much the time of the slowest stage exceeds the mean of all stages, as a fraction
 * of the mean. */
static inline double view_imbalance(const PlanView *v)
{
    return v->stage_view[v->slowest].cost_s * v->stages / v->cost_s - 1;
}

/* Returns the plan of a chunk of the model, borrowed from the plan of its stage. */
static inline const ChunkPlan *view_chunk(const PlanView *v, int chunk)
{
    const Schedule *s = trainer_schedule(v->trainer);
    return &v->stage_view[schedule_stage(s, chunk)].plan->chunk[schedule_index_on_stage(s, chunk)];
}

/* If a parameter is tied to one of another stage, the two stages exchange its gradients once a
 * step. Returns the bytes that are sent in one direction, and sets *from to the stage of the first
 * use and *to to the stage of this parameter. Returns 0 if both are on one stage or the parameter
 * is not tied. */
size_t view_tied_bytes(const PlanView *view, int param, int *from, int *to);

/* ---- plan_update.c ---- */
/* Prints the update rules and their parameters. The text is empty if there is only one rule and one
 * learning rate. */
void plan_update_text(const PlanView *view, FILE *out);
void plan_update_json(const PlanView *view, Json *json);
/* Some rules update a tensor as a whole, so a rank of a tensor-parallel group must gather the
 * tensor's slices. Returns the largest number of bytes that a rank receives for this in a step. */
double view_gathered_bytes(const PlanView *view);

/* ---- plan_tables.c ---- */
/* Prints the sparse tables. The text is empty if there are none. */
void plan_tables_text(const PlanView *view, FILE *out);
/* Writes the sparse tables; called only if there are any. */
void plan_tables_json(const PlanView *view, Json *json);

/* ---- plan_sums.c ---- */
/* default of --link */
#define PLAN_LINK "2,12.5"
/* Parses --link: the microseconds of a message, a comma, and GB/s. ERR_USAGE: the text has another
 * form. */
Status view_parse_link(const char *text, Link *link);
/* Prints the sums over replicas, if there are any. */
void plan_sums_text(const PlanView *view, FILE *out);
/* Returns the bytes that each rank of a stage has summed over the replicas: the gradients of a step
 * or, in mode geo, the changes of parameters at a sync point. Returns 0 in mode async, or if there
 * is one replica. */
double view_summed_bytes(const PlanView *view, int stage);
/* Writes the sums of a stage, if there are any. */
void plan_sums_json(const PlanView *view, int stage, Json *json);

/* ---- plan_text.c and plan_json.c ---- */
/* Prints everything. columns: width of the picture of the schedule, in characters. */
void plan_view_text(const PlanView *view, int columns, FILE *out);
void plan_view_json(const PlanView *view, FILE *out);

#endif
