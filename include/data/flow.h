/* Makes data sets of fields with weft's own solvers: trajectories of fluid flows. Each trajectory,
 * a member of the set, has its own random initial state and its own NetCDF-4 file. */
#ifndef WEFT_DATA_FLOW_H
#define WEFT_DATA_FLOW_H

#include "data/import.h"

typedef struct FlowKind FlowKind;
/* All kinds of flow: shallow water in a rotating channel, Burgers' equation, and a fluid under
 * Kolmogorov's forcing. To add a kind, add a file with its FlowKind to src/data/flow, its name to
 * this list, and a verb to src/cli/data/data_make_flow.c. */
#define FLOW_KINDS(_)           _(shallow_water) _(burgers) _(kolmogorov)
#define DECLARE_FLOW_KIND(name) extern const FlowKind flow_##name;
FLOW_KINDS(DECLARE_FLOW_KIND)

/* The set to make. Times are in units of the kind's time coordinate: hours for shallow water,
 * seconds for the other kinds. */
typedef struct FlowMake {
    const FlowKind *kind;
    /* path of the folder for the files member-000.nc, ... */
    const char *out;
    /* height, width: rows and columns of the grid; members: number of trajectories; first_member:
     * number of the first trajectory, which is in its file's name; frames: number of frames of
     * each */
    int64_t height, width, members, first_member, frames;
    /* interval: time between frames; spin_up: time before the first frame */
    double interval, spin_up;
    /* shallow water: hyperviscosity in m^4/s; other kinds: viscosity in 1/s, since their lengths
     * have no unit. NaN: the kind chooses a value that fits the size of a cell. */
    double viscosity;
    /* shallow water, in m. depth: mean height of the surface; orography: largest height of the
     * mountains. */
    double depth, orography;
    /* Kolmogorov: friction in 1/s */
    double drag;
    /* Kolmogorov: number of waves of the forcing along y */
    int64_t waves;
    /* seed of all random numbers. Each kind draws them with flow_draw (src/data/flow/flow.h): for
     * the initial state of a member and for the mountains of shallow water. */
    uint64_t seed;
    /* true: each file also has the variable `regime`, which labels each cell */
    bool labels;
    /* number of threads of each rank */
    int threads;
    /* true: members that the folder already has are removed first; false: they are ERR_USAGE */
    bool force;
} FlowMake;
/* Makes the set. A trajectory depends only on kind, grid, parameters, seed and its number, so its
 * file has the same bytes for any number of ranks and threads. Ranks divide the members. ERR_USAGE:
 * the grid is unusable, or members exist and force is false. ERR_DATA: a flow breaks down, because
 * its numbers become infinite or the water's thickness reaches 0. ERR_IO. ranks NULL: one process.
 * Collective on these ranks. */
Status data_make_flow(const FlowMake *make, const ImportRanks *ranks);

#endif
