/* Chooses the objects of a scene and their places. At least half of each object stays visible, and
 * two boxes have an IoU of at most 0.3. Of a hundred scenes, about five have no object, and about
 * three have a heap: many objects close together, with one box around all of them. Objects of a
 * heap may be covered completely. */
#include "compose_private.h"

#include <math.h>
#include <string.h>

enum {
    /* number of places that are tried for an object before it is left out */
    TRIES = 20,
    /* smallest number of objects of a heap */
    HEAP_LEAST = 6,
    /* largest side of the scaled image of a heap's object, in pixels */
    HEAP_SIDE = 24,
    /* largest distance, along an axis, between the corner of an object's box and the random place
     * of the heap, in pixels */
    HEAP_SPREAD = 20,
    /* percentage of scenes that are empty */
    EMPTY_PERCENT = 5,
    /* percentage of scenes that have a heap, if they are not empty */
    HEAP_PERCENT = 3
};
static const double IOU_MOST = 0.3;

ComposeWork *compose_work_new(const Composer *composer)
{
    ComposeWork *w = mem_new(sizeof *w);
    size_t pixels = (size_t)composer->side * (size_t)composer->side;
    w->resampler = image_resampler_new();
    w->raw = mem_new((size_t)composer->images->x.sample_bytes);
    w->owner = mem_new(pixels);
    return w;
}

void compose_work_free(ComposeWork **work)
{
    ComposeWork *w = *work;
    if (!w) return;
    image_resampler_free(&w->resampler);
    image_fini(&w->image);
    image_fini(&w->scaled);
    mem_free(&w->raw);
    mem_free(&w->owner);
    mem_free(work);
}

Status compose_load(const Composer *composer, ComposeWork *w, int64_t image, int side,
                    int32_t *class)
{
    int from = (int)composer->images->stored_height;
    TRY(reader_get(composer->reader, image, w->raw, class, NULL));
    image_set_size(&w->image, from, from);
    for (int i = 0; i < from * from; ++i) memset(w->image.pixel + 3 * i, w->raw[i], 3);
    image_set_size(&w->scaled, side, side);
    image_resample(w->resampler, &w->image, (ImageBox){0, 0, from, from}, &w->scaled,
                   IMAGE_BILINEAR);
    return OK;
}

/* Sets the box and the area of an object by the scaled image. The corner of the image is at (0, 0)
 * of the scene until move_box moves it. */
static void find_box(const ComposeWork *w, ComposedObject *o)
{
    int x0 = o->side, y0 = o->side, x1 = -1, y1 = -1;
    o->area = 0;
    for (int y = 0; y < o->side; ++y) {
        for (int x = 0; x < o->side; ++x) {
            if (compose_alpha(w, x, y) < COMPOSE_EDGE) continue;
            ++o->area;
            if (x < x0) x0 = x;
            if (x > x1) x1 = x;
            if (y < y0) y0 = y;
            y1 = y;
        }
    }
    o->box = (ImageBox){x0, y0, x1 - x0 + 1, y1 - y0 + 1};
}

static void choose_colour(Draws *d, uint8_t colour[3])
{
    double part[3], most = 0, gain = draw_between(draw_word(d), 0.5, 1);
    for (int i = 0; i < 3; ++i) {
        part[i] = draw_between(draw_word(d), 0.3, 1);
        if (part[i] > most) most = part[i];
    }
    for (int i = 0; i < 3; ++i) colour[i] = (uint8_t)(255 * gain * part[i] / most);
}

/* Chooses the side and the colour of an object, scales its image and finds its box. The logarithm
 * of the side is uniform between those of COMPOSE_SIDE_LEAST and of `most` pixels. */
static Status choose_object(const Composer *c, ComposeWork *w, Draws *d, int64_t image, int most,
                            ComposedObject *o)
{
    double least = COMPOSE_SIDE_LEAST, u = draw_between(draw_word(d), 0, 1);
    *o = (ComposedObject){.image = image, .side = (int)(least * pow((most + 1) / least, u))};
    if (o->side > most) o->side = most;
    choose_colour(d, o->colour);
    TRY(compose_load(c, w, image, o->side, &o->class));
    find_box(w, o);
    return OK;
}

static double compute_iou(const ImageBox *a, const ImageBox *b)
{
    int x0 = a->x > b->x ? a->x : b->x, y0 = a->y > b->y ? a->y : b->y;
    int ax = a->x + a->width, bx = b->x + b->width, ay = a->y + a->height, by = b->y + b->height;
    int w = (ax < bx ? ax : bx) - x0, h = (ay < by ? ay : by) - y0;
    if (w <= 0 || h <= 0) return 0;
    double both = (double)w * h;
    return both / ((double)a->width * a->height + (double)b->width * b->height - both);
}

/* Moves an object so that the upper left corner of its box is at (x, y) of the scene. */
static void move_box(ComposedObject *o, int x, int y)
{
    o->x += x - o->box.x;
    o->y += y - o->box.y;
    o->box.x = x;
    o->box.y = y;
}

/* Adds an object in front of all earlier objects, and updates w->owner. */
static void put(ComposeWork *w, int side, Composition *plan, const ComposedObject *o)
{
    plan->object[plan->count++] = *o;
    for (int y = 0; y < o->box.height; ++y)
        for (int x = 0; x < o->box.width; ++x)
            if (compose_alpha(w, o->box.x - o->x + x, o->box.y - o->y + y) >= COMPOSE_EDGE)
                w->owner[(o->box.y + y) * side + o->box.x + x] = (uint8_t)plan->count;
}

