/* The solvers of `weft data make`: their order of convergence against exact solutions and fine
 * steps, conserved sums, states of rest, and sets with the same bytes for any number of threads. */
#include "fixture.h"
#include "../../src/data/flow/fft.h"
#include "../../src/data/flow/shallow_water.h"

#include <math.h>
#include <unistd.h>

static const double PI = 3.14159265358979323846;

/* ---- functions and transforms ---- */

static void functions_agree_with_the_library(void)
{
    for (int i = -50; i <= 50; ++i) {
        double x = 0.37 * i, sine, cosine;
        flow_sine(x, &sine, &cosine);
        CU_ASSERT_DOUBLE_EQUAL(sine, sin(2 * PI * x), 3e-14);
        CU_ASSERT_DOUBLE_EQUAL(cosine, cos(2 * PI * x), 3e-14);
        CU_ASSERT_DOUBLE_EQUAL(flow_exp(x) / exp(x), 1, 1e-12);
    }
    CU_ASSERT_EQUAL(flow_exp(-1e9), 0);
}

/* Compares a coefficient with its definition, and the inverse with the field. */
static void check_transform(int h, int w, int k, int l)
{
    enum { MOST = 32 * 16 };
    double re[MOST], im[MOST], field_re[MOST], field_im[MOST], c_re[MOST], c_im[MOST];
    double sum_re = 0, sum_im = 0;
    RngKey key = rng_key(3, RNG_TEST, 0, 0);
    for (int i = 0; i < h * w; ++i) {
        re[i] = field_re[i] = flow_draw(key, 2 * (uint64_t)i, -1, 1);
        im[i] = field_im[i] = flow_draw(key, 2 * (uint64_t)i + 1, -1, 1);
        double angle = -2 * PI * ((double)(i % w * k) / w + (double)(i / w * l) / h);
        sum_re += (re[i] * cos(angle) - im[i] * sin(angle)) / (h * w);
        sum_im += (re[i] * sin(angle) + im[i] * cos(angle)) / (h * w);
    }
    Fft *fft = fft_new(h, w);
    fft_forward(fft, (Complex2d){field_re, field_im}, (Complex2d){c_re, c_im});
    CU_ASSERT_DOUBLE_EQUAL(c_re[k * h + l], sum_re, 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(c_im[k * h + l], sum_im, 1e-14);
    fft_inverse(fft, (Complex2d){c_re, c_im}, (Complex2d){field_re, field_im});
    for (int i = 0; i < h * w; ++i) {
        CU_ASSERT_DOUBLE_EQUAL(field_re[i], re[i], 1e-14);
        CU_ASSERT_DOUBLE_EQUAL(field_im[i], im[i], 1e-14);
    }
    fft_free(&fft);
}

static void transforms_are_those_of_the_definition(void)
{
    check_transform(16, 32, 5, 3);
    check_transform(32, 16, 15, 31);
    check_transform(16, 16, 0, 9);
    check_transform(8, 4, 2, 7);
}

/* ---- flows ---- */

enum { SIDE = 32 };

static FlowMake make_of(const FlowKind *kind, int64_t height, int64_t width, double viscosity)
{
    return (FlowMake){.kind = kind,
                      .height = height,
                      .width = width,
                      .viscosity = viscosity,
                      .depth = 2000,
                      .members = 3,
                      .frames = 3,
                      .interval = 0.1,
                      .threads = 1,
                      .seed = 5};
}

/* Advances member 1 by `time`; returns the stepper, whose solver the caller frees. */
static FlowStepper advanced(const FlowMake *make, double time, int64_t steps)
{
    FlowStepper stepper;
    FlowSolver *solver = make->kind->solver_new(make);
    flow_stepper_init(&stepper, make->kind, solver);
    make->kind->start(solver, 1, stepper.state);
    CU_ASSERT(flow_advance(&stepper, time, steps));
    return stepper;
}

static void free_stepper(FlowStepper *stepper)
{
    stepper->kind->solver_free(&stepper->solver);
    flow_stepper_fini(stepper);
}

static double largest_difference(const double *a, const double *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; ++i) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* Returns the largest difference between the fields of two flows of one solver's kind. */
static double largest_field_difference(const FlowStepper *a, const FlowStepper *b,
                                       const FlowMake *make)
{
    int64_t points = make->height * make->width;
    double *field[2][FLOW_VARS], most = 0;
    for (int i = 0; i < 2 * FLOW_VARS; ++i)
        field[i / FLOW_VARS][i % FLOW_VARS] = mem_new((size_t)points * 8);
    a->kind->compute_fields(a->solver, a->state, field[0]);
    b->kind->compute_fields(b->solver, b->state, field[1]);
    for (int i = 0; i < FLOW_VARS; ++i) {
        most = fmax(most, largest_difference(field[0][i], field[1][i], points));
        mem_free(&field[0][i]);
        mem_free(&field[1][i]);
    }
    return most;
}

/* Returns the error with `steps` steps over the error with twice as many. */
static double step_ratio(const FlowMake *make, double time, int64_t steps)
{
    FlowStepper fine = advanced(make, time, 16 * steps);
    FlowStepper one = advanced(make, time, steps), two = advanced(make, time, 2 * steps);
    double ratio =
        largest_field_difference(&one, &fine, make) / largest_field_difference(&two, &fine, make);
    if (getenv("WEFT_TEST_VERBOSE")) printf("%s: ratio %.2f\n", make->kind->name, ratio);
    free_stepper(&fine);
    free_stepper(&one);
    free_stepper(&two);
    return ratio;
}

/* ---- Burgers' equation ---- */

static const double NU = 0.15;

/* Cole and Hopf's solution: (u, v) = -2 nu grad(log p), where p diffuses. */
static void exact_burgers(double x, double y, double t, double *u, double *v)
{
    double a = 0.5 * exp(-NU * t), b = 0.3 * exp(-5 * NU * t);
    double p = 1 + a * cos(x) + b * sin(x + 2 * y);
    *u = -2 * NU * (-a * sin(x) + b * cos(x + 2 * y)) / p;
    *v = -2 * NU * (2 * b * cos(x + 2 * y)) / p;
}

/* Returns the largest error at time 1 on a grid of n x 2n points. */
static double burgers_error(int n)
{
    FlowMake make = make_of(&flow_burgers, n, 2 * n, NU);
    FlowStepper s = advanced(&make, 0, 0);
    int64_t points = 2 * n * n;
    double *u = mem_new((size_t)points * 8), *v = mem_new((size_t)points * 8), error = 0, eu, ev;
    double *const field[FLOW_VARS] = {u, v, NULL};
    Fft *fft = fft_new(n, 2 * n);
    for (int64_t i = 0; i < points; ++i)
        exact_burgers(flow_burgers.coordinate(s.solver, i % (2 * n)),
                      flow_burgers.coordinate(s.solver, i / (2 * n)), 0, &u[i], &v[i]);
    fft_forward(fft, (Complex2d){u, v}, (Complex2d){s.state, s.state + points});
    CU_ASSERT(flow_advance(&s, 1, 0));
    flow_burgers.compute_fields(s.solver, s.state, field);
    for (int64_t i = 0; i < points; ++i) {
        exact_burgers(flow_burgers.coordinate(s.solver, i % (2 * n)),
                      flow_burgers.coordinate(s.solver, i / (2 * n)), 1, &eu, &ev);
        error = fmax(error, fmax(fabs(u[i] - eu), fabs(v[i] - ev)));
    }
    fft_free(&fft);
    free_stepper(&s);
    mem_free(&u);
    mem_free(&v);
    return error;
}

static void burgers_converges(void)
{
    double coarse = burgers_error(16), fine = burgers_error(32), finest = burgers_error(64);
    if (getenv("WEFT_TEST_VERBOSE")) printf("burgers: %.2g %.2g %.2g\n", coarse, fine, finest);
    CU_ASSERT(coarse < 1e-2 && fine < coarse / 30 && finest < fine / 30);
    FlowMake make = make_of(&flow_burgers, SIDE, 2 * SIDE, 0.1);
    double ratio = step_ratio(&make, 0.5, 20);
    CU_ASSERT(ratio > 14 && ratio < 18);
}

/* ---- the fluid under Kolmogorov's forcing ---- */

/* Returns sum |w|^2 / k^(2 p) over the coefficients of a square box: enstrophy for p = 0, energy
 * for p = 1. */
static double sum_squares(const double *state, int n, int p)
{
    double sum = 0;
    for (int x = 0; x < n; ++x)
        for (int y = 0; y < n; ++y) {
            double kx = x <= n / 2 ? x : x - n, ky = y <= n / 2 ? y : y - n;
            int64_t i = (int64_t)x * n + y;
            double square = state[i] * state[i] + state[n * n + i] * state[n * n + i];
            if (x + y > 0) sum += p == 0 ? square : square / (kx * kx + ky * ky);
        }
    return sum;
}

static void kolmogorov_conserves_energy_and_enstrophy(void)
{
    /* no forcing, no friction */
    FlowMake make = make_of(&flow_kolmogorov, SIDE, SIDE, 0);
    FlowStepper before = advanced(&make, 0, 0), after = advanced(&make, 1, 120);
    CU_ASSERT(largest_difference(before.state, after.state, after.value_count) > 0.1);
    for (int p = 0; p < 2; ++p) {
        double first = sum_squares(before.state, SIDE, p), last = sum_squares(after.state, SIDE, p);
        if (getenv("WEFT_TEST_VERBOSE")) printf("sum %d: %.3g of it lost\n", p, 1 - last / first);
        CU_ASSERT_DOUBLE_EQUAL(last / first, 1, 1e-5);
    }
    free_stepper(&before);
    free_stepper(&after);
    double ratio = step_ratio(&make, 0.5, 30);
    CU_ASSERT(ratio > 14 && ratio < 18);
}

static void kolmogorov_keeps_steady_flows(void)
{
    /* u = sin(4 y) / (16 viscosity + drag) is steady; without forcing, a wave decays exactly */
    FlowMake make = make_of(&flow_kolmogorov, SIDE, 2 * SIDE, 0.05);
    make.waves = 4;
    make.drag = 0.1;
    FlowStepper s = advanced(&make, 0, 0);
    for (int64_t i = 0; i < s.value_count; ++i) s.state[i] = 0;
    s.state[4] = s.state[SIDE - 4] = -2 / (16 * 0.05 + 0.1);
    flow_kolmogorov.rate(s.solver, s.state, s.rate);
    for (int64_t i = 0; i < s.value_count; ++i) CU_ASSERT_DOUBLE_EQUAL(s.rate[i], 0, 1e-13);
    free_stepper(&s);
    make.waves = 0;
    s = advanced(&make, 0, 0);
    for (int64_t i = 0; i < s.value_count; ++i) s.state[i] = 0;
    s.state[2 * SIDE + 1] = s.state[(2 * SIDE - 2) * SIDE + SIDE - 1] = 1;
    CU_ASSERT(flow_advance(&s, 1, 20));
    CU_ASSERT_DOUBLE_EQUAL(s.state[2 * SIDE + 1], exp(-0.05 * (1 + 1) - 0.1), 1e-8);
    free_stepper(&s);
}

/* ---- shallow water ---- */

/* Returns the largest error of a Kelvin wave along the southern wall, over its height, after a
 * quarter of its period, on a square grid of n points. Its exact speed is that of long waves. */
static double kelvin_error(int n)
{
    const double f = 1e-4, height = 1e-4;
    FlowMake make = make_of(&flow_shallow_water, n, n, 0);
    FlowStepper s = advanced(&make, 0, 0);
    FlowSolver *w = s.solver;
    double c = sqrt(w->gravity * w->depth), length = n * w->side, time = 0.25 * length / c;
    double error = 0;
    water_set_coriolis(w, f, 0);
    for (int64_t i = 0; i < s.value_count; ++i) s.state[i] = 0;
    for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
            double far = exp(-f * w->side * (y + 0.5) / c), k = 2 * PI / length;
            double *h = s.state + water_at(w, y, x);
            h[0] = w->depth + height * far * cos(k * w->side * (x + 0.5));
            h[w->field_size] = w->gravity / c * height * far * cos(k * w->side * x);
        }
    CU_ASSERT(flow_advance(&s, time, 0));
    for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
            double far = exp(-f * w->side * (y + 0.5) / c), k = 2 * PI / length;
            double exact = far * cos(k * (w->side * (x + 0.5) - c * time));
            double here = (s.state[water_at(w, y, x)] - w->depth) / height;
            error = fmax(error, fabs(here - exact));
        }
    free_stepper(&s);
    return error;
}

