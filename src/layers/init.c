/* Computes initial values. The values of a parameter are a pure function of the seed, the
 * parameter's full name and the element's index in plain order, so that neither layouts nor grids
 * change them. The values of a row of a sparse table are a pure function of the seed, the table,
 * the id and the column. */
#include "layers.h"

#include <math.h>

/* Number of inputs of each output (fan_in), and number of outputs of each input (fan_out). */
typedef struct Fan {
    double in, out;
} Fan;

/* Computes fan_in and fan_out from the shape of a weight by PyTorch's rule: the dimensions after
 * the second are the receptive field, and groups do not affect fan_out. */
static Fan fan_of(Shape w)
{
    double field = (double)(w.dim[2] * w.dim[3]);
    if (w.ndim < 2) return (Fan){(double)w.dim[0], (double)w.dim[0]};
    return (Fan){(double)w.dim[1] * field, (double)w.dim[0] * field};
}

static void fill(float *out, int64_t n, float value)
{
    for (int64_t i = 0; i < n; ++i) out[i] = value;
}

static void round_to_fp16(float *out, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) out[i] = f16_value(f16_of(out[i]));
}

/* Fills `out` with numbers from U(-bound, bound). */
static void fill_uniform(float *out, int64_t n, RngKey key, float bound)
{
    uint32_t word[4];
    for (int64_t i = 0; i < n; ++i) {
        if (i % 4 == 0) rng_block(key, (uint64_t)i / 4, word);
        out[i] = (2.0f * rng_unit(word[i % 4]) - 1.0f) * bound;
    }
}

/* Sets the four numbers of a block, out[4 * block] .. out[4 * block + 3], to numbers from N(0,
 * deviation^2). The last block may be shorter: `out` has n numbers. */
static void normal_block(float *out, int64_t n, RngKey key, int64_t block, float deviation)
{
    float normal[4];
    rng_normals(key, (uint64_t)block, normal);
    for (int64_t i = 4 * block; i < n && i < 4 * block + 4; ++i) out[i] = normal[i % 4] * deviation;
}

static void fill_normal(float *out, int64_t n, RngKey key, float deviation)
{
#pragma omp parallel for
    for (int64_t block = 0; block < (n + 3) / 4; ++block)
        normal_block(out, n, key, block, deviation);
}

void layer_param_init(const LayerParam *param, const OpSpec *spec, int i, const char *name,
                      uint64_t seed, float *out)
{
    Fan fan = fan_of(spec->w[i]);
    int64_t n = shape_count(spec->w[i]);
    RngKey key = rng_key(seed, RNG_INIT, hash_text(name), 0);
    switch (param->init) {
    case INIT_UNSET:
    case INITS:
        die("%s: no initialiser", name);
    case INIT_ZERO:
        fill(out, n, 0.0f);
        break;
    case INIT_ONE:
        fill(out, n, 1.0f);
        break;
    case INIT_UNIFORM:
    case INIT_UNIFORM_FP16:
        fill_uniform(out, n, key,
                     (float)(1.0 / sqrt(param->scale > 0 ? (double)param->scale : fan.in)));
        break;
    case INIT_HE_NORMAL:
        fill_normal(out, n, key, (float)sqrt(2.0 / fan.out));
        break;
    case INIT_NORMAL:
        fill_normal(out, n, key, param->scale);
        break;
    }
    for (int64_t k = 0; param->add && k < n; ++k)
        out[k] = (float)((double)out[k] + param->add(spec, k));
    if (param->init == INIT_UNIFORM_FP16) round_to_fp16(out, n);
}

void layer_row_init(Init init, float scale, uint64_t seed, uint64_t table, uint64_t id, int width,
                    float *out)
{
    RngKey key = rng_key(seed, RNG_TABLE, table, id);
    switch (init) {
    case INIT_UNSET:
    case INITS:
        die("a sparse table: no initialiser");
    case INIT_ZERO:
        fill(out, width, 0.0f);
        break;
    case INIT_ONE:
        fill(out, width, 1.0f);
        break;
    case INIT_UNIFORM:
        fill_uniform(out, width, key, scale);
        break;
    case INIT_UNIFORM_FP16:
        fill_uniform(out, width, key, scale);
        round_to_fp16(out, width);
        break;
    case INIT_HE_NORMAL:
    case INIT_NORMAL:
        /* a row is too short for threads */
        for (int64_t block = 0; 4 * block < width; ++block)
            normal_block(out, width, key, block, scale);
        break;
    }
}
