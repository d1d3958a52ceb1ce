/* optim: update rules on flat ranges of the parameter table, learning-rate curves, clipping. Not collective, but where the
 * ranges are shared out: then what needs whole tensors' norms is collective on those who share. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "config.h"
#include "tensor.h"

/* One tensor as the optimizer sees it: a range of the arenas. */
typedef struct OptimRange {
    int64_t offset, elements;
    bool decay;
} OptimRange;
/* What of a range is updated here: all of it, or this rank's share. */
typedef struct OptimPiece {
    int64_t offset, elements; /* elements 0: nothing */
    int64_t value;            /* where it begins in the arena of parameters, */
    int64_t gradient;         /* its gradient in that of gradients, */
    int64_t state;            /* and its state in the state arenas */
    bool decay;
} OptimPiece;

/* Ranges shared out over ranks (ZeRO): elements first[i] .. first[i] + count[i] of range i are this rank's; first[i] is a
 * multiple of FLAT_CHUNK. State is held for these alone. value[i], gradient[i]: where they and their gradient begin. */
typedef struct OptimShare {
    const int64_t *first, *count, *value, *gradient;
    /* chunk[set * chunks + c]: sum of squares of chunk c of all ranges' chunks, of which this rank has written its own.
     * Brings the others'. */
    void (*gather)(void *user, double *chunk, int sets);
    /* squares[set * ranges + i]: sum of squares of range i as far as it is here. Adds the slices that others have. NULL: there
     * are none. */
    void (*join)(void *user, double *squares, int sets);
    void *user;
} OptimShare;

typedef struct Optim Optim;
typedef struct OptimArgs { /* of one piece: w and g point to where it begins */
    float *w;
    const float *g;
    float lr, grad_scale;
    const double
        *norm; /* of the whole range: the rule's norms, in the order in which measure gives them */
} OptimArgs;
typedef struct OptimTable { /* one const table per rule: sgd, adam, adamw, lars, lamb */
    const char *name;
    int slots;                /* fp32 state per parameter, where all of it is used */
    const char *slot_name[2]; /* "momentum"; "m", "v" */
    bool scratch;             /* needs Optim.scratch */
    int norms; /* of each range, for its update. 0: neighbouring ranges may be updated as one */
    /* Hands what the norms are of to optim_squares. NULL where norms is 0. */
    void (*measure)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    void (*update)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
} OptimTable;
enum { OPTIM_NORMS = 2 };
struct Optim {
    const OptimTable *table;
    const Config *config; /* borrowed */
    Backend *backend;     /* borrowed */
    int slots;            /* of state that are held: optim_slots */
    float *state[2];      /* owned arenas, state_elements floats each; NULL if unused */
    float *scratch;       /* owned; for lamb */
    double *norms;        /* owned, host; partial: the same in the backend's memory */
    double *partial;
    double *whole; /* owned: of whole ranges, [set][range] */
    int64_t scratch_elements, state_elements;
    int64_t chunks; /* of all ranges */
    int range_count;
    OptimRange *range; /* owned; decay already says what config wants */
    OptimPiece *piece; /* owned; one a range */
    int64_t *chunk;    /* owned; one a range, and the end: its first among all ranges' chunks */
    int run_count;
    OptimPiece *run;  /* owned; what updates run over: pieces, joined where the rule allows */
    OptimShare share; /* gather NULL: nothing is shared out */
    int64_t step;     /* updates begun */
    bool first;       /* the step that has begun is the first one */
    float lr, scale;  /* of it */
    UpdateNumbers
        *now;     /* owned: the same where queued work reads them; NULL where nothing is queued */
    double *sums; /* owned, in the backend's memory: the ranges' squares */
    int64_t *first_chunk; /* owned, likewise: as chunk */
};

/* ranges are copied. Owner: the caller. */
Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements);
/* The same for this rank's share, which is copied but for user. */
Status optim_new_share(Optim **optim, const Config *config, Backend *backend,
                       const OptimRange *range, int count, const OptimShare *share);
void optim_free(Optim **optim);
/* out[i] = sum of squares of the gradient of range i: per FLAT_CHUNK, chunks added in order, in double. Shared out: from
 * each rank's own part of the gradient; the same on all of them. */
void optim_grad_squares(Optim *optim, const float *grads, double *out);
/* One step on all that is updated here. lr as lr_at gives it; grad_scale multiplies gradients first (clipping: clip/norm).
 * optim_begin tells the step's numbers, optim_update does it, with the same calls at every step but the first where
 * optim_repeats. */
void optim_begin(Optim *optim, double lr, double grad_scale);
void optim_update(Optim *optim, float *params, const float *grads);
bool optim_repeats(const Optim *optim);
/* Between the two: clips by the norm of all gradients, without the host, where that can be. All of them are here. */
bool optim_can_clip(const Optim *optim);
void optim_clip(Optim *optim, const float *grads, double limit);
void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale);
size_t optim_state_bytes(const Optim *optim); /* held here */
/* State per parameter that config's rule holds: of SGD none without momentum. */
int optim_slots(const Config *config);
/* Does its update need the norms of whole tensors (lars, lamb)? */
bool optim_has_norms(const Config *config);
/* Does its update need as much scratch memory as a slot of state, where the ranges are shared out? */
bool optim_scratch(const Config *config);

/* Learning rate of step (0-based) out of steps, with steps_per_epoch for curves and warm-ups given in epochs. Warm-up
 * rises linearly, (step+1)/warmup; the curve runs over what is left. A pure function. */
double lr_at(const Config *config, int64_t step, int64_t steps, int64_t steps_per_epoch);

#endif
