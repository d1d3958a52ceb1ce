/* Chooses the scenes of a detector, which scene.h describes, and places their boxes. */
#include "scene.h"

#include <math.h>
#include <string.h>

bool scene_is_changed(const Config *config)
{
    const Config *c = config;
    return c->data.mosaic > 0 || c->data.affine_scale.count > 0 || c->data.affine_shift > 0;
}

/* Map from canvas to input: input = scale * (canvas - centre) + side / 2 + shift. */
typedef struct Affine {
    /* shift: in pixels of the input, for x and y; centre: of the canvas, equal for x and y */
    double scale, shift[2], centre;
    /* side of the input in pixels */
    int side;
} Affine;

/* Maps the coordinate `at` of the canvas, x for axis 0 and y for axis 1, to a pixel edge of the
 * input. */
static int affine_edge(const Affine *a, int axis, double at)
{
    return (int)floor(a->scale * (at - a->centre) + 0.5 * a->side + a->shift[axis] + 0.5);
}

/* Draws scale and shift. changed: Scene.changed; if it is false, scale is 1 and shift 0. side: of
 * the input. */
static Affine affine_draw(const Config *c, RngKey key, bool changed, int side, bool mosaic)
{
    Affine a = {.scale = 1, .centre = mosaic ? side : 0.5 * side, .side = side};
    uint32_t r[4];
    if (!changed) return a;
    rng_block(key, DRAW_AFFINE, r);
    const double *scale = c->data.affine_scale.value, shift = c->data.affine_shift;
    if (c->data.affine_scale.count) a.scale = draw_between(r[0], scale[0], scale[1]);
    for (int axis = 0; axis < 2; ++axis)
        a.shift[axis] = side * draw_between(r[1 + axis], -shift, shift);
    return a;
}

static SceneBox affine_box(const Affine *a, ImageBox at)
{
    return (SceneBox){affine_edge(a, 0, at.x), affine_edge(a, 1, at.y),
                      affine_edge(a, 0, at.x + at.width), affine_edge(a, 1, at.y + at.height)};
}

