/* Declares solvers of flows, their integrator, and random numbers and functions for them. A solver
 * computes the rate at which a state, an array of numbers, changes. One integrator advances the
 * states of all solvers. Numbers are doubles; sums have a fixed order. */
#ifndef WEFT_DATA_FLOW_PRIVATE_H
#define WEFT_DATA_FLOW_PRIVATE_H

#include "../fields/netcdf_write.h"

#include "data/flow.h"

enum {
    /* largest number of a kind's variables in a file */
    FLOW_VARS = 3,
    /* largest number of attributes that FlowKind.parameters writes */
    FLOW_PARAMETERS = 8
};

/* A variable of a member's file. */
typedef struct FlowVar {
    const char *name, *long_name, *units;
} FlowVar;

/* A solver for one grid, with its scratch memory; each thread has its own. Each kind defines it. */
typedef struct FlowSolver FlowSolver;

/* Lengths of the sides of a grid, in cells. In this and in the next enum, the value 0 means that
 * the kind does not set the member, which is an error. */
typedef enum FlowSides {
    SIDES_UNSET,
    SIDES_ANY,
    SIDES_POWERS_OF_TWO,
} FlowSides;
/* Edges of a grid. */
typedef enum FlowEdges {
    EDGES_UNSET,
    /* periodic in both directions */
    EDGES_PERIODIC,
    /* walls in the south and in the north */
    EDGES_WALLS,
} FlowEdges;

/* A kind of flow. Model time is time in the unit of the equations. */
struct FlowKind {
    /* word of the verb, such as "shallow-water" */
    const char *name;
    /* attribute `title` of its files */
    const char *title;
    /* units of time in the file, "hours since ..." */
    const char *time_units;
    /* length of one unit of time in the file, in units of model time */
    double time_scale;
    /* units of x and y */
    const char *length_units;
    /* advice for a flow that breaks down: "choose a larger --viscosity" */
    const char *advice;
    /* variables of its files, [vars]; the last two are the velocity (u, v) */
    FlowVar var[FLOW_VARS];
    int vars;
    FlowSides sides;
    FlowEdges edges;
    /* Creates a solver. Owner: the caller, who releases it with solver_free. */
    FlowSolver *(*solver_new)(const FlowMake *make);
    void (*solver_free)(FlowSolver **solver);
    /* Returns the number of doubles in a state. */
    int64_t (*value_count)(const FlowSolver *solver);
    /* Sets the initial state of a member. */
    void (*start)(FlowSolver *solver, uint64_t member, double *state);
    /* Computes the rate of change of a state. May change the halo in the array `state`, which is no
     * part of the state. */
    void (*rate)(FlowSolver *solver, double *state, double *rate);
    /* Returns the longest step for which the integrator is stable and accurate; 0 or NaN: the flow
     * has broken down. */
    double (*longest_step)(FlowSolver *solver, const double *state);
    /* Computes the fields (H,W) of the file's variables from a state, at the points that
     * `coordinate` returns. */
    void (*compute_fields)(FlowSolver *solver, const double *state, double *const field[FLOW_VARS]);
    /* Returns x of column i, which is also y of row i: cells are squares. */
    double (*coordinate)(const FlowSolver *solver, int64_t i);
    /* Writes the parameters of the equations as up to FLOW_PARAMETERS attributes of the file, and
     * returns their number. */
    int (*parameters)(const FlowSolver *solver, NetcdfAttr *attr);
    /* Computes the orography (H,W), in m. The member is NULL if the kind has none. */
    void (*orography)(const FlowSolver *solver, double *field);
};

/* Returns ERR_BUG, with the name of the member, if a kind lacks a member (../rows.c). */
Status flow_kind_check(const FlowKind *kind);

/* Largest product of the step and the fastest rate for which the integrator is stable: 2.82 for
 * waves, 2.78 for decay. */
#define FLOW_STABLE 2.78
/* The integrator: the classical Runge-Kutta method of order 4. */
typedef struct FlowStepper {
    const FlowKind *kind;
    /* borrowed */
    FlowSolver *solver;
    /* number of doubles in a state */
    int64_t value_count;
    /* owned: the state, [value_count] */
    double *state;
    /* owned: scratch memory, each [value_count] */
    double *rate, *stage, *sum;
} FlowStepper;
void flow_stepper_init(FlowStepper *stepper, const FlowKind *kind, FlowSolver *solver);
void flow_stepper_fini(FlowStepper *stepper);
/* Advances the state by `time` units of model time in equal steps. Their number is `steps`; if that
 * is not above 0, it is the smallest number with which a step is at most the longest_step of the
 * present state. Returns false if the flow has broken down: longest_step says so, or the state is
 * no longer finite. */
bool flow_advance(FlowStepper *stepper, double time, int64_t steps);

/* Writes the regime of each cell of a flow (height, width) with velocity (u, v): 1 in a vortex, 2
 * under strain, else 0. Let w be the Okubo-Weiss parameter
 *     w = (u_x - v_y)^2 + (v_x + u_y)^2 - (v_x - u_y)^2
 * and s its root mean square over the frame. A cell is in a vortex if w is below -0.2 s, and under
 * strain if w is above 0.2 s (Okubo 1970, Weiss 1991; the bounds are those of Isern-Fontanet et al.
 * 2003). Derivatives are centred differences; they wrap around, but at walls those across rows are
 * one-sided. The array w, (height, width), receives w of each cell. */
void flow_regimes(int64_t height, int64_t width, bool walls, const double *u, const double *v,
                  double *w, int8_t *regime);

/* Returns the key of one kind of random numbers of a member. kind: a number that the solver gives
 * to each kind of its random numbers. */
RngKey flow_key(uint64_t seed, uint64_t member, uint64_t kind);
/* Returns random number i (0, 1, ...) of a key, uniform from low to high. */
double flow_draw(RngKey key, uint64_t i, double low, double high);

/* Returns the exponential of x; 0 if x is below -700. flow_exp and flow_sine are accurate to about
 * 1e-13 and, unlike the functions of the C library, give the same bits on all processors. */
double flow_exp(double x);
/* Computes sine and cosine of an angle in turns. */
void flow_sine(double turns, double *sine, double *cosine);

#endif