static void shallow_water_converges(void)
{
    double coarse = kelvin_error(32), fine = kelvin_error(64), finest = kelvin_error(128);
    if (getenv("WEFT_TEST_VERBOSE")) printf("kelvin: %.3g %.3g %.3g\n", coarse, fine, finest);
    CU_ASSERT(coarse < 0.01);
    CU_ASSERT(coarse / fine > 3.5 && coarse / fine < 4.5);
    CU_ASSERT(fine / finest > 3.5 && fine / finest < 4.5);
    FlowMake make = make_of(&flow_shallow_water, 16, 32, 0);
    double ratio = step_ratio(&make, 6 * 3600, 20);
    CU_ASSERT(ratio > 14 && ratio < 18);
}

/* Sums mass and energy per area. */
static void sum_water(const FlowStepper *s, double *mass, double *energy)
{
    const FlowSolver *w = s->solver;
    *mass = *energy = 0;
    for (int y = 0; y < w->height; ++y)
        for (int x = 0; x < w->width; ++x) {
            const double *h = s->state + water_at(w, y, x), *u = h + w->field_size,
                         *v = u + w->field_size;
            double east = x + 1 < w->width ? u[1] : u[1 - w->width];
            double b = w->ground[water_at(w, y, x)];
            double speed =
                0.25 * (u[0] * u[0] + east * east + v[0] * v[0] + v[w->stride] * v[w->stride]);
            *mass += h[0];
            *energy += h[0] * speed + w->gravity * h[0] * (0.5 * h[0] + b - 0.5 * w->depth);
        }
}

