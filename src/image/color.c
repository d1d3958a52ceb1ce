/* Changes brightness, contrast, saturation and hue, with the same bytes as Pillow; written from the
 * description of its enhancers and its HSV conversion. A blend is computed in single precision,
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

/* Blends every byte with the same value, by a table of the 256 results. */
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

/* Computes hue and saturation of a pixel whose channels are not all equal; most, least: largest and
 * smallest channel. */
static void to_hsv(const uint8_t *p, int most, int least, int *hue, int *saturation)
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
    h = (float)fmod(h / 6.0 + 1.0, 1.0);
    *hue = clip8((int)(h * 255.0));
    *saturation = clip8((int)(s * 255.0));
}

static void from_hsv(uint8_t *out, int hue, int saturation, int value)
{
    double h = hue * 6.0 / 255.0, f, s = saturation / 255.0;
    int i = (int)floor(h);
    f = h - i;
    uint8_t v = (uint8_t)value;
    uint8_t p = (uint8_t)clip8((int)round(value * (1.0 - s)));
    uint8_t q = (uint8_t)clip8((int)round(value * (1.0 - s * f)));
    uint8_t t = (uint8_t)clip8((int)round(value * (1.0 - s * (1.0 - f))));
    const uint8_t sector[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    for (int c = 0; c < 3; ++c) out[c] = sector[i % 6][c];
}

void image_hue(Image *image, int shift)
{
    for (int64_t i = 0, n = pixel_count(image); i < n; ++i) {
        uint8_t *p = image->pixel + 3 * i;
        int most = p[0] > p[1] ? p[0] : p[1], least = p[0] < p[1] ? p[0] : p[1];
        most = p[2] > most ? p[2] : most;
        least = p[2] < least ? p[2] : least;
        /* A grey pixel has no hue. */
        if (most == least) continue;
        int hue, saturation;
        to_hsv(p, most, least, &hue, &saturation);
        if (saturation > 0)
            from_hsv(p, (hue + shift) & 255, saturation, most);
        else
            p[0] = p[1] = p[2] = (uint8_t)most;
    }
}
