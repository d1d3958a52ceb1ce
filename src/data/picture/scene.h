/* Chooses where pictures, and with them their boxes, lie in one input of a detector:
 *
 *     letterbox: one picture,     mosaic: four pictures around
 *     whole, centred              a point of a canvas of twice the side
 *
 *     +-----------+               +-----+--------+
 *     | grey      |               |  a  |   b    |
 *     +-----------+               +-----+--------+
 *     |  picture  |               |  c  |   d    |
 *     +-----------+               |     |        |
 *     | grey      |               +-----+--------+
 *     +-----------+
 *
 * In training the canvas is then scaled and shifted at random, and the input is its middle. Each
 * picture is resampled once, straight to its place. A scene is a pure function of (seed, epoch,
 * sample), the sizes of pictures and the keys of `data`: it needs no pixels, so boxes are known on
 * ranks without pictures. The placement is that of YOLOv5 (v7.0), with edges rounded to whole
 * pixels; boxes are placed by the rounded edges. */
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
    /* place: the whole picture, which may reach beyond the input. seen: its visible part, empty if
     * x1 <= x0 or y1 <= y0. */
    SceneBox place, seen;
} ScenePart;

typedef struct Scene {
    int count;
    ScenePart part[SCENE_PARTS];
    /* edges of the canvas, at which boxes are cut */
    SceneBox canvas;
    /* true: training changes the scene, and boxes of which little is left are dropped */
    bool changed;
    /* true: the finished input is mirrored */
    bool flip;
} Scene;

/* Source of scenes: a set, its labels and the keys of `data`; all borrowed. */
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
/* Writes the boxes of a scene as rows of BoxTargets, and returns their number. Boxes around groups
 * are left out. In a changed scene three more kinds are left out: boxes with a side of at most 2
 * pixels, boxes of whose part on the canvas at most a tenth is inside the input, and boxes with one
 * side at least 100 times the other. */
int64_t scene_rows(const SceneSource *source, const Scene *scene, float *row);

#endif
