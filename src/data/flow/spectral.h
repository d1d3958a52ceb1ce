/* Pseudo-spectral solvers on a doubly periodic box: its height is 2 pi, and cells are squares. A
 * state is one complex field, given by its Fourier coefficients (W,H), real parts first. Products
 * are computed on the grid, and coefficients beyond a third of a side's points are zero, so that
 * products of two fields have no aliases (Orszag 1971, "On the elimination of aliasing in
 * finite-difference schemes by filtering high-wavenumber components"). */
#ifndef WEFT_DATA_FLOW_SPECTRAL_H
#define WEFT_DATA_FLOW_SPECTRAL_H

#include "fft.h"
#include "flow.h"

enum { SPECTRAL_FIELDS = 3 };

struct FlowSolver {
    int height, width;
    int64_t points;
    /* coefficients of a wave number k decay by viscosity k^2 + drag per second */
    double viscosity, drag;
    /* number of waves of the forcing along y; 0: none */
    int64_t waves;
    uint64_t seed;
    /* all owned: wave numbers (W) and (H); 1 where a coefficient is kept, else 0 */
    double *kx, *ky, *keep_x, *keep_y;
    Fft *fft;
    /* scratch coefficients, and fields on the grid */
    Complex2d coef[SPECTRAL_FIELDS], field[SPECTRAL_FIELDS];
};

/* The part of a FlowKind that all pseudo-spectral solvers have in common. */
#define SPECTRAL_KIND                                                                              \
    .time_units = "seconds since 2000-01-01 00:00:00", .time_scale = 1, .length_units = "1",       \
    .advice = "choose a larger --viscosity, or a finer grid", .powers_of_two = true,               \
    .solver_free = spectral_free, .values = spectral_values, .place = spectral_place

/* Creates a solver without drag and forcing, and with the viscosity of make; the kind replaces a
 * viscosity of NaN. Owner: the caller, who releases it with spectral_free. */
FlowSolver *spectral_new(const FlowMake *make);
void spectral_free(FlowSolver **solver);
/* functions of SPECTRAL_KIND */
int64_t spectral_values(const FlowSolver *solver);
double spectral_place(const FlowSolver *solver, int64_t i);
/* Adds a random real field to the state, times the factor re + i im. It is the sum of all waves
 * whose wave numbers along x and along y are at most `most`, except those that the grid is too
 * coarse for; the waves are the same on all grids with the same ratio of height to width.
 * Amplitudes fall as 1 / (1 + (k / peak)^4) with the wave number k. */
void spectral_add_random(const FlowSolver *solver, RngKey key, int most, double peak, double re,
                         double im, double *state);
/* Scales the state so that its field's absolute value has this root mean square. */
void spectral_set_rms(const FlowSolver *solver, double rms, double *state);
/* Copies the state to coef[i]. */
void spectral_copy(FlowSolver *solver, const double *state, int i);
/* Computes field[i] from coef[i] for i < count, and overwrites the coefficients. */
void spectral_to_grid(FlowSolver *solver, int count);
/* Sets the rate of change to the coefficients of field[0], less the decay of the state's
 * coefficients. Overwrites the field. */
void spectral_set_rate(FlowSolver *solver, const double *state, double *rate);
/* Returns the longest step (FlowKind.longest_step) for the velocity (u, v), given as u + i v in
 * field[0]. */
double spectral_longest_step(const FlowSolver *solver);

#endif
