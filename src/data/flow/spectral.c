/* Computes what the pseudo-spectral solvers share: wave numbers, random fields, transforms, decay,
 * and the longest time step. */
#include "spectral.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TWO_PI = 6.283185307179586476925;
/* fraction of the longest stable step (FLOW_STABLE) that is used */
static const double SHARE = 0.5;

/* Sets k[i] to the wave number of coefficient i, for n coefficients, and keep[i] to 1 if the
 * coefficient is kept, else to 0. unit: wave number of one wave along the side. */
static void set_waves(int n, double unit, double *k, double *keep)
{
    for (int i = 0; i < n; ++i) {
        int wave = i <= n / 2 ? i : i - n;
        k[i] = unit * wave;
        keep[i] = 3 * abs(wave) < n;
    }
}

static Complex2d new_field(int64_t points)
{
    size_t bytes = (size_t)points * sizeof(double);
    return (Complex2d){mem_new(bytes), mem_new(bytes)};
}

FlowSolver *spectral_new(const FlowMake *make)
{
    FlowSolver *s = mem_new(sizeof *s);
    s->height = (int)make->height, s->width = (int)make->width;
    s->points = make->height * make->width;
    s->viscosity = make->viscosity;
    s->seed = make->seed;
    size_t w = (size_t)s->width * sizeof(double), h = (size_t)s->height * sizeof(double);
    s->kx = mem_new(w), s->keep_x = mem_new(w);
    s->ky = mem_new(h), s->keep_y = mem_new(h);
    set_waves(s->width, (double)s->height / s->width, s->kx, s->keep_x);
    set_waves(s->height, 1, s->ky, s->keep_y);
    s->fft = fft_new(s->height, s->width);
    for (int i = 0; i < SPECTRAL_FIELDS; ++i) {
        s->coef[i] = new_field(s->points);
        s->field[i] = new_field(s->points);
    }
    return s;
}

void spectral_free(FlowSolver **solver)
{
    FlowSolver *s = *solver;
    mem_free(&s->kx);
    mem_free(&s->ky);
    mem_free(&s->keep_x);
    mem_free(&s->keep_y);
    fft_free(&s->fft);
    for (int i = 0; i < SPECTRAL_FIELDS; ++i) {
        mem_free(&s->coef[i].re);
        mem_free(&s->coef[i].im);
        mem_free(&s->field[i].re);
        mem_free(&s->field[i].im);
    }
    mem_free(solver);
}

int64_t spectral_values(const FlowSolver *s)
{
    return 2 * s->points;
}

double spectral_coordinate(const FlowSolver *s, int64_t i)
{
    return TWO_PI * (double)i / s->height;
}

/* Adds (re + i im) (a + i b) to the coefficient with x waves along x and y waves along y, if it is
 * kept. */
static void add_wave(const FlowSolver *s, int x, int y, double a, double b, double re, double im,
                     double *state)
{
    int64_t column = x < 0 ? x + s->width : x, row = y < 0 ? y + s->height : y;
    int64_t i = column * s->height + row;
    if (s->keep_x[column] * s->keep_y[row] == 0) return;
    state[i] += re * a - im * b;
    state[s->points + i] += re * b + im * a;
}

void spectral_add_random(const FlowSolver *s, RngKey key, int most, double peak, double re,
                         double im, double *state)
{
    uint64_t drawn = 0;
    double unit = (double)s->height / s->width;
    for (int x = 0; x * unit <= most; ++x) {
        for (int y = -most; y <= most; ++y) {
            double a = flow_draw(key, drawn++, -1, 1), b = flow_draw(key, drawn++, -1, 1);
            /* A field is real if the coefficients of (x, y) and (-x, -y) are conjugate, so one
             * draw gives both. If x is 0, y above 0 gives all pairs. */
            if (x == 0 && y <= 0) continue;
            double square = (x * unit * (x * unit) + (double)(y * y)) / (peak * peak);
            double size = 1 / (1 + square * square);
            add_wave(s, x, y, size * a, size * b, re, im, state);
            add_wave(s, -x, -y, size * a, -size * b, re, im, state);
        }
    }
}

void spectral_set_rms(const FlowSolver *s, double rms, double *state)
{
    const double *re = state, *im = state + s->points;
    double sum = 0;
    for (int64_t i = 0; i < s->points; ++i) sum += re[i] * re[i] + im[i] * im[i];
    double by = sum > 0 ? rms / sqrt(sum) : 0;
    for (int64_t i = 0; i < 2 * s->points; ++i) state[i] *= by;
}

void spectral_copy(FlowSolver *s, const double *state, int i)
{
    size_t bytes = (size_t)s->points * sizeof *state;
    memcpy(s->coef[i].re, state, bytes);
    memcpy(s->coef[i].im, state + s->points, bytes);
}

void spectral_to_grid(FlowSolver *s, int count)
{
    for (int i = 0; i < count; ++i) fft_inverse(s->fft, s->coef[i], s->field[i]);
}

void spectral_set_rate(FlowSolver *s, const double *state, double *rate)
{
    fft_forward(s->fft, s->field[0], (Complex2d){rate, rate + s->points});
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = state + at, *restrict im = state + s->points + at;
        const double *restrict ky = s->ky, *restrict keep = s->keep_y;
        double *restrict d_re = rate + at, *restrict d_im = rate + s->points + at;
        double kx = s->kx[x], keep_x = s->keep_x[x];
#pragma omp simd
        for (int y = 0; y < s->height; ++y) {
            double decay = s->viscosity * (kx * kx + ky[y] * ky[y]) + s->drag;
            d_re[y] = keep_x * keep[y] * d_re[y] - decay * re[y];
            d_im[y] = keep_x * keep[y] * d_im[y] - decay * im[y];
        }
    }
}

double spectral_longest_step(const FlowSolver *s)
{
    const double *u = s->field[0].re, *v = s->field[0].im;
    double most_u = 0, most_v = 0;
    for (int64_t i = 0; i < s->points; ++i) {
        if (fabs(u[i]) > most_u) most_u = fabs(u[i]);
        if (fabs(v[i]) > most_v) most_v = fabs(v[i]);
    }
    /* upper limit of the wave numbers that are kept; it is the same along both sides, since cells
     * are squares */
    double k = s->height / 3.0;
    return SHARE * FLOW_STABLE /
           (k * (most_u + most_v) + 2 * s->viscosity * k * k + s->drag + 1e-9);
}
