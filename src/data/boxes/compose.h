/* Composes scenes for tests and demonstrations of detectors: small grey images with classes, such
 * as Fashion-MNIST's, become coloured objects on a cluttered background, with their boxes. A scene
 * is a pure function of (seed, number of the scene, side, images, plain). */
#ifndef WEFT_DATA_COMPOSE_H
#define WEFT_DATA_COMPOSE_H

#include "../data_private.h"

enum {
    /* largest number of objects of a scene that have their own boxes */
    COMPOSE_OBJECTS = 8,
    /* largest number of objects of a heap, which has one box around all of its objects */
    COMPOSE_HEAP = 12,
    /* least and largest side of an object's square, in pixels */
    COMPOSE_SIDE_LEAST = 14,
    COMPOSE_SIDE_MOST = 80,
    /* least value of a pixel that belongs to an object and its box */
    COMPOSE_EDGE = 32
};

typedef struct Composer {
    /* square images of uint8 with one channel and with classes, and their reader; borrowed */
    const DataSet *images;
    Reader *reader;
    /* height and width of a scene in pixels */
    int side;
    uint64_t seed;
    /* true: black background without clutter and noise, for tests */
    bool plain;
} Composer;

typedef struct ComposedObject {
    /* number of its image in Composer.images, and the image's label */
    int64_t image;
    int32_t class;
    /* side of the scaled image, and its corner in the scene; the image may reach beyond the
     * scene */
    int side, x, y;
    /* the box around the object's pixels, in the scene; number of the object's pixels */
    ImageBox box;
    int64_t area;
    uint8_t colour[3];
} ComposedObject;
/* The objects of a scene, from the back to the front: first those of a heap, if any. */
typedef struct Composition {
    /* number of all objects, and of those of the heap */
    int count, heap;
    ComposedObject object[COMPOSE_HEAP + COMPOSE_OBJECTS];
    /* the box around the heap, if any, and number of its pixels */
    ImageBox heap_box;
    int64_t heap_area;
} Composition;

/* Scratch memory of one thread. */
typedef struct ComposeWork ComposeWork;
ComposeWork *compose_work_new(const Composer *composer);
void compose_work_free(ComposeWork **work);
/* Chooses the objects of a scene and their places. ERR_IO, ERR_DATA: an image cannot be read. */
Status compose_plan(const Composer *composer, ComposeWork *work, int64_t scene, Composition *plan);
/* Paints a scene, planned by compose_plan: uint8 (3, side, side), red, green and blue. ERR_IO,
 * ERR_DATA: an image cannot be read. */
Status compose_paint(const Composer *composer, ComposeWork *work, int64_t scene,
                     const Composition *plan, uint8_t *out);

#endif
