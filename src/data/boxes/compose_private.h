/* Scratch memory, random words and scaled images, which compose.c and compose_paint.c share. */
#ifndef WEFT_DATA_COMPOSE_PRIVATE_H
#define WEFT_DATA_COMPOSE_PRIVATE_H

#include "compose.h"

struct ComposeWork {
    ImageResampler *resampler;
    /* owned: bytes of an image as stored */
    uint8_t *raw;
    /* the image with three equal channels; the same scaled */
    Image image, scaled;
    /* owned, (side, side): number of the visible object of each pixel, from 1; 0: none */
    uint8_t *owner;
};

/* Last words of the keys (rng_key) of a scene's random numbers. */
enum { COMPOSE_PLAN = 0x736365, COMPOSE_PAINT, COMPOSE_NOISE };
/* The random words of a key, one after the other. */
typedef struct Draws {
    RngKey key;
    uint64_t next;
} Draws;
static inline uint32_t draw_word(Draws *d)
{
    return rng_u32(d->key, d->next++);
}

/* Reads an image and scales it to work->scaled, a square. *class: its label. */
Status compose_load(const Composer *composer, ComposeWork *work, int64_t image, int side,
                    int32_t *class);
/* Returns the value of a pixel of the scaled image, which is the object's opacity, too. */
static inline int compose_alpha(const ComposeWork *work, int x, int y)
{
    return work->scaled.pixel[3 * (y * work->scaled.width + x)];
}

#endif
