/* Composes scenes for tests and demonstrations of detectors. Small grey images with classes, such
 * as Fashion-MNIST's, become coloured objects with boxes on a cluttered background. A scene depends
 * only on the members of its Composer and on its number. */
#ifndef WEFT_DATA_COMPOSE_H
#define WEFT_DATA_COMPOSE_H

#include "../data_private.h"

enum {
    /* largest number of objects of a scene that have their own boxes */
    COMPOSE_OBJECTS = 8,
    /* largest number of objects of a heap, which has one box around all of its objects */
    COMPOSE_HEAP = 12,
    /* smallest and largest side of an object's scaled image, in pixels */
    COMPOSE_SIDE_LEAST = 14,
    COMPOSE_SIDE_MOST = 80,
    /* smallest value of a pixel of the scaled image that belongs to the object and its box */
    COMPOSE_EDGE = 32
};

typedef struct Composer {
    /* set of square images of uint8 with one channel and with classes; borrowed */
    const DataSet *images;
    /* reader of `images`; borrowed */
    Reader *reader;
    /* height and width of a scene in pixels */
    int side;
    uint64_t seed;
    /* true: the background is black, without clutter and noise, for tests */
    bool plain;
} Composer;

typedef struct ComposedObject {
    /* number of its image in Composer.images */
    int64_t image;
    /* label of its image */
    int32_t class;
    /* side of the scaled image in pixels */
    int side;
    /* upper left corner of the scaled image in the scene; the image may reach beyond the scene */
    int x, y;
    /* box around the object's pixels, in the scene */
    ImageBox box;
    /* number of the object's pixels */
    int64_t area;
    uint8_t colour[3];
} ComposedObject;
/* The objects of a scene. */
typedef struct Composition {
    /* number of all objects */
    int count;
    /* number of objects of the heap; 0: there is none */
    int heap;
    /* the objects from the back to the front, [count]; the objects of the heap come first */
    ComposedObject object[COMPOSE_HEAP + COMPOSE_OBJECTS];
    /* box around the heap */
    ImageBox heap_box;
    /* number of pixels of the heap */
    int64_t heap_area;
} Composition;

/* Scratch memory of one thread. */
typedef struct ComposeWork ComposeWork;
ComposeWork *compose_work_new(const Composer *composer);
void compose_work_free(ComposeWork **work);
/* Chooses the objects of a scene and their places. ERR_IO, ERR_DATA: an image cannot be read. */
Status compose_plan(const Composer *composer, ComposeWork *work, int64_t scene, Composition *plan);
/* Paints a scene that compose_plan has planned. out: uint8 (3, side, side); the planes are red,
 * green and blue. ERR_IO, ERR_DATA: an image cannot be read. */
Status compose_paint(const Composer *composer, ComposeWork *work, int64_t scene,
                     const Composition *plan, uint8_t *out);

#endif