static void shallow_water_conserves_mass_and_energy(void)
{
    FlowMake make = make_of(&flow_shallow_water, 32, 64, 0);
    make.orography = 500;
    FlowStepper before = advanced(&make, 0, 0), after = advanced(&make, 86400, 0);
    double mass[2], energy[2];
    sum_water(&before, &mass[0], &energy[0]);
    sum_water(&after, &mass[1], &energy[1]);
    if (getenv("WEFT_TEST_VERBOSE"))
        printf("mass %.3g, energy %.3g\n", mass[1] / mass[0] - 1, energy[1] / energy[0] - 1);
    CU_ASSERT(largest_difference(before.state, after.state, after.value_count) > 10);
    CU_ASSERT_DOUBLE_EQUAL(mass[1] / mass[0], 1, 1e-13);
    CU_ASSERT_DOUBLE_EQUAL(energy[1] / energy[0], 1, 1e-3);
    free_stepper(&before);
    free_stepper(&after);
}

static void water_at_rest_stays_at_rest(void)
{
    FlowMake make = make_of(&flow_shallow_water, 16, 32, NAN);
    make.orography = 800;
    FlowStepper s = advanced(&make, 0, 0);
    FlowSolver *w = s.solver;
    double highest = 0;
    for (int64_t i = 0; i < s.value_count; ++i) s.state[i] = 0;
    for (int64_t i = 0; i < w->field_size; ++i) {
        s.state[i] = w->depth - w->ground[i];
        highest = fmax(highest, w->ground[i]);
    }
    CU_ASSERT(highest > 100 && highest <= 800);
    CU_ASSERT(flow_advance(&s, 86400, 0));
    for (int64_t i = w->field_size; i < s.value_count; ++i)
        CU_ASSERT_DOUBLE_EQUAL(s.state[i], 0, 1e-9);
    free_stepper(&s);
}

