/* Declares scratch memory, random words and scaled images for compose.c and compose_paint.c. */
#ifndef WEFT_DATA_COMPOSE_PRIVATE_H
#define WEFT_DATA_COMPOSE_PRIVATE_H

#include "compose.h"

struct ComposeWork {
    ImageResampler *resampler;
    /* owned: bytes of an image as stored */
    uint8_t *raw;
    /* the image with three equal channels */
    Image image;
    /* the image, scaled to the object's side */
    Image scaled;
    /* owned, (side, side): for each pixel of the scene the number, from 1, of the object that is
     * visible there; 0: none */
    uint8_t *owner;
};

/* Last arguments of rng_key for the three kinds of random numbers of a scene. */
enum { COMPOSE_PLAN = 0x736365, COMPOSE_PAINT, COMPOSE_NOISE };
/* The random words of a key, one after the other. */
typedef struct Draws {
    RngKey key;
    /* index of the next word */
    uint64_t next;
} Draws;
/* Returns the next random word of 32 bits. */
static inline uint32_t draw_word(Draws *d)
{
    return rng_u32(d->key, d->next++);
}

/* Reads an image and scales it to work->scaled, a square of `side` pixels. *class: its label. */
Status compose_load(const Composer *composer, ComposeWork *work, int64_t image, int side,
                    int32_t *class);
/* Returns the value of a pixel of the scaled image, 0 to 255, by which the object is opaque. */
static inline int compose_alpha(const ComposeWork *work, int x, int y)
{
    return work->scaled.pixel[3 * (y * work->scaled.width + x)];
}

#endif