static int clip(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

/* Adds a picture, which lies in the rectangle `at` of the canvas, to the scene. */
static void add_part(Scene *scene, const Affine *a, int64_t sample, ImageBox at)
{
    ScenePart *p = &scene->part[scene->count++];
    const SceneBox *edge = &scene->canvas;
    p->sample = sample;
    p->place = affine_box(a, at);
    if (p->place.x1 <= p->place.x0) p->place.x1 = p->place.x0 + 1;
    if (p->place.y1 <= p->place.y0) p->place.y1 = p->place.y0 + 1;
    const int left = edge->x0 > 0 ? edge->x0 : 0, top = edge->y0 > 0 ? edge->y0 : 0;
    const int right = edge->x1 < a->side ? edge->x1 : a->side;
    const int bottom = edge->y1 < a->side ? edge->y1 : a->side;
    p->seen = (SceneBox){clip(p->place.x0, left, right), clip(p->place.y0, top, bottom),
                         clip(p->place.x1, left, right), clip(p->place.y1, top, bottom)};
}

/* Adds four pictures around a random point of the canvas: this sample at one of the four places,
 * chosen at random, and three random samples. */
static void add_mosaic(const SceneSource *s, Scene *scene, const Affine *a, RngKey key,
                       int64_t sample)
{
    uint32_t point[4], partner[4];
    int64_t order[SCENE_PARTS] = {sample};
    rng_block(key, DRAW_MOSAIC, point);
    rng_block(key, DRAW_PARTNERS, partner);
    const int side = a->side;
    const int x = side / 2 + (int)draw_below(point[1], side);
    const int y = side / 2 + (int)draw_below(point[2], side);
    for (int i = 1; i < SCENE_PARTS; ++i) order[i] = draw_below(partner[i - 1], s->set->samples);
    const int own = (int)draw_below(point[3], SCENE_PARTS);
    order[0] = order[own];
    order[own] = sample;
    for (int i = 0; i < SCENE_PARTS; ++i) {
        const int32_t *size = s->boxes->size + 2 * order[i];
        ImageBox at = letterbox(size[1], size[0], side);
        at.x = i % 2 ? x : x - at.width;
        at.y = i / 2 ? y : y - at.height;
        add_part(scene, a, order[i], at);
    }
}

Scene scene_choose(const SceneSource *source, bool training, int64_t epoch, int64_t sample)
{
    const SceneSource *s = source;
    const Config *c = s->config;
    const int side = (int)s->set->height;
    const RngKey key = augment_key(c, epoch, sample);
    Scene scene = {.changed = training && scene_is_changed(c),
                   .flip = training && augment_flips(c, epoch, sample)};
    uint32_t r[4];
    rng_block(key, DRAW_MOSAIC, r);
    const bool mosaic = training && draw_between(r[0], 0, 1) < c->data.mosaic;
    const Affine a = affine_draw(c, key, scene.changed, side, mosaic);
    const int canvas = mosaic ? 2 * side : side;
    scene.canvas = affine_box(&a, (ImageBox){0, 0, canvas, canvas});
    if (mosaic) {
        add_mosaic(s, &scene, &a, key, sample);
        return scene;
    }
    const int32_t *size = s->boxes->size + 2 * sample;
    add_part(&scene, &a, sample, letterbox(size[1], size[0], side));
    return scene;
}

/* ---- boxes ---- */

static double clip_real(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static void cut_at(double edge[4], const SceneBox *box)
{
    for (int i = 0; i < 4; i += 2) {
        edge[i] = clip_real(edge[i], box->x0, box->x1);
        edge[i + 1] = clip_real(edge[i + 1], box->y0, box->y1);
    }
}

/* Moves a box of a picture to its place in the scene. size: height and width of the picture; box:
 * x, y, width and height in pixels of the picture; edge: left, top, right and bottom in the
 * input. */
static void place_box(const SceneBox *place, const int32_t size[2], const double box[4],
                      double edge[4])
{
    const double x = (double)(place->x1 - place->x0) / size[1];
    const double y = (double)(place->y1 - place->y0) / size[0];
    edge[0] = place->x0 + box[0] * x;
    edge[1] = place->y0 + box[1] * y;
    edge[2] = place->x0 + (box[0] + box[2]) * x;
    edge[3] = place->y0 + (box[1] + box[3]) * y;
}

/* Returns whether enough of a box is left. area: of the box before it was cut at the input's
 * edges. */
static bool is_kept(const double edge[4], double area)
{
    const double side_least = 2, area_least = 0.1, ratio_most = 100, none = 1e-16;
    const double width = edge[2] - edge[0], height = edge[3] - edge[1];
    return width > side_least && height > side_least &&
           width * height > area_least * (area + none) && width < ratio_most * height &&
           height < ratio_most * width;
}

int64_t scene_rows(const SceneSource *source, const Scene *scene, float *row)
{
    const DataBoxes *b = source->boxes;
    const int side = (int)source->set->height;
    const SceneBox input = {0, 0, side, side};
    int64_t count = 0;
    for (int i = 0; i < scene->count; ++i) {
        const ScenePart *p = &scene->part[i];
        for (int64_t k = b->start[p->sample]; k < b->start[p->sample + 1]; ++k) {
            double edge[4];
            if (b->crowd[k]) continue;
            place_box(&p->place, b->size + 2 * p->sample, b->box + 4 * k, edge);
            cut_at(edge, &scene->canvas);
            const double area = (edge[2] - edge[0]) * (edge[3] - edge[1]);
            cut_at(edge, &input);
            if (scene->changed && !is_kept(edge, area)) continue;
            const double x = (edge[0] + edge[2]) / 2 / side;
            float *to = row + count++ * BOX_NUMBERS;
            to[BOX_CLASS] = (float)b->class[k];
            to[BOX_X] = (float)(scene->flip ? 1 - x : x);
            to[BOX_Y] = (float)((edge[1] + edge[3]) / 2 / side);
            to[BOX_W] = (float)((edge[2] - edge[0]) / side);
            to[BOX_H] = (float)((edge[3] - edge[1]) / side);
        }
    }
    return count;
}
