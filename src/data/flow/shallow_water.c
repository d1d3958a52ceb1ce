/* Solves the equations of rotating shallow water on a beta plane, in a channel that is periodic
 * along x and has walls in the south and in the north. With the thickness h, the velocity (u, v)
 * and the height of the ground b, the equations are
 *
 *     dh/dt = -dU/dx - dV/dy                    U = h u, V = h v
 *     du/dt =  q V - dB/dx - D(u)               q = (f + dv/dx - du/dy) / h
 *     dv/dt = -q U - dB/dy - D(v)               B = g (h + b) + (u^2 + v^2) / 2
 *
 * D(u) is the hyperviscosity: `viscosity` times the Laplacian of the Laplacian of u. The scheme is
 * the one of Sadourny that conserves potential enstrophy (1975, "The dynamics of finite-difference
 * models of the shallow-water equations", equations 4 to 6), on Arakawa's C grid:
 *
 *     q---v---q      h, B in the centre of cell (y, x); u, U at its western side;
 *     u   h   u      v, V at its southern side; q at its south-western corner.
 *     q---v---q      Walls are sides with v = 0, where h and u do not change across the wall.
 */
#include "shallow_water.h"

#include <math.h>

/* width of the channel from wall to wall, in m */
static const double CHANNEL = 6.4e6;
/* in m/s^2 */
static const double GRAVITY = 9.80616;
/* Coriolis parameter in the middle of the channel, per s: that of 45 degrees north */
static const double CORIOLIS = 1.0313e-4;
/* slope of the Coriolis parameter, per m and s: that of 45 degrees north */
static const double BETA = 1.6187e-11;
/* time in which the default hyperviscosity damps the shortest waves to 1/e, in s */
static const double DAMPING = 4 * 3600.0;
/* fraction of the longest stable step (FLOW_STABLE) that is used */
static const double SHARE = 0.6;

enum { JETS = 2, VORTICES = 8, MOUNTAINS = 5 };
/* kinds of random numbers, for flow_key */
enum { DRAW_JETS, DRAW_VORTICES, DRAW_MOUNTAINS };
/* number of a member in the key of the orography, which is the same for all members */
static const uint64_t EVERY_MEMBER = UINT64_MAX;

/* ---- the solver ---- */

void water_set_coriolis(FlowSolver *w, double f, double beta)
{
    for (int y = 0; y <= w->height; ++y)
        w->coriolis[y] = f + beta * w->side * (y - w->height / 2.0);
}

/* Returns the height, at distance (x, y) from its top, of a hill of height 1 and radius
 * `radius`. */
static double hill(double x, double y, double radius)
{
    return flow_exp(-(x * x + y * y) / (2 * radius * radius));
}

/* Returns the signed distance to the nearest periodic copy of a point that is at distance x along a
 * channel of length `length`. Its absolute value is at most half of the length. */
static double wrap(double x, double length)
{
    return x - length * floor(x / length + 0.5);
}

static void raise_mountains(FlowSolver *w, double most)
{
    RngKey key = flow_key(w->seed, EVERY_MEMBER, DRAW_MOUNTAINS);
    double length = w->side * w->width;
    for (int i = 0; i < MOUNTAINS; ++i) {
        double x0 = flow_draw(key, 4 * i, 0, length);
        double y0 = CHANNEL * flow_draw(key, 4 * i + 1, 0.2, 0.8);
        double radius = CHANNEL * flow_draw(key, 4 * i + 2, 0.04, 0.1);
        double height = most * flow_draw(key, 4 * i + 3, 0.3, 1);
        for (int y = 0; y < w->height; ++y)
            for (int x = 0; x < w->width; ++x) {
                double *b = &w->ground[water_at(w, y, x)];
                double here = height * hill(wrap(w->side * (x + 0.5) - x0, length),
                                            w->side * (y + 0.5) - y0, radius);
                if (here > *b) *b = here;
            }
    }
}

