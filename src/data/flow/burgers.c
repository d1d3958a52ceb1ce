/* Burgers' equation of a velocity (u, v) on a doubly periodic box:
 *
 *     du/dt = -u du/dx - v du/dy + viscosity (d2u/dx2 + d2u/dy2), and the same for v.
 *
 * Fronts steepen until viscosity stops them; nothing drives the flow, so it decays. The state is
 * the complex field u + i v. */
#include "spectral.h"

#include <math.h>

/* WAVES: largest wave number of the initial state */
enum { WAVES = 4 };
/* viscosity by default, in units of a cell's side: fronts are then some cells wide */
static const double CELL_VISCOSITY = 0.5;

struct FlowSolver {
    Spectral s;
    double viscosity;
    uint64_t seed;
};

static FlowSolver *solver_new(const FlowMake *make)
{
    FlowSolver *b = mem_new(sizeof *b);
    spectral_init(&b->s, (int)make->height, (int)make->width);
    b->viscosity =
        make->viscosity >= 0 ? make->viscosity : CELL_VISCOSITY * spectral_place(&b->s, 1);
    b->seed = make->seed;
    return b;
}

static void solver_free(FlowSolver **solver)
{
    spectral_fini(&(*solver)->s);
    mem_free(solver);
}

static int64_t values(const FlowSolver *b)
{
    return 2 * b->s.points;
}

static void start(FlowSolver *b, uint64_t member, double *state)
{
    Complex2d z = spectral_view(&b->s, state);
    for (int64_t i = 0; i < 2 * b->s.points; ++i) state[i] = 0;
    spectral_add_random(&b->s, flow_key(b->seed, member, 0), WAVES, 2, 1, 0, z);
    spectral_add_random(&b->s, flow_key(b->seed, member, 1), WAVES, 2, 0, 1, z);
    spectral_set_rms(&b->s, 1, z);
}

/* Sets coef[0] to those of u + i v, coef[1] and coef[2] to those of its derivatives. */
static void set_coefs(Spectral *s, Complex2d z)
{
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = z.re + at, *restrict im = z.im + at, *restrict ky = s->ky;
        double *restrict z_re = s->coef[0].re + at, *restrict z_im = s->coef[0].im + at;
        double *restrict x_re = s->coef[1].re + at, *restrict x_im = s->coef[1].im + at;
        double *restrict y_re = s->coef[2].re + at, *restrict y_im = s->coef[2].im + at;
        double kx = s->kx[x];
#pragma omp simd
        for (int y = 0; y < s->height; ++y) {
            z_re[y] = re[y];
            z_im[y] = im[y];
            x_re[y] = -kx * im[y];
            x_im[y] = kx * re[y];
            y_re[y] = -ky[y] * im[y];
            y_im[y] = ky[y] * re[y];
        }
    }
}

/* Replaces the field of u + i v by -(u du/dx + v du/dy) - i (u dv/dx + v dv/dy). */
static void advect(Spectral *s)
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

static void rate(FlowSolver *b, double *state, double *rate)
{
    Spectral *s = &b->s;
    Complex2d z = spectral_view(s, state), d = spectral_view(s, rate);
    set_coefs(s, z);
    spectral_to_grid(s, 3);
    advect(s);
    fft_forward(s->fft, s->field[0].re, s->field[0].im, d.re, d.im);
    for (int x = 0; x < s->width; ++x) {
        int64_t at = (int64_t)x * s->height;
        const double *restrict re = z.re + at, *restrict im = z.im + at;
        const double *restrict ky = s->ky, *restrict keep = s->keep_y;
        double *restrict d_re = d.re + at, *restrict d_im = d.im + at;
        double kx = s->kx[x], keep_x = s->keep_x[x];
#pragma omp simd
        for (int y = 0; y < s->height; ++y) {
            double decay = b->viscosity * (kx * kx + ky[y] * ky[y]);
            d_re[y] = keep_x * keep[y] * d_re[y] - decay * re[y];
            d_im[y] = keep_x * keep[y] * d_im[y] - decay * im[y];
        }
    }
}

static void find_velocity(FlowSolver *b, const double *state)
{
    Spectral *s = &b->s;
    for (int64_t i = 0; i < s->points; ++i) {
        s->coef[0].re[i] = state[i];
        s->coef[0].im[i] = state[s->points + i];
    }
    spectral_to_grid(s, 1);
}

static double longest_step(FlowSolver *b, const double *state)
{
    find_velocity(b, state);
    return spectral_longest_step(&b->s, b->s.field[0].re, b->s.field[0].im, b->viscosity, 0);
}

static void view(FlowSolver *b, const double *state, double *const field[FLOW_VARS])
{
    find_velocity(b, state);
    for (int64_t i = 0; i < b->s.points; ++i) {
        field[0][i] = b->s.field[0].re[i];
        field[1][i] = b->s.field[0].im[i];
    }
}

static double place(const FlowSolver *b, int axis, int64_t i)
{
    (void)axis;
    return spectral_place(&b->s, i);
}

static int parameters(const FlowSolver *b, NetcdfAttr *attr)
{
    attr[0] = (NetcdfAttr){.name = "viscosity", .number = b->viscosity};
    return 1;
}

const FlowKind flow_burgers = {
    .name = "burgers",
    .title = "Burgers' equation on a doubly periodic box",
    .time_units = "seconds since 2000-01-01 00:00:00",
    .time_scale = 1,
    .length_units = "1",
    .advice = "choose a larger --viscosity, or a finer grid",
    .var = {{"u", "velocity along x", "1"}, {"v", "velocity along y", "1"}},
    .vars = 2,
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
