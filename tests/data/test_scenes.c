/* Scenes composed of small images: the same bytes for any number of threads, boxes that lie closely
 * around objects, overlap and sizes within their limits, and images that are refused. */
#include "fixture.h"
#include "../../src/data/boxes/compose.h"

#include <math.h>

enum { IMAGES = 24, IMAGE = 28, SIDE = 160, SCENES = 150 };

/* Writes images (IMAGES, channels, IMAGE, width), of classes 0 to 3 in turn. Each has a white
 * rectangle of its own size on black, if there is one channel. */
static const char *rectangles(const char *name, hid_t stored, hid_t memory, hsize_t channels,
                              hsize_t width)
{
    const char *path = in_scratch(name);
    size_t pixels = (size_t)channels * IMAGE * (size_t)width;
    uint8_t *x = mem_new(IMAGES * pixels);
    int32_t y[IMAGES];
    for (int i = 0; i < IMAGES; ++i) {
        y[i] = i % 4;
        for (int v = 4; v < 12 + i % 12; ++v)
            memset(x + (size_t)i * pixels + (size_t)v * width + 3, 255, (size_t)(8 + i % 8));
    }
    H5Array ax = {"x", stored, memory, 4, {IMAGES, channels, IMAGE, width}, {0}, 0, x};
    H5Array ay = {"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {IMAGES}, {0}, 0, y};
    hid_t file = h5_new(path);
    h5_put(file, ax);
    h5_put(file, ay);
    H5Fclose(file);
    mem_free(&x);
    return path;
}

static const char *grey(const char *name)
{
    return rectangles(name, H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, IMAGE);
}

/* ---- the file ---- */

static Status make(const char *images, const char *out, const char *samples, const char *seed,
                   const char *threads)
{
    return verb_run("data make scenes", images, "-o", out, "--samples", samples, "--seed", seed,
                    "--side", "96", "--threads", threads, NULL);
}

static void threads_write_the_same_bytes(void)
{
    const char *images = grey("grey.h5"), *one = in_scratch("one.h5"), *two = in_scratch("two.h5");
    const char *other = in_scratch("other.h5"), *part = in_scratch("first.h5");
    CHECK_OK(make(images, one, "40", "5", "1"));
    CHECK_OK(make(images, two, "40", "5", "3"));
    CHECK_OK(make(images, other, "40", "6", "2"));
    CHECK_OK(make(images, part, "7", "5", "2"));
    CU_ASSERT(same_files(one, two));
    CU_ASSERT(!same_files(one, other));
    CHECK_FAILS(make(images, one, "40", "5", "1"), ERR_USAGE, "already there");
    /* The first scenes do not depend on the number of scenes. */
    DataSet *a = mem_new(sizeof *a), *b = mem_new(sizeof *b);
    Reader *ra, *rb;
    uint8_t *x = mem_new(3 * 96 * 96), *y = mem_new(3 * 96 * 96);
    CHECK_OK(data_set_open(a, NULL, one));
    CHECK_OK(data_set_open(b, NULL, part));
    CHECK_OK(reader_new(&ra, a));
    CHECK_OK(reader_new(&rb, b));
    CHECK_OK(reader_get(ra, 6, x, NULL, NULL));
    CHECK_OK(reader_get(rb, 6, y, NULL, NULL));
    CU_ASSERT(memcmp(x, y, 3 * 96 * 96) == 0);
    reader_free(&ra);
    reader_free(&rb);
    mem_free(&x);
    mem_free(&y);
    mem_free(&a);
    mem_free(&b);
}

static void labels_are_read(void)
{
    const char *images = grey("grey2.h5"), *out = in_scratch("labels.h5");
    CHECK_OK(make(images, out, "200", "1", "2"));
    DataSet *set = mem_new(sizeof *set);
    DataBoxes b;
    CHECK_OK(data_set_open(set, NULL, out));
    CHECK_OK(data_set_check(set, 0));
    CHECK_OK(data_boxes_read(&b, set));
    int empty = 0, crowds = 0, other_area = 0;
    for (int64_t i = 0; i < b.pictures; ++i) empty += b.start[i] == b.start[i + 1];
    for (int64_t k = 0; k < b.boxes; ++k) {
        crowds += b.crowd[k];
        other_area += b.area[k] != b.box[4 * k + 2] * b.box[4 * k + 3];
        CU_ASSERT(b.area[k] > 0 && b.area[k] <= b.box[4 * k + 2] * b.box[4 * k + 3]);
    }
    CU_ASSERT(b.pictures == 200 && b.classes == 4);
    CU_ASSERT(empty > 2 && empty < 30 && crowds > 0 && crowds < 20 && other_area > 0);
    CU_ASSERT(b.id[0] > 0 && b.image_id[1] - b.image_id[0] == 3);
    data_boxes_free(&b);
    mem_free(&set);
}

/* ---- what lies in a scene ---- */

/* Returns the opacity of a pixel of an object on black, from the brightest of its channels: the
 * pixel is colour * (opacity / 255)^2. */
static double opacity(const uint8_t *pixel, const ComposedObject *o, int x, int y)
{
    int k = o->colour[0] >= o->colour[1] ? 0 : 1;
    if (o->colour[2] > o->colour[k]) k = 2;
    return 255 * sqrt(pixel[(k * SIDE + y) * SIDE + x] / (double)o->colour[k]);
}

/* Returns the largest opacity in a rectangle, of which parts may be outside the scene. */
static double most(const uint8_t *pixel, const ComposedObject *o, ImageBox r)
{
    double most = 0;
    for (int y = r.y; y < r.y + r.height; ++y)
        for (int x = r.x; x < r.x + r.width; ++x)
            if (x >= 0 && y >= 0 && x < SIDE && y < SIDE)
                most = fmax(most, opacity(pixel, o, x, y));
    return most;
}

static bool touches(const ImageBox *a, const ImageBox *b)
{
    return a->x <= b->x + b->width + 2 && b->x <= a->x + a->width + 2 &&
           a->y <= b->y + b->height + 2 && b->y <= a->y + a->height + 2;
}

/* Checks the four edges of a box: the rows and columns just inside hold the object, those just
 * outside do not. Bytes of dark pixels give the opacity to about 8. */
static void check_edges(const uint8_t *pixel, const ComposedObject *o)
{
    ImageBox b = o->box;
    const ImageBox in[4] = {{b.x, b.y, b.width, 1},
                            {b.x, b.y + b.height - 1, b.width, 1},
                            {b.x, b.y, 1, b.height},
                            {b.x + b.width - 1, b.y, 1, b.height}};
    const ImageBox out[4] = {{b.x - 1, b.y - 1, b.width + 2, 1},
                             {b.x - 1, b.y + b.height, b.width + 2, 1},
                             {b.x - 1, b.y - 1, 1, b.height + 2},
                             {b.x + b.width, b.y - 1, 1, b.height + 2}};
    for (int i = 0; i < 4; ++i) {
        CU_ASSERT(most(pixel, o, in[i]) > COMPOSE_EDGE - 8);
        CU_ASSERT(most(pixel, o, out[i]) < COMPOSE_EDGE + 8);
    }
}

static double iou(const ImageBox *a, const ImageBox *b)
{
    double w = fmin(a->x + a->width, b->x + b->width) - fmax(a->x, b->x);
    double h = fmin(a->y + a->height, b->y + b->height) - fmax(a->y, b->y);
    double both = w > 0 && h > 0 ? w * h : 0;
    return both / (a->width * a->height + b->width * b->height - both);
}

/* Checks limits of one scene; returns the number of lone objects, whose edges are checked. */
static int check_scene(const uint8_t *pixel, const Composition *p)
{
    int lone = 0;
    CU_ASSERT(p->count - p->heap <= COMPOSE_OBJECTS && p->heap <= COMPOSE_HEAP);
    for (int i = p->heap; i < p->count; ++i) {
        const ComposedObject *o = &p->object[i];
        bool alone = true;
        CU_ASSERT(o->side >= COMPOSE_SIDE_LEAST && o->side <= COMPOSE_SIDE_MOST);
        CU_ASSERT(o->box.x >= 0 && o->box.y >= 0 && o->box.x + o->box.width <= SIDE &&
                  o->box.y + o->box.height <= SIDE);
        CU_ASSERT_EQUAL(o->class, o->image % 4);
        for (int k = 0; k < p->count; ++k) {
            if (k == i) continue;
            alone = alone && !touches(&o->box, &p->object[k].box);
            if (k >= p->heap) CU_ASSERT(iou(&o->box, &p->object[k].box) <= 0.3);
        }
        if (alone) check_edges(pixel, o), ++lone;
    }
    return lone;
}

static void boxes_are_tight(void)
{
    DataSet *set = mem_new(sizeof *set);
    Composition p;
    uint8_t *pixel = mem_new(3 * SIDE * SIDE);
    CHECK_OK(data_set_open(set, NULL, grey("tight.h5")));
    Composer c = {.images = set, .side = SIDE, .seed = 3, .plain = true};
    CHECK_OK(reader_new(&c.reader, set));
    ComposeWork *work = compose_work_new(&c);
    int lone = 0, heaps = 0;
    for (int64_t scene = 0; scene < SCENES; ++scene) {
        CHECK_OK(compose_plan(&c, work, scene, &p));
        CHECK_OK(compose_paint(&c, work, scene, &p, pixel));
        lone += check_scene(pixel, &p);
        heaps += p.heap > 0;
    }
    CU_ASSERT(lone > SCENES && heaps > 0);
    compose_work_free(&work);
    reader_free(&c.reader);
    mem_free(&pixel);
    mem_free(&set);
}

/* ---- errors ---- */

static void other_sets_are_refused(void)
{
    const char *out = in_scratch("refused.h5");
    const char *rgb = rectangles("rgb.h5", H5T_STD_U8LE, H5T_NATIVE_UINT8, 3, IMAGE);
    const char *wide = rectangles("wide.h5", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, 32);
    const char *words = rectangles("words.h5", H5T_STD_U16LE, H5T_NATIVE_UINT8, 1, IMAGE);
    CHECK_FAILS(make(rgb, out, "9", "0", "1"), ERR_DATA, "rgb.h5: has images of several channels");
    CHECK_FAILS(make(wide, out, "9", "0", "1"), ERR_DATA,
                "wide.h5: has images that are no squares");
    CHECK_FAILS(make(words, out, "9", "0", "1"), ERR_DATA,
                "words.h5: has values that are not byte");
    CHECK_FAILS(make(in_scratch("none.h5"), out, "9", "0", "1"), ERR_NOINPUT, "none.h5");
    CU_ASSERT(access(out, F_OK) != 0);
}

TEST_MAIN("scenes", {"threads write the same bytes", threads_write_the_same_bytes},
          {"labels are read", labels_are_read}, {"boxes are tight", boxes_are_tight},
          {"other sets are refused", other_sets_are_refused})
