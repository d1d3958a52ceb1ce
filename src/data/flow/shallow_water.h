/* Declares the grid and the fields of the solver of shallow water, for the solver and its tests. */
#ifndef WEFT_DATA_FLOW_SHALLOW_WATER_H
#define WEFT_DATA_FLOW_SHALLOW_WATER_H

#include "flow.h"

/* Number of columns and of rows of the halo on each side of a field; in the north there is one more
 * row, for v. */
enum { WATER_COLUMNS = 2, WATER_ROWS = 1 };

/* A state consists of the fields h, u and v, one after the other. A field has rows -1 to H + 1 of
 * W + 4 numbers. */
struct FlowSolver {
    int height, width;
    /* numbers in a row of a field, with the halo */
    int64_t stride;
    /* numbers in a field, with the halo */
    int64_t field_size;
    /* side of a cell in m */
    double side;
    /* in m/s^2 */
    double gravity;
    /* hyperviscosity in m^4/s */
    double viscosity;
    /* mean height of the surface in m */
    double depth;
    uint64_t seed;
    /* owned: Coriolis parameter at each row of corners, [H + 1] */
    double *coriolis;
    /* owned: height of the ground, a field in m */
    double *ground;
    /* owned scratch fields: potential vorticity, fluxes, Bernoulli's function */
    double *q, *flux_u, *flux_v, *bernoulli;
    /* owned scratch fields: Laplacians of u and v */
    double *laplacian_u, *laplacian_v;
};

/* Returns the index in a field of row y and column x. */
static inline int64_t water_at(const FlowSolver *w, int y, int x)
{
    return (int64_t)(y + WATER_ROWS) * w->stride + x + WATER_COLUMNS;
}
/* Sets the Coriolis parameter to f + beta y, where y is 0 in the middle of the channel. */
void water_set_coriolis(FlowSolver *solver, double f, double beta);

#endif
