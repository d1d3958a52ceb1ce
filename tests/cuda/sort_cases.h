/* Tests the order in which an embedding's gradient adds the tokens of each row: by token, then by
 * position, as after a stable sort on the host. */
#ifndef WEFT_TEST_CUDA_SORT_CASES_H
#define WEFT_TEST_CUDA_SORT_CASES_H

#include "cases.h"
#include "tensor/cuda/cuda_kernels.h"

typedef struct SortCase {
    int64_t count, real, vocab;
    /* all tokens are below this number; less than vocab for a case with many equal tokens */
    int64_t below;
} SortCase;

typedef struct TokenAt {
    int32_t token, at;
} TokenAt;

static int token_before(const void *a, const void *b)
{
    const TokenAt *x = a, *y = b;
    if (x->token != y->token) return x->token < y->token ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void sorted_order(int32_t *order, const int32_t *token, int64_t count)
{
    TokenAt *all = mem_new((size_t)count * sizeof *all);
    for (int64_t i = 0; i < count; ++i) all[i] = (TokenAt){token[i], (int32_t)i};
    qsort(all, (size_t)count, sizeof *all, token_before);
    for (int64_t i = 0; i < count; ++i) order[i] = all[i].at;
    mem_free(&all);
}

/* Checks the sums of the rows' gradients. Gradients are small integers, so every sum is exact in
 * any order. */
static void check_sums(const SortCase *c, const int32_t *token, const float *dy, const float *dw)
{
    float *sum = mem_new((size_t)c->vocab * sizeof *sum);
    int64_t wrong = 0;
    for (int64_t i = 0; i < c->real; ++i) sum[token[i]] += dy[i];
    for (int64_t i = 0; i < c->vocab; ++i) wrong += dw[i] != sum[i];
    CU_ASSERT_EQUAL(wrong, 0);
    mem_free(&sum);
}

static void check_sort(const SortCase *c)
{
    Rig rig = {.backend = gpu};
    size_t n = (size_t)c->count, vocab = (size_t)c->vocab;
    size_t scratch = (size_t)cuda_sort_scratch(c->count) * sizeof(int32_t);
    int32_t *token = mem_new(n * sizeof *token), *order = mem_new(n * sizeof *order);
    int32_t *expected = mem_new(n * sizeof *expected);
    float *dy = mem_new(n * sizeof *dy), *dw = mem_new(vocab * sizeof *dw);
    fill_tokens(token, c->count, c->below);
    for (size_t i = 0; i < n; ++i) dy[i] = (float)(i % 5) - 2;
    sorted_order(expected, token, c->real);
    EmbeddingRun run = {.type = DTYPE_F32,
                        .tokens = rig_alloc(&rig, n * sizeof *token),
                        .dy = rig_alloc(&rig, n * sizeof *dy),
                        .dw = rig_alloc(&rig, vocab * sizeof *dw),
                        .order = rig_alloc(&rig, scratch),
                        .count = c->count,
                        .real = c->real,
                        .width = 1,
                        .rows = c->vocab,
                        .vocab = c->vocab};
    rig_copy(&rig, (void *)(uintptr_t)run.tokens, token, n * sizeof *token);
    rig_copy(&rig, (void *)(uintptr_t)run.dy, dy, n * sizeof *dy);
    CU_ASSERT_EQUAL(
        launch_embedding_backward(gpu->table->stream_handle(gpu->table->stream(gpu)), run), 0);
    rig_copy(&rig, order, run.order, (size_t)c->real * sizeof *order);
    rig_copy(&rig, dw, run.dw, vocab * sizeof *dw);
    bool same = memcmp(order, expected, (size_t)c->real * sizeof *order) == 0;
    if (!same)
        printf("  %lld tokens of %lld: another order\n", (long long)c->real, (long long)c->vocab);
    CU_ASSERT_TRUE(same);
    check_sums(c, token, dy, dw);
    rig_release(&rig, run.tokens, n * sizeof *token);
    rig_release(&rig, run.dy, n * sizeof *dy);
    rig_release(&rig, run.dw, vocab * sizeof *dw);
    rig_release(&rig, run.order, scratch);
    mem_free(&token);
    mem_free(&order);
    mem_free(&expected);
    mem_free(&dy);
    mem_free(&dw);
}

static void test_sort(void)
{
    static const SortCase cases[] = {
        {1, 1, 1, 1},
        {1000, 1, 300, 300},
        {255, 255, 255, 255},
        {256, 256, 256, 256},
        {1025, 1024, 257, 257},
        {5000, 4999, 65535, 65535},
        {5000, 5000, 65536, 65536},
        {20000, 17777, 50257, 50257},
        {20000, 20000, 50257, 3},
        {4000, 4000, 1 << 24, 1 << 24},
    };
    /* The scratch of the second case is for 524,289 tokens, whose tiles have more than 1,024
     * tokens. One token less is sorted, in a larger number of tiles of 1,024 tokens. */
    static const SortCase large[] = {{262144, 262144, 50257, 50257},
                                     {524289, 524288, 128256, 128256}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) check_sort(&cases[i]);
    for (size_t i = 0; full && i < sizeof large / sizeof *large; ++i) check_sort(&large[i]);
}

/* The counts of all tiles fit in the scratch for `count` tokens, if any number of tokens up to
 * `count` is sorted. */
static void test_sort_scratch(void)
{
    for (int64_t count = 1; count < (INT64_C(1) << 31); count += count / 3 + 1)
        for (int64_t real = count; real > 0; real -= real / 5 + 1) {
            int64_t tile = cuda_sort_tile(real), blocks = (real + tile - 1) / tile;
            CU_ASSERT(tile % CUDA_THREADS == 0 && blocks <= CUDA_SORT_BLOCKS);
            CU_ASSERT(2 * count + blocks * CUDA_SORT_DIGITS <= cuda_sort_scratch(count));
        }
}

#endif
