/* Functions that the pseudo-spectral solvers share: wave numbers, random fields, transforms, the
 * limit of the time step. */
#include "spectral.h"

#include <math.h>
#include <stdlib.h>

static const double TWO_PI = 6.283185307179586476925;
/* The integrator is stable up to 2.82 along the imaginary axis and 2.78 along the real one; this
 * share of the limit is used. */
static const double STABLE = 2.78, SHARE = 0.5;

/* Sets the wave number of coefficient i of n, and whether it is kept. */
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

void spectral_init(Spectral *s, int height, int width)
{
    *s = (Spectral){.height = height, .width = width, .points = (int64_t)height * width};
    size_t w = (size_t)width * sizeof(double), h = (size_t)height * sizeof(double);
    s->kx = mem_new(w), s->keep_x = mem_new(w);
    s->ky = mem_new(h), s->keep_y = mem_new(h);
    set_waves(width, (double)height / width, s->kx, s->keep_x);
    set_waves(height, 1, s->ky, s->keep_y);
    s->fft = fft_new(height, width);
    for (int i = 0; i < SPECTRAL_FIELDS; ++i) {
        s->coef[i] = new_field(s->points);
        s->field[i] = new_field(s->points);
    }
}

void spectral_fini(Spectral *s)
{
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
}

Complex2d spectral_view(const Spectral *s, double *numbers)
{
    return (Complex2d){numbers, numbers + s->points};
}

/* Adds (re + i im) (a + i b) to the coefficient of wave (x, y). */
static void add_wave(const Spectral *s, int x, int y, double a, double b, double re, double im,
                     Complex2d to)
{
    int64_t column = x < 0 ? x + s->width : x, row = y < 0 ? y + s->height : y;
    int64_t i = column * s->height + row;
    if (s->keep_x[column] * s->keep_y[row] == 0) return;
    to.re[i] += re * a - im * b;
    to.im[i] += re * b + im * a;
}

void spectral_add_random(const Spectral *s, RngKey key, int most, double peak, double re, double im,
                         Complex2d to)
{
    uint64_t drawn = 0;
    double unit = (double)s->height / s->width;
    for (int x = 0; x * unit <= most; ++x) {
        for (int y = -most; y <= most; ++y) {
            double a = flow_draw(key, drawn++, -1, 1), b = flow_draw(key, drawn++, -1, 1);
            /* a field is real if the coefficients of a wave and of its opposite are conjugate */
            if (x == 0 && y <= 0) continue;
            double square = (x * unit * (x * unit) + (double)(y * y)) / (peak * peak);
            double size = 1 / (1 + square * square);
            add_wave(s, x, y, size * a, size * b, re, im, to);
            add_wave(s, -x, -y, size * a, -size * b, re, im, to);
        }
    }
}

void spectral_set_rms(const Spectral *s, double rms, Complex2d coef)
{
    double sum = 0;
    for (int64_t i = 0; i < s->points; ++i)
        sum += coef.re[i] * coef.re[i] + coef.im[i] * coef.im[i];
    double by = sum > 0 ? rms / sqrt(sum) : 0;
    for (int64_t i = 0; i < s->points; ++i) coef.re[i] *= by, coef.im[i] *= by;
}

void spectral_to_grid(Spectral *s, int count)
{
    for (int i = 0; i < count; ++i)
        fft_inverse(s->fft, s->coef[i].re, s->coef[i].im, s->field[i].re, s->field[i].im);
}

double spectral_longest_step(const Spectral *s, const double *u, const double *v, double viscosity,
                             double drag)
{
    double most_u = 0, most_v = 0;
    for (int64_t i = 0; i < s->points; ++i) {
        if (fabs(u[i]) > most_u) most_u = fabs(u[i]);
        if (fabs(v[i]) > most_v) most_v = fabs(v[i]);
    }
    /* largest wave number that is kept; it is the same along both sides, since cells are squares */
    double k = s->height / 3.0;
    return SHARE * STABLE / (k * (most_u + most_v) + 2 * viscosity * k * k + drag + 1e-9);
}

double spectral_place(const Spectral *s, int64_t i)
{
    return TWO_PI * (double)i / s->height;
}
