/* Solves the equations of a two-dimensional incompressible fluid on a doubly periodic box, driven
 * by Kolmogorov's forcing sin(waves y) along x, with friction (Boffetta and Ecke 2012,
 * "Two-dimensional turbulence"; Kochkov et al. 2021, "Machine learning accelerated computational
 * fluid dynamics"). The state is the vorticity w = dv/dx - du/dy:
 *
 *     dw/dt = -u dw/dx - v dw/dy + viscosity (d2w/dx2 + d2w/dy2) - drag w - waves cos(waves y) */
#include "spectral.h"

/* largest wave number of the initial state along each axis */
enum { WAVES = 6 };
/* default viscosity divided by the area of a cell, per second; the flow's finest filaments are then
 * a few cells wide */
static const double CELL_VISCOSITY = 1;
/* root mean square of the initial vorticity */
static const double VORTICITY = 4;

static FlowSolver *solver_new(const FlowMake *make)
{
    FlowSolver *s = spectral_new(make);
    double side = spectral_coordinate(s, 1);
    if (!(make->viscosity >= 0)) s->viscosity = CELL_VISCOSITY * side * side;
    s->drag = make->drag;
    s->waves = make->waves;
    return s;
}

static void start(FlowSolver *s, uint64_t member, double *state)
{
    for (int64_t i = 0; i < 2 * s->points; ++i) state[i] = 0;
    spectral_add_random(s, flow_key(s->seed, member, 0), WAVES, 4, 1, 0, state);
    spectral_set_rms(s, VORTICITY, state);
}

/* Sets coef[0] to the coefficients of u + i v, and coef[1] to those of dw/dx + i dw/dy.
 * Coefficients of the stream function p have w = k^2 p for the wave number k; u = dp/dy and v =
 * -dp/dx. */
static void set_coefs(FlowSolver *s, const double *state)
{
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = state + at, *restrict im = state + s->points + at;
        const double *restrict ky = s->ky;
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

/* Replaces field[0], u + i v, by -(u dw/dx + v dw/dy). */
static void advect(FlowSolver *s)
{
    double *restrict u = s->field[0].re, *restrict v = s->field[0].im;
    const double *restrict wx = s->field[1].re, *restrict wy = s->field[1].im;
#pragma omp simd
    for (int64_t i = 0; i < s->points; ++i) {
        u[i] = -u[i] * wx[i] - v[i] * wy[i];
        v[i] = 0;
    }
}

static void rate(FlowSolver *s, double *state, double *rate)
{
    set_coefs(s, state);
    spectral_to_grid(s, 2);
    advect(s);
    spectral_set_rate(s, state, rate);
    /* the forcing, -waves cos(waves y) */
    rate[s->waves] -= (double)s->waves / 2;
    rate[s->height - s->waves] -= (double)s->waves / 2;
}

static double longest_step(FlowSolver *s, const double *state)
{
    set_coefs(s, state);
    spectral_to_grid(s, 1);
    return spectral_longest_step(s);
}

static void view(FlowSolver *s, const double *state, double *const field[FLOW_VARS])
{
    set_coefs(s, state);
    spectral_copy(s, state, 1);
    spectral_to_grid(s, 2);
    for (int64_t i = 0; i < s->points; ++i) {
        field[0][i] = s->field[1].re[i];
        field[1][i] = s->field[0].re[i];
        field[2][i] = s->field[0].im[i];
    }
}

static int parameters(const FlowSolver *s, NetcdfAttr *attr)
{
    attr[0] = (NetcdfAttr){.name = "viscosity", .number = s->viscosity};
    attr[1] = (NetcdfAttr){.name = "drag", .number = s->drag};
    attr[2] = (NetcdfAttr){.name = "forcing_waves", .number = (double)s->waves};
    return 3;
}

/* listed in FLOW_KINDS (data/flow.h) */
const FlowKind flow_kolmogorov = {
    .name = "kolmogorov",
    .title = "Two-dimensional fluid under Kolmogorov's forcing",
    SPECTRAL_KIND,
    .var = {{"vorticity", "vorticity", "1"},
            {"u", "velocity along x", "1"},
            {"v", "velocity along y", "1"}},
    .vars = 3,
    .solver_new = solver_new,
    .start = start,
    .rate = rate,
    .longest_step = longest_step,
    .compute_fields = view,
    .parameters = parameters,
};
