/* The state, grid and fields of the solver of shallow water, which its tests use, too. */
#ifndef WEFT_DATA_FLOW_SHALLOW_WATER_H
#define WEFT_DATA_FLOW_SHALLOW_WATER_H

#include "flow.h"

/* Columns and rows of the halo around a field; there is one more row in the north, for v. */
enum { WATER_COLUMNS = 2, WATER_ROWS = 1 };

/* A state is the fields h, u, v one after the other; each has rows -1 .. H + 1 of W + 4 numbers. */
struct FlowSolver {
    int height, width;
    /* numbers from one row of a field to the next, and numbers of a field, both with the halo */
    int64_t stride, field;
    /* side of a cell in m, gravity in m/s^2, hyperviscosity in m^4/s, mean height of the surface in
     * m */
    double side, gravity, viscosity, depth;
    uint64_t seed;
    /* all owned: Coriolis parameter of rows of corners (H+1); height of the ground, a field in m;
     * scratch fields: potential vorticity, fluxes, Bernoulli's function, Laplacians of u and v */
    double *coriolis, *ground, *q, *flux_u, *flux_v, *bernoulli, *laplacian_u, *laplacian_v;
};

/* Returns the index in a field of row y and column x. */
static inline int64_t water_at(const FlowSolver *w, int y, int x)
{
    return (int64_t)(y + WATER_ROWS) * w->stride + x + WATER_COLUMNS;
}
/* Sets a Coriolis parameter of f + beta y, with y = 0 in the middle of the channel. */
void water_set_coriolis(FlowSolver *solver, double f, double beta);

#endif
