/* Chooses where pictures and their boxes lie in one input of a detector:
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
 * The canvas of a letterbox is the input itself. In training the canvas is scaled at random
 * (data.affine_scale) around its centre, which lies at the input's centre, and then shifted at
 * random (data.affine_shift). Each picture is resampled once, directly to its place. A scene is a
 * pure function of (seed, epoch, sample), the sizes of pictures and the keys data.*. It needs no
 * pixels, so ranks without pictures know the boxes, too. Pictures are placed as in YOLOv5 (v7.0),
 * but with edges rounded to whole pixels; boxes are placed by the rounded edges. */
#ifndef WEFT_DATA_SCENE_H
#define WEFT_DATA_SCENE_H

#include "../data_private.h"

enum { SCENE_PARTS = 4 };

/* A rectangle in pixels of the input: [x0, x1) x [y0, y1). */
typedef struct SceneBox {
    int x0, y0, x1, y1;
} SceneBox;

/* A picture in a scene. */
typedef struct ScenePart {
    /* number of the picture's sample */
    int64_t sample;
    /* place: where the complete picture lies; it may reach beyond the input. seen: the visible part
     * of place; it is empty if x1 <= x0 or y1 <= y0. */
    SceneBox place, seen;
} ScenePart;

typedef struct Scene {
    /* number of pictures: 1 or SCENE_PARTS */
    int count;
    ScenePart part[SCENE_PARTS];
    /* where the canvas lies; pictures and boxes are cut at the edges of the canvas and of the
     * input */
    SceneBox canvas;
    /* true: the scene was chosen for training, and scene_is_changed; boxes of which too little is
     * left are then dropped */
    bool changed;
    /* true: the finished input is mirrored */
    bool flip;
} Scene;

/* Set, boxes and configuration from which scenes are chosen; all borrowed. */
typedef struct SceneSource {
    const DataSet *set;
    const Config *config;
    /* boxes of all samples of the set */
    const DataBoxes *boxes;
} SceneSource;

/* Returns whether training changes scenes: data.mosaic, data.affine_scale or data.affine_shift is
 * set. */
bool scene_is_changed(const Config *config);
/* Chooses the scene of a sample. In evaluation it is always the letterbox without scale and
 * shift. */
Scene scene_choose(const SceneSource *source, bool training, int64_t epoch, int64_t sample);
/* Writes the boxes of a scene as rows of BoxTargets, and returns their number. row: memory for
 * data_box_most rows. Boxes around groups are left out. All other boxes are cut at the canvas and
 * at the input. If scene->changed, some boxes are then left out: those with a side of at most 2
 * pixels, those with one side at least 100 times the other, and those that lose nine tenths of
 * their area or more by the cut at the input. */
int64_t scene_rows(const SceneSource *source, const Scene *scene, float *row);

#endif
