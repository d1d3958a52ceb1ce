/* Has the ten types of elements that a data set may have: sizes, names, conversions.
 * element_scale_row is the inner loop of all conversions to float: one multiply-add per value,
 * forwards or mirrored, without a branch, in a form that compilers vectorise. */
#include "../data_private.h"

#include <math.h>

/* X(constant of ELEMENTS in data/array.h, C type, HDF5's type in memory) */
#define INTEGER_TYPES(X)                                                                           \
    X(ELEM_U8, uint8_t, H5T_NATIVE_UINT8)                                                          \
    X(ELEM_I8, int8_t, H5T_NATIVE_INT8)                                                            \
    X(ELEM_U16, uint16_t, H5T_NATIVE_UINT16)                                                       \
    X(ELEM_I16, int16_t, H5T_NATIVE_INT16)                                                         \
    X(ELEM_U32, uint32_t, H5T_NATIVE_UINT32)                                                       \
    X(ELEM_I32, int32_t, H5T_NATIVE_INT32)                                                         \
    X(ELEM_U64, uint64_t, H5T_NATIVE_UINT64)                                                       \
    X(ELEM_I64, int64_t, H5T_NATIVE_INT64)
#define ELEMENT_TYPES(X)                                                                           \
    INTEGER_TYPES(X)                                                                               \
    X(ELEM_F32, float, H5T_NATIVE_FLOAT)                                                           \
    X(ELEM_F64, double, H5T_NATIVE_DOUBLE)

size_t element_bytes(ElementType type)
{
#define X(e, T, native) [e] = sizeof(T),
    static const size_t bytes[] = {ELEMENT_TYPES(X)};
#undef X
    return bytes[type];
}

const char *element_name(ElementType type)
{
    static const char *const name[] = {ELEMENTS(LIST_NAME)};
    return name[type];
}

hid_t element_native(ElementType type)
{
    switch (type) {
#define X(e, T, native)                                                                            \
    case e:                                                                                        \
        return native;
        ELEMENT_TYPES(X)
#undef X
    }
    die("element type %d", (int)type);
}

bool element_is_float(ElementType type)
{
    return type == ELEM_F32 || type == ELEM_F64;
}

int64_t element_integer(ElementType type, const void *p)
{
    if (type == ELEM_U64) {
        uint64_t v = *(const uint64_t *)p;
        return v > INT64_MAX ? INT64_MAX : (int64_t)v;
    }
    switch (type) {
#define X(e, T, native)                                                                            \
    case e:                                                                                        \
        return (int64_t) * (const T *)p;
        ELEMENT_TYPES(X)
#undef X
    }
    die("element type %d", (int)type);
}

char *element_integer_text(ElementType type, const void *p, char text[24])
{
    uint64_t large = type == ELEM_U64 ? *(const uint64_t *)p : 0;
    if (large > INT64_MAX)
        snprintf(text, 24, "%llu", (unsigned long long)large);
    else
        snprintf(text, 24, "%lld", (long long)element_integer(type, p));
    return text;
}

/* any_outside_... returns whether any value is outside 0..below-1; negative values are large as
 * unsigned numbers. int32_... copies values as int32. */
#define X(e, T, native)                                                                            \
    static bool any_outside_##e(const T *from, int64_t n, uint64_t below)                          \
    {                                                                                              \
        bool any = false;                                                                          \
        for (int64_t i = 0; i < n; ++i) any |= (uint64_t)from[i] >= below;                         \
        return any;                                                                                \
    }                                                                                              \
    static void int32_##e(int32_t *to, const T *from, int64_t n)                                   \
    {                                                                                              \
        for (int64_t i = 0; i < n; ++i) to[i] = (int32_t)from[i];                                  \
    }
INTEGER_TYPES(X)
#undef X

