/* Declares what pseudo-spectral solvers share. They work on a doubly periodic box, whose height is
 * 2 pi and whose cells are squares. A state is one complex field, given by its Fourier coefficients
 * (W,H): first all real parts, then all imaginary parts. Products are computed on the grid. Along a
 * side of n points, coefficients of n / 3 and more waves are zero, so that products of two fields
 * have no aliases (Orszag 1971, "On the elimination of aliasing in finite-difference schemes by
 * filtering high-wavenumber components"). */
#ifndef WEFT_DATA_FLOW_SPECTRAL_H
#define WEFT_DATA_FLOW_SPECTRAL_H

#include "fft.h"
#include "flow.h"

/* number of scratch fields of a solver */
enum { SPECTRAL_FIELDS = 3 };

struct FlowSolver {
    int height, width;
    /* height * width */
    int64_t points;
    /* coefficients of a wave number k decay at the rate viscosity k^2 + drag */
    double viscosity, drag;
    /* number of waves of the forcing along y; 0: no forcing */
    int64_t waves;
    uint64_t seed;
    /* owned: wave number of each column of coefficients (W), and of each row (H) */
    double *kx, *ky;
    /* owned: 1 for each column (W) and each row (H) of coefficients that are kept, else 0 */
    double *keep_x, *keep_y;
    Fft *fft;
    /* owned scratch memory: coefficients (W,H) */
    Complex2d coef[SPECTRAL_FIELDS];
    /* owned scratch memory: fields on the grid (H,W) */
    Complex2d field[SPECTRAL_FIELDS];
};

/* The part of a FlowKind that all pseudo-spectral solvers have in common. */
#define SPECTRAL_KIND                                                                              \
    .time_units = "seconds since 2000-01-01 00:00:00", .time_scale = 1, .length_units = "1",       \
    .advice = "choose a larger --viscosity, or a finer grid", .sides = SIDES_POWERS_OF_TWO,        \
    .edges = EDGES_PERIODIC, .solver_free = spectral_free, .value_count = spectral_values,         \
    .coordinate = spectral_coordinate

/* Creates a solver without drag and forcing, and with the viscosity of `make`; if that is NaN, the
 * kind replaces it. Owner: the caller, who releases it with spectral_free. */
FlowSolver *spectral_new(const FlowMake *make);
void spectral_free(FlowSolver **solver);
/* functions of SPECTRAL_KIND */
int64_t spectral_values(const FlowSolver *solver);
double spectral_coordinate(const FlowSolver *solver, int64_t i);
/* Adds a random real field, times the factor re + i im, to the state. The field is the sum of all
 * waves whose wave numbers along x and along y are at most `most`. Waves for which the grid is too
 * coarse are left out. The waves are the same on all grids with the same ratio of height to width.
 * The amplitude of a wave falls with its wave number k as 1 / (1 + (k / peak)^4). */
void spectral_add_random(const FlowSolver *solver, RngKey key, int most, double peak, double re,
                         double im, double *state);
/* Scales the state so that the absolute value of its field has the root mean square `rms`. */
void spectral_set_rms(const FlowSolver *solver, double rms, double *state);
/* Copies the state to coef[i]. */
void spectral_copy(FlowSolver *solver, const double *state, int i);
/* Computes field[i] from coef[i] for i < count, and overwrites the coefficients. */
void spectral_to_grid(FlowSolver *solver, int count);
/* Sets the rate of change to the coefficients of field[0] minus the decay of the state's
 * coefficients. Overwrites field[0]. */
void spectral_set_rate(FlowSolver *solver, const double *state, double *rate);
/* Returns the longest step (FlowKind.longest_step) for the velocity (u, v), given as u + i v in
 * field[0]. */
double spectral_longest_step(const FlowSolver *solver);

#endif
