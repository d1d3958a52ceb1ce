/* A solver of a flow computes the rate at which a state, an array of numbers, changes. One
 * integrator advances the states of all solvers. Numbers are doubles; sums have a fixed order. */
#ifndef WEFT_DATA_FLOW_PRIVATE_H
#define WEFT_DATA_FLOW_PRIVATE_H

#include "../fields/netcdf_write.h"

#include "data/flow.h"

enum { FLOW_VARS = 3, FLOW_PARAMETERS = 8 };

/* A variable of a member's file. */
typedef struct FlowVar {
    const char *name, *long_name, *units;
} FlowVar;

/* A solver of one grid, with its scratch memory; each thread has its own. Defined by its kind. */
typedef struct FlowSolver FlowSolver;

struct FlowKind {
    /* "shallow-water"; title of its files */
    const char *name, *title;
    /* units of time in the file, "hours since ..."; time_scale: length of one such unit in units of
     * model time */
    const char *time_units;
    double time_scale;
    /* units of x and y */
    const char *length_units;
    /* advice for a flow that breaks down: "choose a larger --viscosity" */
    const char *advice;
    FlowVar var[FLOW_VARS];
    int vars;
    /* powers_of_two: true: the sides of a grid must be powers of two. walls: true: the grid has
     * walls in the south and in the north; false: it is periodic in both directions. */
    bool powers_of_two, walls;
    /* Creates a solver. Owner: the caller, who releases it with solver_free. */
    FlowSolver *(*solver_new)(const FlowMake *make);
    void (*solver_free)(FlowSolver **solver);
    /* Returns the number of doubles in a state. */
    int64_t (*values)(const FlowSolver *solver);
    /* Sets the initial state of a member. */
    void (*start)(FlowSolver *solver, uint64_t member, double *state);
    /* Computes the rate of change. May change the halo in the array `state`, which is not part of
     * the state. */
    void (*rate)(FlowSolver *solver, double *state, double *rate);
    /* Returns the longest step for which the integrator is stable and accurate; 0 or NaN: the flow
     * has broken down. */
    double (*longest_step)(FlowSolver *solver, const double *state);
    /* Computes the fields (H,W) of the file's variables, at the places that `place` returns; the
     * last two are the velocity (u, v). */
    void (*view)(FlowSolver *solver, const double *state, double *const field[FLOW_VARS]);
    /* Returns x of column i, which is also y of row i: cells are squares. */
    double (*place)(const FlowSolver *solver, int64_t i);
    /* Writes up to FLOW_PARAMETERS attributes of the file: parameters of the equations; returns
     * their number. */
    int (*parameters)(const FlowSolver *solver, NetcdfAttr *attr);
    /* Computes the orography (H,W), in m; NULL: the kind has none. */
    void (*orography)(const FlowSolver *solver, double *field);
};

/* Largest product of the step and the fastest rate for which the integrator is stable: 2.82 for
 * waves, 2.78 for decay. */
#define FLOW_STABLE 2.78
/* The integrator: the classical Runge-Kutta method of order 4. */
typedef struct FlowStepper {
    const FlowKind *kind;
    /* borrowed */
    FlowSolver *solver;
    /* number of doubles in a state */
    int64_t values;
    /* owned: the state, and scratch memory */
    double *state, *rate, *stage, *sum;
} FlowStepper;
void flow_stepper_init(FlowStepper *stepper, const FlowKind *kind, FlowSolver *solver);
void flow_stepper_fini(FlowStepper *stepper);
/* Advances the state by `time` units of model time, in the fewest equal steps that are at most the
 * longest_step of the present state, or in `steps` steps if that is above 0. Returns false if the
 * flow has broken down: longest_step says so, or the state is no longer finite. */
bool flow_advance(FlowStepper *stepper, double time, int64_t steps);

/* Writes the regime of each cell of a flow (H,W) with velocity (u, v): 1 in a vortex, 2 under
 * strain, else 0. With the Okubo-Weiss parameter W = (u_x - v_y)^2 + (v_x + u_y)^2 - (v_x - u_y)^2
 * and its root mean square S over the frame, a cell is in a vortex if W is below -0.2 S, and under
 * strain if W is above 0.2 S (Okubo 1970, Weiss 1991; the bounds are those of Isern-Fontanet et al.
 * 2003). Derivatives are centred differences; those across rows are one-sided at walls, and wrap
 * around if there are none. w: scratch memory (H,W). */
void flow_regimes(int64_t height, int64_t width, bool walls, const double *u, const double *v,
                  double *w, int8_t *regime);

/* Returns the key of one kind of random numbers of a member; each solver numbers its kinds. */
RngKey flow_key(uint64_t seed, uint64_t member, uint64_t kind);
/* Returns random number i (0, 1, ...) of a key, uniform from low to high. */
double flow_draw(RngKey key, uint64_t i, double low, double high);

/* Compute the exponential of x (0 if x is below -700), and sine and cosine of an angle in turns.
 * They have the same bits on all processors, unlike those of the C library, and are accurate to
 * about 1e-13. */
double flow_exp(double x);
void flow_sine(double turns, double *sine, double *cosine);

#endif
