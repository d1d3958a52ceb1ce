/* Solves Burgers' equation for a velocity (u, v) on a doubly periodic box:
 *
 *     du/dt = -u du/dx - v du/dy + viscosity (d2u/dx2 + d2u/dy2), and the same for v.
 *
 * Fronts steepen until viscosity stops them; nothing drives the flow, so it decays. The state is
 * the complex field u + i v. */
#include "spectral.h"

/* largest wave number of the initial state along each axis */
enum { WAVES = 4 };
/* default viscosity divided by the side of a cell, for velocities of root mean square 1; fronts are
 * then a few cells wide */
static const double CELL_VISCOSITY = 0.5;

static FlowSolver *solver_new(const FlowMake *make)
{
    FlowSolver *s = spectral_new(make);
    if (!(make->viscosity >= 0)) s->viscosity = CELL_VISCOSITY * spectral_coordinate(s, 1);
    return s;
}

static void start(FlowSolver *s, uint64_t member, double *state)
{
    for (int64_t i = 0; i < 2 * s->points; ++i) state[i] = 0;
    spectral_add_random(s, flow_key(s->seed, member, 0), WAVES, 2, 1, 0, state);
    spectral_add_random(s, flow_key(s->seed, member, 1), WAVES, 2, 0, 1, state);
    spectral_set_rms(s, 1, state);
}

/* Sets coef[0] to the coefficients of u + i v, coef[1] to those of its derivative along x, and
 * coef[2] to those of its derivative along y. */
static void set_coefs(FlowSolver *s, const double *state)
{
    spectral_copy(s, state, 0);
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = state + at, *restrict im = state + s->points + at;
        const double *restrict ky = s->ky;
        double *restrict x_re = s->coef[1].re + at, *restrict x_im = s->coef[1].im + at;
        double *restrict y_re = s->coef[2].re + at, *restrict y_im = s->coef[2].im + at;
        double kx = s->kx[x];
#pragma omp simd
        for (int y = 0; y < s->height; ++y) {
            x_re[y] = -kx * im[y];
            x_im[y] = kx * re[y];
            y_re[y] = -ky[y] * im[y];
            y_im[y] = ky[y] * re[y];
        }
    }
}

/* Replaces field[0], u + i v, by -(u du/dx + v du/dy) - i (u dv/dx + v dv/dy). */
static void advect(FlowSolver *s)
{
    double *restrict u = s->field[0].re, *restrict v = s->field[0].im;
    const double *restrict ux = s->field[1].re, *restrict vx = s->field[1].im;
    const double *restrict uy = s->field[2].re, *restrict vy = s->field[2].im;
#pragma omp simd
    for (int64_t i = 0; i < s->points; ++i) {
        double du = -u[i] * ux[i] - v[i] * uy[i], dv = -u[i] * vx[i] - v[i] * vy[i];
        u[i] = du;
        v[i] = dv;
    }
}

static void rate(FlowSolver *s, double *state, double *rate)
{
    set_coefs(s, state);
    spectral_to_grid(s, 3);
    advect(s);
    spectral_set_rate(s, state, rate);
}

static double longest_step(FlowSolver *s, const double *state)
{
    spectral_copy(s, state, 0);
    spectral_to_grid(s, 1);
    return spectral_longest_step(s);
}

static void view(FlowSolver *s, const double *state, double *const field[FLOW_VARS])
{
    spectral_copy(s, state, 0);
    spectral_to_grid(s, 1);
    for (int64_t i = 0; i < s->points; ++i) {
        field[0][i] = s->field[0].re[i];
        field[1][i] = s->field[0].im[i];
    }
}

static int parameters(const FlowSolver *s, NetcdfAttr *attr)
{
    attr[0] = (NetcdfAttr){.name = "viscosity", .number = s->viscosity};
    return 1;
}

/* listed in FLOW_KINDS (data/flow.h) */
const FlowKind flow_burgers = {
    .name = "burgers",
    .title = "Burgers' equation on a doubly periodic box",
    SPECTRAL_KIND,
    .var = {{"u", "velocity along x", "1"}, {"v", "velocity along y", "1"}},
    .vars = 2,
    .solver_new = solver_new,
    .start = start,
    .rate = rate,
    .longest_step = longest_step,
    .compute_fields = view,
    .parameters = parameters,
};