int64_t element_find_outside(ElementType type, const void *from, int64_t n, int64_t below)
{
    bool any = false;
    switch (type) {
#define X(e, T, native)                                                                            \
    case e:                                                                                        \
        any = any_outside_##e(from, n, (uint64_t)below);                                           \
        break;
        INTEGER_TYPES(X)
#undef X
    default:
        die("element_find_outside: %s", element_name(type));
    }
    for (int64_t i = 0; any && i < n; ++i) {
        int64_t v = element_integer(type, (const uint8_t *)from + (size_t)i * element_bytes(type));
        if (v < 0 || v >= below) return i;
    }
    return -1;
}

void element_int32(ElementType type, int32_t *to, const void *from, int64_t n)
{
    switch (type) {
#define X(e, T, native)                                                                            \
    case e:                                                                                        \
        int32_##e(to, from, n);                                                                    \
        return;
        INTEGER_TYPES(X)
#undef X
    default:
        die("element_int32: %s", element_name(type));
    }
}

#define X(e, T, native)                                                                            \
    static void row_##e(float *to, int to_step, const T *from, int64_t from_step, int64_t n,       \
                        float a, float b)                                                          \
    {                                                                                              \
        if (to_step == 1 && from_step == 1) {                                                      \
            _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) to[i] = (float)from[i] * a + b;    \
        } else if (from_step == 1) {                                                               \
            _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) to[-i] = (float)from[i] * a + b;   \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; ++i) to[i * to_step] = (float)from[i * from_step] * a + b;  \
        }                                                                                          \
    }
ELEMENT_TYPES(X)
#undef X

void element_scale_row(ElementType type, float *to, int to_step, const void *from,
                       int64_t from_step, int64_t n, float a, float b)
{
    switch (type) {
#define X(e, T, native)                                                                            \
    case e:                                                                                        \
        row_##e(to, to_step, from, from_step, n, a, b);                                            \
        return;
        ELEMENT_TYPES(X)
#undef X
    }
}

/* 0 * v is 0 if v is finite, else NaN, so the sum of all products is 0 or NaN. */
static bool all_finite(ElementType type, const void *from, int64_t n)
{
    float sum = 0;
    int64_t singles = type == ELEM_F32 ? n : 0, doubles = type == ELEM_F64 ? n : 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < singles; ++i) sum += 0.0f * ((const float *)from)[i];
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < doubles; ++i) sum += 0.0f * (float)((const double *)from)[i];
    return sum == 0;
}

void element_ids(ElementType type, uint64_t *to, const void *from, int64_t n)
{
    size_t bytes = element_bytes(type);
    if (bytes == sizeof *to) {
        if (to != from) memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t i = n; i-- > 0;)
        to[i] = (uint64_t)element_integer(type, (const char *)from + (size_t)i * bytes);
}

const char *element_finite_text(ElementType type)
{
    return type == ELEM_F64 ? "a finite number, or beyond what float32 holds" : "a finite number";
}

int64_t element_find_not_finite(ElementType type, const void *from, int64_t n)
{
    if (all_finite(type, from, n)) return -1;
    for (int64_t i = 0; type == ELEM_F32 && i < n; ++i)
        if (!isfinite(((const float *)from)[i])) return i;
    for (int64_t i = 0; type == ELEM_F64 && i < n; ++i)
        if (!isfinite((float)((const double *)from)[i])) return i;
    return -1;
}

/* Copies n values, `step` elements apart, as doubles. */
#define X(e, T, native)                                                                            \
    static void doubles_##e(double *to, const T *from, int64_t step, int64_t n)                    \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; ++i) to[i] = (double)from[i];                               \
        else                                                                                       \
            for (int64_t i = 0; i < n; ++i) to[i] = (double)from[i * step];                        \
    }
ELEMENT_TYPES(X)
#undef X

void element_doubles(ElementType type, double *to, const void *from, int64_t from_step, int64_t n)
{
    switch (type) {
#define X(e, T, native)                                                                            \
    case e:                                                                                        \
        doubles_##e(to, from, from_step, n);                                                       \
        break;
        ELEMENT_TYPES(X)
#undef X
    }
}
