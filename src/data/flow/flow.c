/* Advances the states of all solvers, and computes the random numbers, exponentials and sines of
 * their initial states. The last bits of the C library's exponential and sine differ between
 * processors, and a flow amplifies such differences; the functions of this file give the same bits
 * on all processors. */
#include "flow.h"

#include <math.h>

/* ---- the integrator ---- */

void flow_stepper_init(FlowStepper *s, const FlowKind *kind, FlowSolver *solver)
{
    *s = (FlowStepper){.kind = kind, .solver = solver, .value_count = kind->value_count(solver)};
    size_t bytes = (size_t)s->value_count * sizeof(double);
    s->state = mem_new(bytes);
    s->rate = mem_new(bytes);
    s->stage = mem_new(bytes);
    s->sum = mem_new(bytes);
}

void flow_stepper_fini(FlowStepper *s)
{
    mem_free(&s->state);
    mem_free(&s->rate);
    mem_free(&s->stage);
    mem_free(&s->sum);
}

/* Computes stage = state + a rate and sum = from + b rate. */
static void add_rate(const FlowStepper *s, const double *from, double a, double b)
{
    const double *restrict state = s->state, *restrict rate = s->rate;
    double *restrict stage = s->stage, *sum = s->sum;
#pragma omp simd
    for (int64_t i = 0; i < s->value_count; ++i) {
        stage[i] = state[i] + a * rate[i];
        sum[i] = from[i] + b * rate[i];
    }
}

/* Makes one step of length h:
 *     k1 = f(y), k2 = f(y + h/2 k1), k3 = f(y + h/2 k2), k4 = f(y + h k3),
 *     y += h/6 (k1 + 2 k2 + 2 k3 + k4) */
static void step(FlowStepper *s, double h)
{
    s->kind->rate(s->solver, s->state, s->rate);
    add_rate(s, s->state, h / 2, h / 6);
    s->kind->rate(s->solver, s->stage, s->rate);
    add_rate(s, s->sum, h / 2, h / 3);
    s->kind->rate(s->solver, s->stage, s->rate);
    add_rate(s, s->sum, h, h / 3);
    s->kind->rate(s->solver, s->stage, s->rate);
    double *restrict state = s->state;
    const double *restrict sum = s->sum, *restrict rate = s->rate;
#pragma omp simd
    for (int64_t i = 0; i < s->value_count; ++i) state[i] = sum[i] + h / 6 * rate[i];
}

bool flow_advance(FlowStepper *s, double time, int64_t steps)
{
    if (steps <= 0) {
        double count = ceil(time / s->kind->longest_step(s->solver, s->state));
        /* if the flow has broken down, the longest step is 0 or NaN, and count infinite or NaN */
        if (!(count < 1e9)) return false;
        steps = (int64_t)count;
    }
    for (int64_t i = 0; i < steps; ++i) step(s, time / (double)steps);
    double check = 0;
    for (int64_t i = 0; i < s->value_count; ++i) check += s->state[i] * 0;
    return check == 0;
}

/* ---- random numbers and functions ---- */

RngKey flow_key(uint64_t seed, uint64_t member, uint64_t kind)
{
    return rng_key(seed, RNG_FLOW, member, kind);
}

double flow_draw(RngKey key, uint64_t i, double low, double high)
{
    return low + (high - low) * (double)rng_uniform(key, i);
}

double flow_exp(double x)
{
    /* e^x = (e^y)^1024 with y = x / 1024. |y| is below 1, so for double precision the series of e^y
     * may end with the term y^20 / 20!. */
    enum { SQUARINGS = 10, TERMS = 20 };
    if (x < -700) return 0;
    double y = x / (1 << SQUARINGS), sum = 1;
    for (int i = TERMS; i > 0; --i) sum = 1 + y / i * sum;
    for (int i = 0; i < SQUARINGS; ++i) sum *= sum;
    return sum;
}

void flow_sine(double turns, double *sine, double *cosine)
{
    const double two_pi = 6.283185307179586476925;
    /* the series of the sine ends with the term x^19, that of the cosine with x^18 */
    enum { LAST = 18 };
    /* the angle is q quarter turns plus x radians; |x| is at most an eighth of a turn */
    double q = floor(4 * turns + 0.5), x = two_pi * (turns - q / 4), s = 1, c = 1;
    for (int i = LAST; i > 0; i -= 2) {
        s = 1 - x * x / (i * (i + 1)) * s;
        c = 1 - x * x / (i * (i - 1)) * c;
    }
    s *= x;
    int quarter = (int)(q - 4 * floor(q / 4));
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}
