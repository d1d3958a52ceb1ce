/* A two-dimensional incompressible fluid on a doubly periodic box, driven by Kolmogorov's forcing
 * sin(waves y) along x, with friction (Boffetta and Ecke 2012, "Two-dimensional turbulence";
 * Kochkov et al. 2021, "Machine learning accelerated computational fluid dynamics"). The state is
 * the vorticity w = dv/dx - du/dy:
 *
 *     dw/dt = -u dw/dx - v dw/dy + viscosity (d2w/dx2 + d2w/dy2) - drag w - waves cos(waves y) */
#include "spectral.h"

#include <math.h>

/* WAVES: largest wave number of the initial state */
enum { WAVES = 6 };
/* viscosity by default, in units of a cell's area: the flow's finest threads are then a few cells
 * wide */
static const double CELL_VISCOSITY = 1;
/* root mean square of the initial vorticity */
static const double VORTICITY = 4;

struct FlowSolver {
    Spectral s;
    double viscosity, drag;
    int64_t waves;
    uint64_t seed;
};

static FlowSolver *solver_new(const FlowMake *make)
{
    FlowSolver *k = mem_new(sizeof *k);
    spectral_init(&k->s, (int)make->height, (int)make->width);
    double side = spectral_place(&k->s, 1);
    k->viscosity = make->viscosity >= 0 ? make->viscosity : CELL_VISCOSITY * side * side;
    k->drag = make->drag;
    k->waves = make->waves;
    k->seed = make->seed;
    return k;
}

static void solver_free(FlowSolver **solver)
{
    spectral_fini(&(*solver)->s);
    mem_free(solver);
}

static int64_t values(const FlowSolver *k)
{
    return 2 * k->s.points;
}

static void start(FlowSolver *k, uint64_t member, double *state)
{
    Complex2d w = spectral_view(&k->s, state);
    for (int64_t i = 0; i < 2 * k->s.points; ++i) state[i] = 0;
    spectral_add_random(&k->s, flow_key(k->seed, member, 0), WAVES, 4, 1, 0, w);
    spectral_set_rms(&k->s, VORTICITY, w);
}

/* Sets coef[0] to those of u + i v and coef[1] to those of dw/dx + i dw/dy. With the stream
 * function p, w = k^2 p, u = dp/dy and v = -dp/dx. */
static void set_coefs(Spectral *s, Complex2d w)
{
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = w.re + at, *restrict im = w.im + at, *restrict ky = s->ky;
        double *restrict u_re = s->coef[0].re + at, *restrict u_im = s->coef[0].im + at;
        double *restrict g_re = s->coef[1].re + at, *restrict g_im = s->coef[1].im + at;
        double kx = s->kx[x];
#pragma omp simd
        for (int y = 0; y < s->height; ++y) {
            double square = kx * kx + ky[y] * ky[y], inverse = square > 0 ? 1 / square : 0;
            u_re[y] = inverse * (kx * re[y] - ky[y] * im[y]);
            u_im[y] = inverse * (kx * im[y] + ky[y] * re[y]);
            g_re[y] = -kx * im[y] - ky[y] * re[y];
            g_im[y] = kx * re[y] - ky[y] * im[y];
        }
    }
}

/* Replaces the field of u + i v by -(u dw/dx + v dw/dy). */
static void advect(Spectral *s)
{
    double *restrict u = s->field[0].re, *restrict v = s->field[0].im;
    const double *restrict wx = s->field[1].re, *restrict wy = s->field[1].im;
#pragma omp simd
    for (int64_t i = 0; i < s->points; ++i) {
        u[i] = -u[i] * wx[i] - v[i] * wy[i];
        v[i] = 0;
    }
}

static void rate(FlowSolver *k, double *state, double *rate)
{
    Spectral *s = &k->s;
    Complex2d w = spectral_view(s, state), d = spectral_view(s, rate);
    set_coefs(s, w);
    spectral_to_grid(s, 2);
    advect(s);
    fft_forward(s->fft, s->field[0].re, s->field[0].im, d.re, d.im);
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = w.re + at, *restrict im = w.im + at;
        const double *restrict ky = s->ky, *restrict keep = s->keep_y;
        double *restrict d_re = d.re + at, *restrict d_im = d.im + at;
        double kx = s->kx[x], keep_x = s->keep_x[x];
#pragma omp simd
        for (int y = 0; y < s->height; ++y) {
            double decay = k->viscosity * (kx * kx + ky[y] * ky[y]) + k->drag;
            d_re[y] = keep_x * keep[y] * d_re[y] - decay * re[y];
            d_im[y] = keep_x * keep[y] * d_im[y] - decay * im[y];
        }
    }
    /* -waves cos(waves y) */
    d.re[k->waves] -= (double)k->waves / 2;
    d.re[s->height - k->waves] -= (double)k->waves / 2;
}

static double longest_step(FlowSolver *k, const double *state)
{
    Spectral *s = &k->s;
    set_coefs(s, (Complex2d){(double *)state, (double *)state + s->points});
    spectral_to_grid(s, 1);
    return spectral_longest_step(s, s->field[0].re, s->field[0].im, k->viscosity, k->drag);
}

static void view(FlowSolver *k, const double *state, double *const field[FLOW_VARS])
{
    Spectral *s = &k->s;
    set_coefs(s, (Complex2d){(double *)state, (double *)state + s->points});
    for (int64_t i = 0; i < s->points; ++i) {
        s->coef[1].re[i] = state[i];
        s->coef[1].im[i] = state[s->points + i];
    }
    spectral_to_grid(s, 2);
    for (int64_t i = 0; i < s->points; ++i) {
        field[0][i] = s->field[1].re[i];
        field[1][i] = s->field[0].re[i];
        field[2][i] = s->field[0].im[i];
    }
}

static double place(const FlowSolver *k, int axis, int64_t i)
{
    (void)axis;
    return spectral_place(&k->s, i);
}

static int parameters(const FlowSolver *k, NetcdfAttr *attr)
{
    attr[0] = (NetcdfAttr){.name = "viscosity", .number = k->viscosity};
    attr[1] = (NetcdfAttr){.name = "drag", .number = k->drag};
    attr[2] = (NetcdfAttr){.name = "forcing_waves", .number = (double)k->waves};
    return 3;
}

const FlowKind flow_kolmogorov = {
    .name = "kolmogorov",
    .title = "Two-dimensional fluid under Kolmogorov's forcing",
    .time_units = "seconds since 2000-01-01 00:00:00",
    .time_scale = 1,
    .length_units = "1",
    .advice = "choose a larger --viscosity, or a finer grid",
    .var = {{"vorticity", "vorticity", "1"},
            {"u", "velocity along x", "1"},
            {"v", "velocity along y", "1"}},
    .vars = 3,
    .powers_of_two = true,
    .solver_new = solver_new,
    .solver_free = solver_free,
    .values = values,
    .start = start,
    .rate = rate,
    .longest_step = longest_step,
    .view = view,
    .place = place,
    .parameters = parameters,
};