/* Fills the halo of a field with rows 0 to rows - 1. mirror 1: each wall is between two rows, and
 * values are the same on both sides of it. mirror -1: rows 0 and rows - 1 are the walls; values are
 * 0 there, and change their sign across a wall. */
static void fill_halo(const FlowSolver *w, double *field, int rows, double mirror)
{
    bool on_wall = mirror < 0;
    for (int x = 0; x < w->width; ++x) {
        if (on_wall) field[water_at(w, 0, x)] = field[water_at(w, rows - 1, x)] = 0;
        field[water_at(w, -1, x)] = mirror * field[water_at(w, on_wall, x)];
        field[water_at(w, rows, x)] = mirror * field[water_at(w, rows - 1 - on_wall, x)];
    }
    for (int y = -1; y <= rows; ++y) {
        double *row = field + water_at(w, y, 0);
        for (int i = 1; i <= WATER_COLUMNS; ++i) {
            row[-i] = row[w->width - i];
            row[w->width - 1 + i] = row[i - 1];
        }
    }
}

static FlowSolver *solver_new(const FlowMake *make)
{
    FlowSolver *w = mem_new(sizeof *w);
    w->height = (int)make->height, w->width = (int)make->width;
    w->stride = w->width + 2 * WATER_COLUMNS;
    w->field_size = w->stride * (w->height + 2 * WATER_ROWS + 1);
    w->side = CHANNEL / w->height;
    w->gravity = GRAVITY;
    w->depth = make->depth;
    w->seed = make->seed;
    /* the Laplacian multiplies the shortest waves by -8 / side^2 */
    double area = w->side * w->side;
    w->viscosity = make->viscosity >= 0 ? make->viscosity : area * area / (64 * DAMPING);
    double **field[] = {&w->ground,    &w->q,           &w->flux_u,     &w->flux_v,
                        &w->bernoulli, &w->laplacian_u, &w->laplacian_v};
    for (size_t i = 0; i < sizeof field / sizeof *field; ++i)
        *field[i] = mem_new((size_t)w->field_size * sizeof(double));
    w->coriolis = mem_new((size_t)(w->height + 1) * sizeof(double));
    water_set_coriolis(w, CORIOLIS, BETA);
    if (make->orography > 0) raise_mountains(w, make->orography);
    fill_halo(w, w->ground, w->height, 1);
    return w;
}

static void solver_free(FlowSolver **solver)
{
    FlowSolver *w = *solver;
    double **owned[] = {&w->coriolis, &w->ground,    &w->q,           &w->flux_u,
                        &w->flux_v,   &w->bernoulli, &w->laplacian_u, &w->laplacian_v};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; ++i) mem_free(owned[i]);
    mem_free(solver);
}

static int64_t values(const FlowSolver *w)
{
    return 3 * w->field_size;
}

/* ---- the rate of change ---- */

/* Computes potential vorticity, fluxes and Bernoulli's function of row y, with a column of the
 * halo on each side. */
static void derive_row(const FlowSolver *w, int y, const double *state)
{
    const int64_t at = water_at(w, y, 0), south = w->stride;
    const double *restrict h = state + at, *restrict u = state + w->field_size + at;
    const double *restrict v = state + 2 * w->field_size + at, *restrict b = w->ground + at;
    double *restrict q = w->q + at, *restrict flux_u = w->flux_u + at;
    double *restrict flux_v = w->flux_v + at, *restrict bernoulli = w->bernoulli + at;
    const double f = w->coriolis[y], per_m = 1 / w->side, g = w->gravity;
#pragma omp simd
    for (int x = -1; x <= w->width; ++x) {
        double corners = 0.25 * ((h[x] + h[x - 1]) + (h[x - south] + h[x - south - 1]));
        q[x] = (f + per_m * ((v[x] - v[x - 1]) - (u[x] - u[x - south]))) / corners;
        flux_u[x] = 0.5 * u[x] * (h[x] + h[x - 1]);
        flux_v[x] = 0.5 * v[x] * (h[x] + h[x - south]);
        bernoulli[x] = g * (h[x] + b[x]) + 0.25 * ((u[x] * u[x] + u[x + 1] * u[x + 1]) +
                                                   (v[x] * v[x] + v[x + south] * v[x + south]));
    }
}

