/* Where pictures lie in one input of a detector, and with them their boxes:
 *
 *     letterbox: one picture,         mosaic: four pictures around a      then, in training, both are
 *     whole, centred                  point, cut at a canvas twice        scaled and shifted at random
 *                                     as large
 *     +-----------+                   +-----+--------+
 *     | grey      |                   |  a  |   b    |                    input = a part of the canvas,
 *     +-----------+                   +-----+--------+                    or the canvas with a margin
 *     |  picture  |                   |  c  |   d    |
 *     +-----------+                   |     |        |
 *     | grey      |                   +-----+--------+
 *     +-----------+
 *
 * Each picture is resampled once, straight to its place. A scene is a pure function of (seed, epoch,
 * sample), the sizes of pictures and the keys of `data`: it needs no pixels, so that boxes are known
 * on ranks without pictures. The placement is YOLOv5's (v7.0), with edges rounded to whole pixels,
 * which boxes follow. */
#ifndef WEFT_DATA_SCENE_H
#define WEFT_DATA_SCENE_H

#include "../data_private.h"

enum { SCENE_PARTS = 4 };

/* A rectangle in pixels of the input: [x0, x1) x [y0, y1). */
typedef struct SceneBox {
    int x0, y0, x1, y1;
} SceneBox;

typedef struct ScenePart {
    int64_t sample;
    /* the whole picture, which may reach beyond the input; its part that is seen, x1 <= x0 or
     * y1 <= y0: nothing */
    SceneBox place, seen;
} ScenePart;

typedef struct Scene {
    int count;
    ScenePart part[SCENE_PARTS];
    /* edges of the canvas, at which boxes are cut */
    SceneBox canvas;
    /* training changes the scene: boxes of which little is left are dropped */
    bool changed;
    /* the finished input is mirrored */
    bool flip;
} Scene;

/* What scenes of a set depend on; all borrowed. */
typedef struct SceneSource {
    const DataSet *set;
    const Config *config;
    /* labels of the set */
    const DataBoxes *boxes;
} SceneSource;

/* Does training change scenes by these keys? */
bool scene_is_changed(const Config *config);
/* Chooses the scene of a sample: in evaluation the letterbox. */
Scene scene_choose(const SceneSource *source, bool training, int64_t epoch, int64_t sample);
/* Returns the largest number of rows of a scene. */
int64_t scene_rows_most(const SceneSource *source, bool training);
/* Writes the boxes of a scene, and returns their number: float[][5], class, and centre and size as
 * fractions of the input. Boxes around groups are left out. In a changed scene boxes are also left
 * out of which a side has at most 2 pixels, or of which at most a tenth is inside the input, or with
 * one side at least 100 times the other. */
int64_t scene_rows(const SceneSource *source, const Scene *scene, float *row);

#endif
