/* Changes brightness, contrast, saturation and hue, with the same bytes as Pillow's module
 * ImageEnhance and Pillow's conversion to HSV and back. A blend is computed in single precision,
 * clamped and truncated; the grey of a pixel is a sum in fixed point; hue, saturation and value
 * have one byte each. */
#include "image.h"

#include <math.h>

static int64_t pixel_count(const Image *image)
{
    return (int64_t)image->width * image->height;
}

static inline uint8_t blend(int from, int to, float share)
{
    float v = (float)from + share * (float)(to - from);
    return (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v);
}

static inline uint8_t grey(const uint8_t *p)
{
    return (uint8_t)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
}

/* Replaces each byte b by other + factor * (b - other): factor 0 gives `other`, factor 1 leaves b
 * unchanged. Uses a table of the 256 results. */
static void blend_with(Image *image, int other, float factor)
{
    uint8_t table[256];
    for (int i = 0; i < 256; ++i) table[i] = blend(other, i, factor);
    for (int64_t i = 0, n = 3 * pixel_count(image); i < n; ++i)
        image->pixel[i] = table[image->pixel[i]];
}

void image_brightness(Image *image, float factor)
{
    blend_with(image, 0, factor);
}

void image_contrast(Image *image, float factor)
{
    int64_t sum = 0, n = pixel_count(image);
    for (int64_t i = 0; i < n; ++i) sum += grey(image->pixel + 3 * i);
    blend_with(image, (int)((double)sum / (double)n + 0.5), factor);
}

void image_saturation(Image *image, float factor)
{
    for (int64_t i = 0, n = pixel_count(image); i < n; ++i) {
        uint8_t *p = image->pixel + 3 * i;
        int g = grey(p);
        for (int c = 0; c < 3; ++c) p[c] = blend(g, p[c], factor);
    }
}

static inline int clip8(int v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* Computes hue and saturation of a pixel whose channels are not all equal. most, least: its largest
 * and its smallest channel. */
static inline void to_hsv(const uint8_t *p, int most, int least, int *hue, int *saturation)
{
    float range = (float)(most - least), s = range / (float)most;
    float r = (float)(most - p[0]) / range, g = (float)(most - p[1]) / range;
    float b = (float)(most - p[2]) / range, h;
    if (p[0] == most)
        h = b - g;
    else if (p[1] == most)
        h = (float)(2.0 + r - b);
    else
        h = (float)(4.0 + g - r);
    /* h is from -1 to 5, so h / 6 + 1 is at least 5/6 and below 2; h becomes h / 6 modulo 1 */
    double turn = h / 6.0 + 1.0;
    h = (float)(turn >= 1 ? turn - 1 : turn);
    *hue = clip8((int)(h * 255.0));
    *saturation = clip8((int)(s * 255.0));
}

typedef struct Hue {
    /* position in the sector, from 0 to below 1 */
    double position;
    /* one of the six sectors of the colour circle */
    int sector;
} Hue;

/* Rounds a number from 0 to 255; halves are rounded up. */
static inline uint8_t to_byte(double v)
{
    int below = (int)v;
    return (uint8_t)(below + (v - below >= 0.5));
}

static inline void from_hsv(uint8_t *out, Hue hue, double saturation, int value)
{
    /* for each sector, the levels (V, T, P or Q) of red, green and blue */
    enum { V, T, P, Q };
    static const uint8_t channel[6][3] = {{V, T, P}, {Q, V, P}, {P, V, T},
                                          {P, Q, V}, {T, P, V}, {V, P, Q}};
    const double s = saturation, f = hue.position;
    const uint8_t level[] = {[V] = (uint8_t)value,
                             [T] = to_byte(value * (1.0 - s * (1.0 - f))),
                             [P] = to_byte(value * (1.0 - s)),
                             [Q] = to_byte(value * (1.0 - s * f))};
    for (int c = 0; c < 3; ++c) out[c] = level[channel[hue.sector][c]];
}

void image_hue(Image *image, int shift)
{
    Hue hues[256];
    double fraction[256];
    for (int i = 0; i < 256; ++i) {
        double h = i * 6.0 / 255.0;
        hues[i] = (Hue){.position = h - floor(h), .sector = (int)floor(h) % 6};
        fraction[i] = i / 255.0;
    }
    for (int64_t i = 0, n = pixel_count(image); i < n; ++i) {
        uint8_t *p = image->pixel + 3 * i;
        int most = p[0] > p[1] ? p[0] : p[1], least = p[0] < p[1] ? p[0] : p[1];
        most = p[2] > most ? p[2] : most;
        least = p[2] < least ? p[2] : least;
        /* a grey pixel has no hue */
        if (most == least) continue;
        int hue, saturation;
        to_hsv(p, most, least, &hue, &saturation);
        if (saturation > 0)
            from_hsv(p, hues[(hue + shift) & 255], fraction[saturation], most);
        else
            p[0] = p[1] = p[2] = (uint8_t)most;
    }
}
