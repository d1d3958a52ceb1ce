/* softmax_loss: ties, NaN and infinities, two labels per row against PyTorch, large rows. */
#include "kernel_rig.h"

static float *loss_of(Rig *r, const float *logits, int64_t k, const int32_t *label)
{
    memcpy((void *)r->run.x[0], logits, (size_t)k * sizeof(float));
    r->run.labels = label;
    op_forward(r->op, &r->run);
    return r->run.y;
}

static void test_softmax_edges(void)
{
    OpSpec s = {.kind = OP_SOFTMAX_LOSS,
                .x_count = 1,
                .x = {plain(2, 1, 5, 1, 1)},
                .y = plain(2, 1, LOSS_COLUMNS, 1, 1)};
    Rig r = rig_of(s, 1);
    const int32_t label = 2;
    float *y = loss_of(&r, (float[]){1, 3, 1, 1, 3}, 5, &label);
    /* two are larger, one is equal and earlier */
    CU_ASSERT_EQUAL(y[1], 3.0f);
    /* the first of equal maxima */
    CU_ASSERT_EQUAL(y[2], 1.0f);
    y = loss_of(&r, (float[]){0, 0, 1000, 0, -1000}, 5, &label);
    CU_ASSERT_EQUAL(y[0], 0.0f);
    CU_ASSERT_EQUAL(y[1], 0.0f);
    y = loss_of(&r, (float[]){1e4f, 0, 0, 0, 0}, 5, &label);
    CU_ASSERT_DOUBLE_EQUAL(y[0], 1e4, 1e-2);
    y = loss_of(&r, (float[]){0, -INFINITY, 0, -INFINITY, -INFINITY}, 5, &label);
    CU_ASSERT_DOUBLE_EQUAL(y[0], log(2), 1e-6);
    y = loss_of(&r, (float[]){0, 0, 1, NAN, 0}, 5, &label);
    CU_ASSERT(isnan(y[0]));
    /* a label of NaN is never right */
    CU_ASSERT(y[1] > 0.0f);
    y = loss_of(&r, (float[]){0, 0, NAN, 0, 0}, 5, &label);
    CU_ASSERT(isnan(y[0]));
    CU_ASSERT(y[1] > 0.0f);
    rig_close(&r);
}

/* Two labels per row, equal in the second row: share CE(a) + (1 - share) CE(b), with PyTorch's
 * values in double precision (cross_entropy with label_smoothing=0.1, share 0.3, loss_factor
 * 0.5). */
static void test_softmax_mixed(void)
{
    enum { N = 3, K = 5 };
    static const double loss[N] = {1.1957434, 1.4565856, 1.8051591};
    static const double grad[N * K] = {0.0172176,  -0.0873803, 0.1119809, -0.0667664, 0.0249481,
                                       0.0844455,  0.189941,   0.0170591, 0.0472841,  -0.3387296,
                                       -0.2723088, 0.1015473,  0.0911457, 0.0219588,  0.0576569};
    const int32_t a[N] = {1, 4, 2}, b[N] = {3, 4, 0};
    OpSpec s = {.kind = OP_SOFTMAX_LOSS,
                .smoothing = 0.1f,
                .x_count = 1,
                .x = {plain(2, N, K, 1, 1)},
                .need_dx = {true},
                .y = plain(2, N, LOSS_COLUMNS, 1, 1)};
    Rig r = rig_of(s, 1);
    float logits[N * K];
    for (int i = 0; i < N * K; ++i) logits[i] = (float)((i / K * 7 + i % K * 3) % 11 - 5) / 4;
    r.run.labels_other = b;
    r.run.label_share = 0.3f;
    r.run.loss_factor = 0.5f;
    float *y = loss_of(&r, logits, N * K, a);
    for (int i = 0; i < N; ++i) CU_ASSERT_DOUBLE_EQUAL(y[i * LOSS_COLUMNS], loss[i], 2e-6);
    rig_backward(&r);
    for (int i = 0; i < N * K; ++i)
        CU_ASSERT_DOUBLE_EQUAL(((float *)r.run.dx[0])[i], grad[i], 2e-6);
    rig_close(&r);
}

/* Evaluation does not smooth labels: -log softmax at the label, in double. */
static void test_softmax_evaluated(void)
{
    enum { N = 4, K = 6 };
    const int32_t label[N] = {5, 0, 3, 3};
    OpSpec s = {.kind = OP_SOFTMAX_LOSS,
                .smoothing = 0.3f,
                .x_count = 1,
                .x = {plain(2, N, K, 1, 1)},
                .y = plain(2, N, LOSS_COLUMNS, 1, 1)};
    Rig r = rig_of(s, 1);
    float logits[N * K];
    for (int i = 0; i < N * K; ++i) logits[i] = (float)((i / K * 5 + i % K * 3) % 13 - 6) / 3;
    for (int training = 0; training < 2; ++training) {
        r.run.training = training;
        float *y = loss_of(&r, logits, N * K, label);
        for (int i = 0; i < N; ++i) {
            double sum = 0, plain_loss, all = 0;
            for (int k = 0; k < K; ++k) sum += exp((double)logits[i * K + k]);
            for (int k = 0; k < K; ++k) all += log(sum) - (double)logits[i * K + k];
            plain_loss = log(sum) - (double)logits[i * K + label[i]];
            CU_ASSERT_DOUBLE_EQUAL(y[i * LOSS_COLUMNS],
                                   training ? 0.7 * plain_loss + 0.3 * all / K : plain_loss, 2e-6);
        }
    }
    rig_close(&r);
}

static void test_softmax_vocabulary(void)
{
    enum { K = 50257 };
    OpSpec s = {.kind = OP_SOFTMAX_LOSS,
                .smoothing = 0.1f,
                .x_count = 1,
                .x = {plain(2, 1, K, 1, 1)},
                .y = plain(2, 1, LOSS_COLUMNS, 1, 1)};
    Rig r = rig_of(s, 2);
    float *logits = malloc(K * sizeof *logits);
    for (int i = 0; i < K; ++i) logits[i] = (float)(10 * rig_random(8, i)) + (float)i * 1e-4f;
    /* all logits of the first piece are masked */
    for (int i = 0; i < 3000; ++i) logits[i] = -INFINITY;
    logits[40000] = 20;
    const int32_t label = 30000;
    double sum = 0, top = 20, label_rank = 0;
    for (int i = 0; i < K; ++i) sum += exp(logits[i] - top);
    for (int i = 0; i < K; ++i) label_rank += logits[i] > logits[label];
    /* with -inf a smoothed loss is inf, which is right */
    r.op->spec.smoothing = 0;
    float *y = loss_of(&r, logits, K, &label);
    CU_ASSERT_DOUBLE_EQUAL(y[0], top + log(sum) - logits[label], 1e-4);
    CU_ASSERT_EQUAL(y[1], (float)label_rank);
    CU_ASSERT_EQUAL(y[2], 40000.0f);
    rig_backward(&r);
    double total = 0;
    for (int i = 0; i < K; ++i) total += ((float *)r.run.dx[0])[i];
    CU_ASSERT_DOUBLE_EQUAL(total, 0, 1e-4);
    free(logits);
    rig_close(&r);
}

TEST_MAIN("loss kernels", {"softmax edges", test_softmax_edges},
          {"softmax of mixed labels", test_softmax_mixed},
          {"softmax in an evaluation", test_softmax_evaluated},
          {"softmax over a vocabulary", test_softmax_vocabulary})