/* Computes the rates of row y of h and u, and of v unless the row is a wall. */
static void set_row_rates(const FlowSolver *w, int y, double *rate)
{
    const int64_t at = water_at(w, y, 0), south = w->stride;
    const double *restrict q = w->q + at, *restrict flux_u = w->flux_u + at;
    const double *restrict flux_v = w->flux_v + at, *restrict bernoulli = w->bernoulli + at;
    double *restrict dh = rate + at, *restrict du = rate + w->field_size + at;
    double *restrict dv = rate + 2 * w->field_size + at;
    const double per_m = 1 / w->side;
#pragma omp simd
    for (int x = 0; x < w->width; ++x) {
        double across =
            0.25 * ((flux_v[x] + flux_v[x - 1]) + (flux_v[x + south] + flux_v[x + south - 1]));
        dh[x] = -per_m * ((flux_u[x + 1] - flux_u[x]) + (flux_v[x + south] - flux_v[x]));
        du[x] = 0.5 * (q[x] + q[x + south]) * across - per_m * (bernoulli[x] - bernoulli[x - 1]);
    }
    if (y == 0) return;
#pragma omp simd
    for (int x = 0; x < w->width; ++x) {
        double across =
            0.25 * ((flux_u[x] + flux_u[x + 1]) + (flux_u[x - south] + flux_u[x - south + 1]));
        dv[x] = -0.5 * (q[x] + q[x + 1]) * across - per_m * (bernoulli[x] - bernoulli[x - south]);
    }
}

/* Computes the Laplacian of a row, for cells of side 1, times `by`. Adds it to `to` if `add` is
 * true, else writes it there. */
static void laplacian_row(const FlowSolver *w, const double *restrict from, double by, bool add,
                          double *restrict to)
{
    const int64_t south = w->stride;
    const double keep = add ? 1 : 0;
#pragma omp simd
    for (int x = 0; x < w->width; ++x) {
        double sum = (from[x - 1] + from[x + 1]) + (from[x - south] + from[x + south]);
        to[x] = keep * to[x] + by * (sum - 4 * from[x]);
    }
}

/* Adds the hyperviscosity of u and v to their rates. */
static void add_viscosity(const FlowSolver *w, const double *state, double *rate)
{
    const double *u = state + w->field_size, *v = state + 2 * w->field_size;
    double per_area = 1 / (w->side * w->side), by = -w->viscosity * per_area;
    for (int y = 0; y < w->height; ++y) {
        int64_t at = water_at(w, y, 0);
        laplacian_row(w, u + at, per_area, false, w->laplacian_u + at);
        if (y > 0) laplacian_row(w, v + at, per_area, false, w->laplacian_v + at);
    }
    fill_halo(w, w->laplacian_u, w->height, 1);
    fill_halo(w, w->laplacian_v, w->height + 1, -1);
    for (int y = 0; y < w->height; ++y) {
        int64_t at = water_at(w, y, 0);
        laplacian_row(w, w->laplacian_u + at, by, true, rate + w->field_size + at);
        if (y > 0) laplacian_row(w, w->laplacian_v + at, by, true, rate + 2 * w->field_size + at);
    }
}

static void rate(FlowSolver *w, double *state, double *rate)
{
    fill_halo(w, state, w->height, 1);
    fill_halo(w, state + w->field_size, w->height, 1);
    fill_halo(w, state + 2 * w->field_size, w->height + 1, -1);
    for (int y = 0; y <= w->height; ++y) derive_row(w, y, state);
    for (int y = 0; y < w->height; ++y) set_row_rates(w, y, rate);
    if (w->viscosity > 0) add_viscosity(w, state, rate);
}

