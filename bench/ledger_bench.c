/* Measures what the ledger costs: weft, in which phase_enter adds times in every second step only,
 * in the order on, off, off, on. In the other steps it makes the watchdog's mark, as it would
 * without a ledger. Prints the median time of both kinds of steps, the median of the differences of
 * neighbours, and the standard error of that median.
 *
 *   ledger_bench bench step CONFIG ...      the arguments of weft; --steps 8000 and more */
#define phase_enter phase_enter_counted
/* the module itself, so that the linker takes this copy instead of the library's */
#include "../src/base/phase.c"
#undef phase_enter
Phase phase_enter(Phase phase);
/* and the program's own main */
#define main weft_main
int weft_main(int argc, char **argv);
#include "../src/main.c"
#undef main

#include "base/system.h"

#include <math.h>

/* WARM_UP: steps that are not counted. STEPS_MAX: steps that are counted at most. */
enum { WARM_UP = 20, STEPS_MAX = 1 << 18 };

static struct {
    /* steps begun so far */
    int64_t steps;
    /* when this step began, by clock_s */
    double began_s;
    /* seconds of each step */
    double step_s[STEPS_MAX];
} times;

/* True if phases are counted in step i. */
static bool counts(int64_t i)
{
    return i % 4 == 0 || i % 4 == 3;
}

/* The clock is read once a step here, in steps of both kinds. */
static void step_ends(void)
{
    const double now_s = clock_s();
    if (times.steps > 0 && times.steps <= STEPS_MAX)
        times.step_s[times.steps - 1] = now_s - times.began_s;
    times.began_s = now_s;
    ++times.steps;
}

Phase phase_enter(Phase phase)
{
    const Phase before = phases.now;
    const bool counted_now = counts(times.steps - 1);
    if (before == PHASE_UPDATE && phase == PHASE_OTHER) step_ends();
    if (counted_now) return phase_enter_counted(phase);
    phases.now = phase;
    beat_mark_plain(phase_names[phase], phase == PHASE_SUM);
    return before;
}

static void print_result(void)
{
    static double on[STEPS_MAX], off[STEPS_MAX], difference[STEPS_MAX];
    const int64_t all = times.steps - 1 < STEPS_MAX ? times.steps - 1 : STEPS_MAX;
    int pairs = 0;
    /* Steps i and i + 1 of an even i are one of each kind. */
    for (int64_t i = WARM_UP; i + 1 < all; i += 2, ++pairs) {
        on[pairs] = times.step_s[counts(i) ? i : i + 1];
        off[pairs] = times.step_s[counts(i) ? i + 1 : i];
        difference[pairs] = on[pairs] - off[pairs];
    }
    if (pairs == 0) return;
    const double with = median(on, pairs), without = median(off, pairs);
    const double middle = median(difference, pairs);
    /* a median's standard error, from the middle half, as of a normal distribution */
    const double half = difference[3 * pairs / 4] - difference[pairs / 4];
    const double error = 1.2533 * half / 1.349 / sqrt((double)pairs);
    fprintf(stderr,
            "%d pairs of steps: %.4f ms with the ledger, %.4f without; difference %.2f us "
            "(standard error %.2f), %.3f %% of a step\n",
            pairs, 1e3 * with, 1e3 * without, 1e6 * middle, 1e6 * error, 100 * middle / without);
}

int main(int argc, char **argv)
{
    const int code = weft_main(argc, argv);
    print_result();
    return code;
}
