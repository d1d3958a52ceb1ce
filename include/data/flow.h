/* Makes data sets of fields with weft's own solvers: trajectories of fluid flows, called members of
 * the set, each from a random initial state and in its own NetCDF-4 file. */
#ifndef WEFT_DATA_FLOW_H
#define WEFT_DATA_FLOW_H

#include "data/import.h"

typedef struct FlowKind FlowKind;
/* shallow water in a rotating channel; Burgers' equation; a fluid under Kolmogorov's forcing */
extern const FlowKind flow_shallow_water, flow_burgers, flow_kolmogorov;

/* The set to make. Times are in units of the kind's time coordinate: hours for shallow water,
 * seconds for the others. */
typedef struct FlowMake {
    const FlowKind *kind;
    /* folder for the files member-000.nc, ... */
    const char *out;
    /* rows and columns of the grid; how many trajectories, the number of the first, how many frames
     * of each */
    int64_t height, width, members, first, frames;
    /* time between frames; time before the first frame */
    double interval, spin_up;
    /* viscosity, for shallow water hyperviscosity in m^4/s; NaN: chosen from the grid */
    double viscosity;
    /* shallow water: mean depth and largest height of the mountains, in m */
    double depth, orography;
    /* Kolmogorov: friction per second; number of waves of the forcing along y */
    double drag;
    int64_t waves;
    uint64_t seed;
    /* true: also write the labels `regime` (flow_regimes) */
    bool labels;
    /* threads of each rank */
    int threads;
    /* true: all members that are in the folder are removed first; false: they are ERR_USAGE */
    bool force;
} FlowMake;
/* Makes the set. A trajectory depends on kind, grid, parameters, seed and its number only, so its
 * file has the same bytes for any number of ranks and threads. Ranks divide the members. ERR_USAGE:
 * the grid is unusable, or members exist and force is false; ERR_DATA: a flow breaks down, because
 * its numbers become infinite; ERR_IO. ranks NULL: one process. Collective on these ranks. */
Status data_make_flow(const FlowMake *make, const ImportRanks *ranks);

#endif
