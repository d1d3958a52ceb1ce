/* optim: update rules on flat ranges of the parameter table, learning-rate curves, clipping. Not collective. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "config.h"
#include "tensor.h"

/* One tensor as the optimizer sees it: a range of the arenas. */
typedef struct OptimRange {
    int64_t offset, elements;
    bool decay;
} OptimRange;

typedef struct Optim Optim;
typedef struct OptimTable { /* one const table per rule: sgd, adam, adamw, lars, lamb */
    const char *name;
    int slots;                /* fp32 state per parameter */
    const char *slot_name[2]; /* "momentum"; "m", "v" */
    bool elementwise;         /* no norms per tensor: neighbouring ranges may be updated as one */
    bool scratch;             /* needs Optim.scratch */
    /* Of one range: w and g point to where it begins. */
    void (*update)(Optim *optim, const OptimRange *range, float *w, const float *g, float lr,
                   float grad_scale);
} OptimTable;
struct Optim {
    const OptimTable *table;
    const Config *config; /* borrowed */
    Backend *backend;     /* borrowed */
    float *state[2];      /* owned arenas, arena_elements floats each; NULL if unused */
    float *scratch;       /* owned; of the largest range, for lamb */
    double *norms;        /* owned, host; partial: the same in the backend's memory */
    double *partial;
    int64_t scratch_elements, norm_chunks;
    int range_count;
    OptimRange *range; /* owned; decay already says what config wants */
    int run_count;
    OptimRange *run; /* owned; what updates run over: ranges, joined where the rule allows */
    int64_t arena_elements;
    int64_t step; /* updates done */
};

/* ranges are copied. Owner: the caller. */
Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements);
void optim_free(Optim **optim);
/* Global norm of the gradient: squares per FLAT_CHUNK of each tensor, added in the table's order, in double. */
double optim_grad_norm(Optim *optim, const float *grads);
/* One step on the whole arena. lr as lr_at gives it; grad_scale multiplies gradients first (clipping: clip/norm). */
void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale);
size_t optim_state_bytes(const Optim *optim);

/* Learning rate of step (0-based) out of steps, with steps_per_epoch for curves and warm-ups given in epochs. Warm-up
 * rises linearly, (step+1)/warmup; the curve runs over what is left. A pure function. */
double lr_at(const Config *config, int64_t step, int64_t steps, int64_t steps_per_epoch);

#endif
