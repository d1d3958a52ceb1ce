/* Tests which losses are spikes: those that lie more than a number of deviations above the last
 * losses. Tested with losses that scatter, that hardly move and that are near zero. A window
 * restored from a checkpoint decides as the original window does. */
#include "harness.h"

#include "train/step/loss_window.h"

#include <math.h>

static RngKey key;

/* Returns number i of a roughly normal sequence with mean 0 and deviation 1. */
static double noise(uint64_t i)
{
    double sum = -6;
    for (uint64_t k = 0; k < 12; ++k) sum += (double)rng_uniform(key, 12 * i + k);
    return sum;
}

static LossWindow fill(double mean, double deviation, int count)
{
    LossWindow w;
    loss_window_init(&w, NULL, 0);
    for (int i = 0; i < count; ++i) loss_window_add(&w, mean + deviation * noise((uint64_t)i));
    return w;
}

static bool spike(const LossWindow *w, double loss)
{
    double most;
    return loss_window_spike(w, 8, loss, &most);
}

static void test_deviations(void)
{
    double most;
    LossWindow w = fill(3, 0.1, 450);
    CU_ASSERT(!spike(&w, 3) && !spike(&w, 3.6) && spike(&w, 4.2) && spike(&w, 1e30));
    CU_ASSERT(!spike(&w, 0) && !spike(&w, -5));
    CU_ASSERT_TRUE(loss_window_spike(&w, 4, 3.6, &most));
    CU_ASSERT(most > 3.3 && most < 3.6);
    CU_ASSERT_FALSE(loss_window_spike(&w, 0, 1e30, &most));
}

/* Tests that no loss is a spike before the window is full. */
static void test_filling(void)
{
    LossWindow w = fill(3, 0.1, CHECKPOINT_LOSSES - 1);
    CU_ASSERT_FALSE(spike(&w, 1e30));
    loss_window_add(&w, 3);
    CU_ASSERT_TRUE(spike(&w, 1e30));
}

/* Tests that a small relative change after constant losses is no spike. */
static void test_constant(void)
{
    LossWindow w = fill(2, 0, 300), zero = fill(0, 0, 300);
    CU_ASSERT(!spike(&w, 2.2) && spike(&w, 2.3));
    CU_ASSERT_FALSE(spike(&zero, 0));
}

/* Tests the losses of a model that has nearly memorised its samples. A loss ten times as large as
 * the largest recent one is no spike; a loss as large as the model's first losses is one. */
static void test_small(void)
{
    LossWindow w;
    double largest = 0, mean = 0, squares = 0;
    loss_window_init(&w, NULL, 0);
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) {
        double loss = 1e-3 * exp(1.2 * noise((uint64_t)i));
        loss_window_add(&w, loss);
        largest = fmax(largest, loss);
        mean += loss / CHECKPOINT_LOSSES;
        squares += loss * loss / CHECKPOINT_LOSSES;
    }
    CU_ASSERT(10 * largest > mean + 8 * sqrt(squares - mean * mean));
    CU_ASSERT(!spike(&w, 10 * largest) && spike(&w, 1e3));
}

/* Tests a window that is restored from its list of losses. Wherever the oldest loss stood in the
 * original window, sums have the same bits, as losses are added in order of time. */
static void test_from_checkpoint(void)
{
    float loss[CHECKPOINT_LOSSES];
    for (int count = 1; count <= 3 * CHECKPOINT_LOSSES; count += 37) {
        double a = 0, b = 0;
        LossWindow w = fill(1, 0.3, count), again;
        int kept = loss_window_list(&w, loss);
        CU_ASSERT_EQUAL(kept, count < CHECKPOINT_LOSSES ? count : CHECKPOINT_LOSSES);
        for (int i = 0; i < kept; ++i)
            CU_ASSERT_EQUAL(loss[i], (float)(1 + 0.3 * noise((uint64_t)(count - kept + i))));
        loss_window_init(&again, loss, kept);
        bool first = loss_window_spike(&w, 8, 1e9, &a),
             second = loss_window_spike(&again, 8, 1e9, &b);
        CU_ASSERT(first == second && memcmp(&a, &b, sizeof a) == 0);
    }
}

static void prepare(void)
{
    key = rng_key(12, RNG_TEST, 0, 0);
}

int main(void)
{
    static const HarnessTest tests[] = {{"deviations", test_deviations},
                                        {"not full", test_filling},
                                        {"constant", test_constant},
                                        {"near zero", test_small},
                                        {"from a checkpoint", test_from_checkpoint}};
    prepare();
    return harness_run("loss window", tests, (int)(sizeof tests / sizeof *tests), 0, NULL);
}
