/* fp16 on the host: only conversions, no arithmetic. */
#include "tensor.h"

#include <math.h>

enum {
    /* bits of the fraction */
    F16_FRACTION = 10,
    F16_BIAS = 15,
    /* exponent of infinity and NaN */
    F16_EXPONENT_MAX = 31
};

float f16_value(F16 x)
{
    int exponent = x.bits >> F16_FRACTION & F16_EXPONENT_MAX, fraction = x.bits & 0x3ff;
    float value = exponent == 0 ? ldexpf((float)fraction, 1 - F16_BIAS - F16_FRACTION)
                  : exponent < F16_EXPONENT_MAX
                      ? ldexpf((float)(fraction | 0x400), exponent - F16_BIAS - F16_FRACTION)
                  : fraction ? NAN
                             : INFINITY;
    return x.bits & 0x8000 ? -value : value;
}

/* Rounds to nearest, ties to even. A normal number is rounded by adding half a unit in the last
 * place or, if the last place is even, just less. A carry out of the fraction increments the
 * exponent, which gives the correct result. NaN becomes a quiet NaN. */
F16 f16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu, half;
    if (size > 0x7f800000u)
        half = 0x7e00u;
    else if (size >= 0x477ff000u) /* 65520 and above round to infinity */
        half = 0x7c00u;
    else if (size < 0x38800000u) /* below 2^-14: denormal, a multiple of 2^-24 */
        half = (uint32_t)rintf(ldexpf(fabsf(value), F16_BIAS - 1 + F16_FRACTION));
    else
        half = (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
    return (F16){(uint16_t)(sign | half)};
}
