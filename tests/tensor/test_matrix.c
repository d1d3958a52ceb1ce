/* Matrix products: values against sums in double, and the same bits for any number of threads and
 * any place of the matrices in larger ones. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

#include <omp.h>

typedef struct Case {
    /* spare: unused floats between rows */
    int64_t m, n, k, spare;
    bool transposed;
} Case;
static const Case cases[] = {
    {16, 16, 1, 0, false},    {16, 16, 1, 0, true},      {16, 64, 48, 0, true},
    {144, 80, 300, 0, false}, {144, 144, 513, 16, true}, {272, 336, 256, 7, false},
};

typedef struct Matrices {
    float *a, *b, *out;
    MatrixProduct p;
} Matrices;

static float *filled(int64_t n, uint64_t seed)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; ++i) x[i] = (float)rig_random(seed, i);
    return x;
}

static Matrices matrices_of(const Case *c)
{
    int64_t b_rows = c->transposed ? c->n : c->k, b_columns = c->transposed ? c->k : c->n;
    Matrices x = {.a = filled(c->m * (c->k + c->spare), 1),
                  .b = filled(b_rows * (b_columns + c->spare), 2),
                  .out = filled(c->m * (c->n + c->spare), 3)};
    x.p = (MatrixProduct){.out = x.out,
                          .a = x.a,
                          .b = x.b,
                          .m = c->m,
                          .n = c->n,
                          .k = c->k,
                          .out_row = c->n + c->spare,
                          .a_row = c->k + c->spare,
                          .b_row = b_columns + c->spare,
                          .b_transposed = c->transposed};
    return x;
}

static void matrices_fini(Matrices *x)
{
    free(x->a);
    free(x->b);
    free(x->out);
}

/* The error relative to the sum of the terms' magnitudes. */
static double worst_of(const MatrixProduct *p)
{
    double worst = 0;
    for (int64_t i = 0; i < p->m; ++i)
        for (int64_t j = 0; j < p->n; ++j) {
            double sum = 0, size = 1e-30;
            for (int64_t k = 0; k < p->k; ++k) {
                double b =
                    (double)(p->b_transposed ? p->b[j * p->b_row + k] : p->b[k * p->b_row + j]);
                double term = (double)p->a[i * p->a_row + k] * b;
                sum += term;
                size += fabs(term);
            }
            worst = fmax(worst, fabs((double)p->out[i * p->out_row + j] - sum) / size);
        }
    return worst;
}

static void check_case(const FlatTable *flat, Stream *s, const Case *c)
{
    Matrices x = matrices_of(c), again = matrices_of(c);
    size_t bytes = (size_t)(c->m * (c->n + c->spare)) * sizeof(float);
    omp_set_num_threads(1);
    flat->matrix_product(s, &x.p);
    CU_ASSERT(worst_of(&x.p) < 1e-6);
    for (int threads = 2; threads <= 4; ++threads) {
        omp_set_num_threads(threads);
        flat->matrix_product(s, &again.p);
        /* floats between the rows stay unchanged */
        CU_ASSERT(memcmp(x.out, again.out, bytes) == 0);
    }
    omp_set_num_threads(1);
    matrices_fini(&x);
    matrices_fini(&again);
}

static void products(void)
{
    static const char *const isa[] = {"base", "avx2", "avx512"};
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    const char *best = simd_table(DTYPE_F32)->name;
    for (size_t i = 0; i < sizeof isa / sizeof isa[0]; ++i) {
        if (!simd_use(isa[i])) continue;
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k)
            check_case(backend->table->flat, backend->table->stream(backend), &cases[k]);
    }
    CU_ASSERT(simd_use(best));
    backend_close(&backend);
}

/* The columns of a product equal those of a product with fewer columns: the place of a tile does
 * not matter. */
static void parts(void)
{
    const Case c = {32, 96, 300, 0, false};
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    Stream *s = backend->table->stream(backend);
    Matrices x = matrices_of(&c), part = matrices_of(&c);
    backend->table->flat->matrix_product(s, &x.p);
    part.p.b += 48;
    part.p.a += 16 * part.p.a_row;
    part.p.n = 16;
    part.p.m = 16;
    backend->table->flat->matrix_product(s, &part.p);
    for (int i = 0; i < 16; ++i)
        CU_ASSERT(memcmp(part.out + i * c.n, x.out + (16 + i) * c.n + 48, 16 * sizeof(float)) == 0);
    matrices_fini(&x);
    matrices_fini(&part);
    backend_close(&backend);
}

/* A matrix times its transpose, and the square of that: computing one half gives the same bits. */
static void symmetric(void)
{
    enum { N = 272, K = 300 };
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    Stream *s = backend->table->stream(backend);
    float *a = filled(N * K, 4), *gram[2], *square[2];
    for (int half = 0; half < 2; ++half) {
        omp_set_num_threads(half ? 3 : 1);
        gram[half] = filled(N * N, 5);
        square[half] = filled(N * N, 6);
        MatrixProduct p = {.out = gram[half], .a = a, .b = a, .m = N, .n = N, .k = K, .out_row = N};
        p.a_row = p.b_row = K;
        p.b_transposed = true;
        p.symmetric = half;
        backend->table->flat->matrix_product(s, &p);
        p = (MatrixProduct){.out = square[half], .a = gram[half], .b = gram[half], .m = N, .n = N};
        p.k = p.out_row = p.a_row = p.b_row = N;
        p.symmetric = half;
        backend->table->flat->matrix_product(s, &p);
    }
    omp_set_num_threads(1);
    CU_ASSERT(memcmp(gram[0], gram[1], N * N * sizeof *a) == 0);
    CU_ASSERT(memcmp(square[0], square[1], N * N * sizeof *a) == 0);
    for (int half = 0; half < 2; ++half) {
        free(gram[half]);
        free(square[half]);
    }
    free(a);
    backend_close(&backend);
}

TEST_MAIN("matrix products", {"products", products}, {"parts", parts}, {"symmetric", symmetric})