/* ---- sets ---- */

static bool same_member(const char *a, const char *b, int number)
{
    char *one = mem_format("%s/member-%03d.nc", a, number);
    char *two = mem_format("%s/member-%03d.nc", b, number);
    bool same = same_files(one, two);
    mem_free(&one);
    mem_free(&two);
    return same;
}

static void check_set(const FlowKind *kind)
{
    FlowMake make = make_of(kind, 16, 32, NAN);
    char *one = mem_format("%s-1", in_scratch(kind->name));
    char *two = mem_format("%s-2", in_scratch(kind->name));
    make.waves = kind == &flow_kolmogorov ? 3 : 0;
    make.out = one;
    CHECK_OK(data_make_flow(&make, NULL));
    make.out = two;
    make.threads = 3;
    CHECK_OK(data_make_flow(&make, NULL));
    CU_ASSERT(same_member(one, two, 0) && same_member(one, two, 2));
    CHECK_FAILS(data_make_flow(&make, NULL), ERR_USAGE, "holds members already");
    /* a smaller set replaces the larger one; the other seed gives other bytes */
    make.force = true;
    make.members = 2;
    make.seed = 6;
    CHECK_OK(data_make_flow(&make, NULL));
    CU_ASSERT(!same_member(one, two, 1));
    char *last = mem_format("%s/member-002.nc", two);
    CU_ASSERT(access(last, F_OK) != 0);
    mem_free(&last);
    mem_free(&one);
    mem_free(&two);
}