static double longest_step(FlowSolver *w, const double *state)
{
    const double *h = state, *u = state + w->field_size, *v = state + 2 * w->field_size;
    double deep = 0, fast = 0, least = w->depth;
    for (int y = 0; y < w->height; ++y)
        for (int x = 0; x < w->width; ++x) {
            int64_t i = water_at(w, y, x);
            if (h[i] > deep) deep = h[i];
            if (!(h[i] > least)) least = h[i];
            if (fabs(u[i]) + fabs(v[i]) > fast) fast = fabs(u[i]) + fabs(v[i]);
        }
    if (!(least > 0)) return 0;
    double area = w->side * w->side;
    double waves =
        (2 * sqrt(2 * w->gravity * deep) + fast) / w->side + fabs(w->coriolis[w->height]);
    return SHARE * FLOW_STABLE / (waves + 64 * w->viscosity / (area * area));
}

/* ---- the initial state ---- */

/* Adds a jet along x to u, and to h the heights with which it is in geostrophic balance. At y, its
 * speed in m/s is speed / cosh^2((y - middle) / half_width). */
static void add_jet(const FlowSolver *w, double middle, double half_width, double speed, double *h,
                    double *u)
{
    double height = 0, before = 0;
    for (int y = 0; y < w->height; ++y) {
        double e = flow_exp(-2 * fabs(w->side * (y + 0.5) - middle) / half_width);
        double here = speed * 4 * e / ((1 + e) * (1 + e));
        if (y > 0) height -= w->side / w->gravity * w->coriolis[y] * 0.5 * (here + before);
        before = here;
        for (int x = 0; x < w->width; ++x) {
            h[water_at(w, y, x)] += height;
            u[water_at(w, y, x)] += here;
        }
    }
}

/* Adds a vortex with the largest speed |speed| to the stream function. The stream function is given
 * at the corners of cells and is 0 at the walls. */
static void add_vortex(const FlowSolver *w, double x0, double y0, double radius, double speed,
                       double *stream)
{
    /* the flow is fastest at distance `radius`, where hill() is exp(-1/2) */
    double most = speed * radius * 1.6487212707001282, length = w->side * w->width, wall, ignored;
    for (int y = 0; y <= w->height; ++y) {
        flow_sine(0.5 * y / w->height, &wall, &ignored);
        for (int x = 0; x < w->width; ++x)
            stream[water_at(w, y, x)] +=
                wall * most * hill(wrap(w->side * x - x0, length), w->side * y - y0, radius);
    }
}

/* Adds the flow of the stream function to u and v, and to h the heights with which it is in
 * geostrophic balance. */
static void add_stream(const FlowSolver *w, double *stream, double *h, double *u, double *v)
{
    fill_halo(w, stream, w->height + 1, -1);
    for (int y = 0; y < w->height; ++y) {
        double f = 0.5 * (w->coriolis[y] + w->coriolis[y + 1]);
        for (int x = 0; x < w->width; ++x) {
            int64_t i = water_at(w, y, x);
            const double *s = stream + i, *n = s + w->stride;
            h[i] += f / w->gravity * 0.25 * (s[0] + s[1] + n[0] + n[1]);
            u[i] -= (n[0] - s[0]) / w->side;
            v[i] += (s[1] - s[0]) / w->side;
        }
    }
}

/* Shifts h, which is the height of the surface, so that its mean is the depth; then subtracts the
 * ground, so that h is the thickness. */
static void settle(const FlowSolver *w, double *h)
{
    double sum = 0;
    for (int y = 0; y < w->height; ++y)
        for (int x = 0; x < w->width; ++x) sum += h[water_at(w, y, x)];
    double mean = sum / ((double)w->height * w->width);
    for (int y = 0; y < w->height; ++y)
        for (int x = 0; x < w->width; ++x) {
            int64_t i = water_at(w, y, x);
            h[i] += w->depth - mean - w->ground[i];
        }
}

/* Sets the initial state: jets, of which the first is strong, and vortices that disturb the
 * jets. */
