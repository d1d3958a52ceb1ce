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

typedef struct Complex2d {
    double *re, *im;
} Complex2d;

typedef struct Spectral {
    int height, width;
    int64_t points;
    /* all owned: wave numbers (W) and (H); 1 where a coefficient is kept, else 0 */
    double *kx, *ky, *keep_x, *keep_y;
    Fft *fft;
    /* scratch coefficients, and fields on the grid */
    Complex2d coef[SPECTRAL_FIELDS], field[SPECTRAL_FIELDS];
} Spectral;

void spectral_init(Spectral *s, int height, int width);
void spectral_fini(Spectral *s);
/* Views numbers, such as those of a state, as the coefficients of a field. */
Complex2d spectral_view(const Spectral *s, double *numbers);
/* Adds a random real field to the coefficients, times the factor re + i im: waves with wave numbers
 * of 1 to `most` along both sides, the same on every grid. Amplitudes fall as
 * 1 / (1 + (k / peak)^4) with the wave number k. */
void spectral_add_random(const Spectral *s, RngKey key, int most, double peak, double re, double im,
                         Complex2d to);
/* Scales coefficients so that the field's absolute value has this root mean square. */
void spectral_set_rms(const Spectral *s, double rms, Complex2d coef);
/* Computes field[i] from coef[i] for i < count, and overwrites the coefficients. */
void spectral_to_grid(Spectral *s, int count);
/* Returns the longest stable step for a flow (u, v) on the grid, and a decay of coefficients by
 * viscosity k^2 + drag. */
double spectral_longest_step(const Spectral *s, const double *u, const double *v, double viscosity,
                             double drag);
/* Returns x or y of a grid point. */
double spectral_place(const Spectral *s, int64_t i);

#endif