/* Returns whether object o may be added at its place: its box does not overlap another box too
 * much, and each earlier object stays visible by half. seen[k]: number of visible pixels of object
 * k, from 1. Sets covered[k] to the number of pixels of object k that o covers. */
static bool fits(const ComposeWork *w, int side, const Composition *plan, const ComposedObject *o,
                 const int64_t *seen, int64_t *covered)
{
    if (plan->heap && compute_iou(&plan->heap_box, &o->box) > IOU_MOST) return false;
    for (int k = plan->heap; k < plan->count; ++k)
        if (compute_iou(&plan->object[k].box, &o->box) > IOU_MOST) return false;
    memset(covered, 0, (COMPOSE_HEAP + COMPOSE_OBJECTS + 1) * sizeof *covered);
    for (int y = 0; y < o->box.height; ++y)
        for (int x = 0; x < o->box.width; ++x)
            if (compose_alpha(w, o->box.x - o->x + x, o->box.y - o->y + y) >= COMPOSE_EDGE)
                ++covered[w->owner[(o->box.y + y) * side + o->box.x + x]];
    for (int k = plan->heap; k < plan->count; ++k)
        if (2 * (seen[k + 1] - covered[k + 1]) < plan->object[k].area) return false;
    return true;
}

static Status plan_objects(const Composer *c, ComposeWork *w, Draws *d, Composition *plan)
{
    int most = c->side < COMPOSE_SIDE_MOST ? c->side : COMPOSE_SIDE_MOST;
    int count = 1 + (int)draw_below(draw_word(d), COMPOSE_OBJECTS);
    int64_t seen[COMPOSE_HEAP + COMPOSE_OBJECTS + 1] = {0};
    int64_t covered[COMPOSE_HEAP + COMPOSE_OBJECTS + 1];
    for (int i = 0; i < count; ++i) {
        ComposedObject o;
        bool found = false;
        int64_t image = draw_below(draw_word(d), c->images->samples);
        TRY(choose_object(c, w, d, image, most, &o));
        for (int t = 0; o.area > 0 && t < TRIES && !found; ++t) {
            int x = (int)draw_below(draw_word(d), c->side - o.box.width + 1);
            int y = (int)draw_below(draw_word(d), c->side - o.box.height + 1);
            move_box(&o, x, y);
            found = fits(w, c->side, plan, &o, seen, covered);
        }
        if (!found) continue;
        put(w, c->side, plan, &o);
        seen[plan->count] = o.area;
        for (int k = 1; k < plan->count; ++k) seen[k] -= covered[k];
    }
    return OK;
}

static int clamp(int v, int most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

static void add_to_box(ImageBox *sum, const ImageBox *b)
{
    if (sum->width == 0) *sum = *b;
    int x1 = sum->x + sum->width, y1 = sum->y + sum->height;
    if (b->x < sum->x) sum->x = b->x;
    if (b->y < sum->y) sum->y = b->y;
    if (b->x + b->width > x1) x1 = b->x + b->width;
    if (b->y + b->height > y1) y1 = b->y + b->height;
    sum->width = x1 - sum->x;
    sum->height = y1 - sum->y;
}

/* Adds a heap: objects that are one image in several sizes and colours, close together. */
static Status plan_heap(const Composer *c, ComposeWork *w, Draws *d, Composition *plan)
{
    int count = HEAP_LEAST + (int)draw_below(draw_word(d), COMPOSE_HEAP - HEAP_LEAST + 1);
    int64_t image = draw_below(draw_word(d), c->images->samples);
    int x = (int)draw_below(draw_word(d), c->side), y = (int)draw_below(draw_word(d), c->side);
    for (int i = 0; i < count; ++i) {
        ComposedObject o;
        TRY(choose_object(c, w, d, image, HEAP_SIDE, &o));
        int dx = (int)draw_below(draw_word(d), 2 * HEAP_SPREAD + 1) - HEAP_SPREAD;
        int dy = (int)draw_below(draw_word(d), 2 * HEAP_SPREAD + 1) - HEAP_SPREAD;
        if (o.area == 0) break;
        move_box(&o, clamp(x + dx, c->side - o.box.width), clamp(y + dy, c->side - o.box.height));
        put(w, c->side, plan, &o);
        add_to_box(&plan->heap_box, &o.box);
        ++plan->heap;
    }
    for (int i = 0; i < c->side * c->side; ++i) plan->heap_area += w->owner[i] > 0;
    return OK;
}

Status compose_plan(const Composer *composer, ComposeWork *work, int64_t scene, Composition *plan)
{
    Draws d = {rng_key(composer->seed, RNG_TEST, (uint64_t)scene, COMPOSE_PLAN), 0};
    *plan = (Composition){0};
    memset(work->owner, 0, (size_t)composer->side * (size_t)composer->side);
    bool empty = draw_below(draw_word(&d), 100) < EMPTY_PERCENT;
    bool heap = draw_below(draw_word(&d), 100) < HEAP_PERCENT;
    if (empty) return OK;
    if (heap) TRY(plan_heap(composer, work, &d, plan));
    return plan_objects(composer, work, &d, plan);
}