static void start(FlowSolver *w, uint64_t member, double *state)
{
    double *h = state, *u = state + w->field_size, *v = state + 2 * w->field_size, *stream = w->q;
    RngKey jets = flow_key(w->seed, member, DRAW_JETS);
    RngKey vortices = flow_key(w->seed, member, DRAW_VORTICES);
    for (int64_t i = 0; i < w->field_size; ++i) h[i] = u[i] = v[i] = stream[i] = 0;
    for (int i = 0; i < JETS; ++i) {
        double middle = CHANNEL * flow_draw(jets, 4 * i, 0.3, 0.7);
        double half_width = CHANNEL * flow_draw(jets, 4 * i + 1, 0.05, 0.1);
        double speed =
            i == 0 ? flow_draw(jets, 4 * i + 2, 25, 45) : flow_draw(jets, 4 * i + 2, -20, 20);
        add_jet(w, middle, half_width, speed, h, u);
    }
    for (int i = 0; i < VORTICES; ++i)
        add_vortex(w, w->side * w->width * flow_draw(vortices, 4 * i, 0, 1),
                   CHANNEL * flow_draw(vortices, 4 * i + 1, 0.15, 0.85),
                   CHANNEL * flow_draw(vortices, 4 * i + 2, 0.04, 0.1),
                   flow_draw(vortices, 4 * i + 3, -15, 15), stream);
    add_stream(w, stream, h, u, v);
    settle(w, h);
}

/* ---- the fields of the file ---- */

static void view(FlowSolver *w, const double *state, double *const field[FLOW_VARS])
{
    const double *h = state, *u = state + w->field_size, *v = state + 2 * w->field_size;
    for (int y = 0; y < w->height; ++y) {
        double *row[FLOW_VARS];
        for (int i = 0; i < FLOW_VARS; ++i) row[i] = field[i] + (int64_t)y * w->width;
        for (int x = 0; x < w->width; ++x) {
            int64_t i = water_at(w, y, x), east = water_at(w, y, x + 1 < w->width ? x + 1 : 0);
            row[0][x] = h[i];
            row[1][x] = 0.5 * (u[i] + u[east]);
            row[2][x] = 0.5 * (v[i] + v[i + w->stride]);
        }
    }
}

static double place(const FlowSolver *w, int64_t i)
{
    return w->side * ((double)i + 0.5);
}

static int parameters(const FlowSolver *w, NetcdfAttr *attr)
{
    attr[0] = (NetcdfAttr){.name = "hyperviscosity", .number = w->viscosity};
    attr[1] = (NetcdfAttr){.name = "depth", .number = w->depth};
    attr[2] = (NetcdfAttr){.name = "gravity", .number = w->gravity};
    attr[3] = (NetcdfAttr){.name = "coriolis_middle", .number = CORIOLIS};
    attr[4] = (NetcdfAttr){.name = "coriolis_beta", .number = BETA};
    return 5;
}

static void orography(const FlowSolver *w, double *field)
{
    for (int y = 0; y < w->height; ++y)
        for (int x = 0; x < w->width; ++x)
            field[(int64_t)y * w->width + x] = w->ground[water_at(w, y, x)];
}

/* listed in FLOW_KINDS (data/flow.h) */
const FlowKind flow_shallow_water = {
    .name = "shallow-water",
    .title = "Rotating shallow water in a channel on a beta plane",
    .time_units = "hours since 2000-01-01 00:00:00",
    .time_scale = 3600,
    .length_units = "m",
    .advice = "choose a larger --depth or --viscosity, or a lower --orography",
    .var = {{"h", "thickness of the layer", "m"},
            {"u", "velocity along x", "m s-1"},
            {"v", "velocity along y", "m s-1"}},
    .vars = 3,
    .sides = SIDES_ANY,
    .edges = EDGES_WALLS,
    .solver_new = solver_new,
    .solver_free = solver_free,
    .value_count = values,
    .start = start,
    .rate = rate,
    .longest_step = longest_step,
    .compute_fields = view,
    .coordinate = place,
    .parameters = parameters,
    .orography = orography,
};
