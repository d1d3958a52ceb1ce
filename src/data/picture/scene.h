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
 * In training the canvas is scaled (data.affine_scale) around its centre, which is the input's
 * centre, and then shifted (data.affine_shift), both at random. Each picture is resampled once,
 * straight to its place. A scene is a pure function of (seed, epoch, sample), the sizes of pictures
 * and the keys of `data`: it needs no pixels, so boxes are known on ranks without pictures. The
 * placement is that of YOLOv5 (v7.0), with edges rounded to whole pixels; boxes are placed by the
 * rounded edges. */
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
    /* the canvas in pixels of the input; pictures and boxes are cut at its edges and at the
     * input's */
    SceneBox canvas;
    /* true: in training, and scene_is_changed(config); boxes of which little is left are dropped */
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

/* Can training change scenes: is data.mosaic, data.affine_scale or data.affine_shift set? */
bool scene_is_changed(const Config *config);
/* Chooses the scene of a sample; in evaluation it is always the unchanged letterbox. */
Scene scene_choose(const SceneSource *source, bool training, int64_t epoch, int64_t sample);
/* Writes the boxes of a scene as rows of BoxTargets, and returns their number. row: space for
 * data_box_most rows. Boxes around groups are left out. If scene->changed, boxes are also left out
 * after they have been cut at the canvas and at the input: if a side has at most 2 pixels, if one
 * side is at least 100 times the other, or if cutting at the input has left at most a tenth of the
 * area. */
int64_t scene_rows(const SceneSource *source, const Scene *scene, float *row);

#endif