static void sets_have_the_same_bytes(void)
{
    check_set(&flow_shallow_water);
    check_set(&flow_burgers);
    check_set(&flow_kolmogorov);
}

static void bad_sets_are_refused(void)
{
    FlowMake make = make_of(&flow_burgers, 16, 48, NAN);
    make.out = in_scratch("bad");
    CHECK_FAILS(data_make_flow(&make, NULL), ERR_USAGE, "must be powers of two");
    make.width = 8;
    CHECK_FAILS(data_make_flow(&make, NULL), ERR_USAGE, "16 points at least");
    make = make_of(&flow_kolmogorov, 16, 16, NAN);
    make.out = in_scratch("bad");
    make.waves = 6;
    CHECK_FAILS(data_make_flow(&make, NULL), ERR_USAGE, "16 rows has 5 waves at most");
    make.waves = 4;
    make.out = file_put("a.txt", "text", 4);
    CHECK_FAILS(data_make_flow(&make, NULL), ERR_USAGE, "is no folder");
    make = make_of(&flow_shallow_water, 16, 48, NAN);
    make.out = in_scratch("dry");
    make.depth = 200;
    CHECK_FAILS(data_make_flow(&make, NULL), ERR_DATA,
                "breaks down before frame 0; choose a larger");
    char *left = mem_format("%s/member-000.nc.part", make.out);
    CU_ASSERT(access(left, F_OK) != 0);
    mem_free(&left);
}

/* A wheel, pure strain, and water at rest, between walls: rows do not wrap around, columns do. */
static void regimes_of_known_flows(void)
{
    enum { H = 8, W = 16 };
    double u[H * W], v[H * W], w[H * W];
    int8_t regime[H * W];
    for (int want = 2; want >= 0; --want) {
        for (int i = 0; i < H * W; ++i) {
            const int x = i % W, y = i / W;
            u[i] = want == 1 ? -y : want == 2 ? x : 0;
            v[i] = want == 1 ? x : want == 2 ? -y : 0;
        }
        flow_regimes(H, W, true, u, v, w, regime);
        for (int i = 0; i < H * W; ++i)
            if (i % W > 0 && i % W < W - 1) CU_ASSERT_EQUAL(regime[i], want);
    }
}

TEST_MAIN("flow", {"regimes of known flows", regimes_of_known_flows},
          {"functions agree with the library's", functions_agree_with_the_library},
          {"transforms are those of the definition", transforms_are_those_of_the_definition},
          {"Burgers converges to Cole and Hopf", burgers_converges},
          {"the fluid conserves energy and enstrophy", kolmogorov_conserves_energy_and_enstrophy},
          {"steady flows", kolmogorov_keeps_steady_flows},
          {"shallow water converges to a Kelvin wave", shallow_water_converges},
          {"shallow water conserves mass", shallow_water_conserves_mass_and_energy},
          {"water at rest stays at rest", water_at_rest_stays_at_rest},
          {"the same bytes on any number of threads", sets_have_the_same_bytes},
          {"bad sets are refused", bad_sets_are_refused})
