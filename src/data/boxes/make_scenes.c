/* weft data make scenes: composes pictures with labelled boxes from a set of small grey images.
 * First the boxes of all scenes are found, so that the file can be laid out. Then the threads paint
 * the scenes, and write each scene as soon as it is painted. Ids of images and categories have
 * gaps, as COCO's ids do. */
#include "box_set.h"
#include "compose.h"

#include <string.h>

enum {
    /* number of scenes whose boxes the threads find before the boxes are added to the list */
    CHUNK = 4096,
    /* number of ids that are reserved for the boxes of a scene */
    LABELS = 16,
    /* smallest and largest side of the images that are accepted */
    IMAGE_LEAST = 8,
    IMAGE_MOST = 1024
};
_Static_assert(COMPOSE_OBJECTS + 1 < LABELS, "ids of boxes are unique");

typedef struct Maker {
    Composer composer;
    /* number of scenes */
    int64_t samples;
    /* owned: scratch memory of each thread */
    ComposeWork **work;
    BoxSet boxes;
    /* names of the classes */
    ClassNames names;
    /* number of the scene of plan[0] */
    int64_t first;
    /* owned: plans of up to CHUNK scenes */
    Composition *plan;
    /* owned: pixels of one scene for each thread */
    uint8_t *pixels;
    PartFile part;
    /* offset of the pixels in the file */
    int64_t x_offset;
} Maker;

static int64_t scene_bytes(const Maker *m)
{
    return 3 * (int64_t)m->composer.side * m->composer.side;
}

/* ---- boxes ---- */

static Status plan_scene(void *user, int worker, int64_t i)
{
    Maker *m = user;
    return compose_plan(&m->composer, m->work[worker], m->first + i, &m->plan[i]);
}

static BoxLabel make_label(ImageBox box, int64_t area, int32_t class)
{
    return (BoxLabel){.box = {box.x, box.y, box.width, box.height},
                      .area = (double)area,
                      .category_id = class + class / 4 + 1};
}

static void add_scene(Maker *m, int64_t scene, const Composition *plan)
{
    BoxPicture picture = {
        .id = 3 * scene + 7, .height = m->composer.side, .width = m->composer.side};
    int64_t id = LABELS * scene;
    box_set_add_picture(&m->boxes, picture, "");
    for (int i = plan->heap ? plan->heap - 1 : 0; i < plan->count; ++i) {
        const ComposedObject *o = &plan->object[i];
        bool heap = i < plan->heap;
        BoxLabel label = heap ? make_label(plan->heap_box, plan->heap_area, o->class)
                              : make_label(o->box, o->area, o->class);
        label.id = ++id;
        label.picture_id = picture.id;
        label.crowd = heap;
        box_set_add_label(&m->boxes, label);
        m->boxes.crowds += heap;
    }
}

/* Finds the boxes of all scenes. */
static Status find_boxes(Maker *m, int threads)
{
    char number[24];
    for (int64_t c = 0; c < m->composer.images->classes; ++c)
        box_set_add_category(&m->boxes, c + c / 4 + 1, class_name(&m->names, c, number));
    for (m->first = 0; m->first < m->samples; m->first += CHUNK) {
        int64_t rest = m->samples - m->first, count = rest < CHUNK ? rest : CHUNK;
        TRY(worker_pool_run(threads, count, plan_scene, m));
        for (int64_t i = 0; i < count; ++i) add_scene(m, m->first + i, &m->plan[i]);
    }
    return box_set_order(&m->boxes);
}

/* ---- the file ---- */

static herr_t put_contents(void *user, hid_t file)
{
    Maker *m = user;
    return box_set_put_squares(&m->boxes, file, 3, &m->x_offset) ? 0 : -1;
}

static Status write_scene(void *user, int worker, int64_t scene)
{
    Maker *m = user;
    int64_t bytes = scene_bytes(m);
    uint8_t *pixels = m->pixels + worker * bytes;
    Composition plan;
    TRY(compose_plan(&m->composer, m->work[worker], scene, &plan));
    TRY(compose_paint(&m->composer, m->work[worker], scene, &plan, pixels));
    return part_write(&m->part, pixels, bytes, m->x_offset + scene * bytes);
}

static Status write_file(Maker *m, const char *out, bool force, int threads)
{
    int64_t bytes = m->samples * (scene_bytes(m) + 64) + m->boxes.labels * 64;
    TRY(part_new(&m->part, out, force, bytes, put_contents, m));
    Status st = worker_pool_run(threads, m->samples, write_scene, m);
    if (st == OK) return part_finish(&m->part);
    part_drop(&m->part);
    return st;
}

static Status make(Maker *m, const char *out, bool force, int threads)
{
    BoxImport import = {.out = out, .side = m->composer.side};
    m->boxes.import = &import;
    m->boxes.source = out;
    m->work = mem_new((size_t)threads * sizeof *m->work);
    m->plan = mem_new(CHUNK * sizeof *m->plan);
    m->pixels = mem_new((size_t)(threads * scene_bytes(m)));
    for (int i = 0; i < threads; ++i) m->work[i] = compose_work_new(&m->composer);
    Status st = find_boxes(m, threads);
    if (st == OK) st = write_file(m, out, force, threads);
    if (st == OK)
        log_info("wrote %s: %lld scenes, %lld boxes of %lld classes, %lld around heaps", out,
                 (long long)m->samples, (long long)m->boxes.labels, (long long)m->boxes.categories,
                 (long long)m->boxes.crowds);
    for (int i = 0; i < threads; ++i) compose_work_free(&m->work[i]);
    mem_free(&m->work);
    mem_free(&m->plan);
    mem_free(&m->pixels);
    box_set_fini(&m->boxes);
    return st;
}

/* ---- the verb ---- */

/* Checks that the images are squares of grey bytes with classes. ERR_DATA. */
static Status check_images(const DataSet *set)
{
    const char *why = NULL;
    if (set->kind != DATA_IMAGE)
        why = "is no set of images";
    else if (set->encoded)
        why = "stores picture files";
    else if (set->channels != 1)
        why = "has images of several channels";
    else if (set->x.type != ELEM_U8)
        why = "has values that are not bytes (uint8)";
    else if (set->stored_height != set->stored_width)
        why = "has images that are no squares";
    else if (set->stored_height < IMAGE_LEAST || set->stored_height > IMAGE_MOST)
        why = "has images whose sides are not 8 to 1024 pixels";
    else if (set->classes == 0)
        why = "has no classes";
    if (!why) return OK;
    return fail(ERR_DATA,
                "%s: %s; scenes are made from squares of grey bytes with classes, such as "
                "Fashion-MNIST's (weft data import idx)",
                set->path, why);
}

typedef struct ScenesOptions {
    const char *out;
    int64_t samples, side, seed, threads;
    bool force;
} ScenesOptions;

static const Flag flags[] = {
    FLAG_OUT(ScenesOptions, out, "the data set to write"),
    {"--samples", FLAG_FIELD(ScenesOptions, samples), .value = "N", .lo = 1, .hi = 0x1p32,
     .default_text = "4000", .help = "number of scenes"},
    {"--side", FLAG_FIELD(ScenesOptions, side), .value = "S", .lo = 32, .hi = 2048,
     .default_text = "160", .help = "height and width of a scene in pixels"},
    {"--seed", FLAG_FIELD(ScenesOptions, seed), .value = "S", .lo = 0, .hi = FLAG_WHOLE_MAX,
     .default_text = "0", .help = "seed of all random choices"},
    {"--threads", FLAG_FIELD(ScenesOptions, threads), .value = "T", .lo = 1, .hi = 1024,
     .help = "threads that paint scenes; by default one for each core"},
    FLAG_FORCE(ScenesOptions, force),
};

static Status make_from(const DataSet *set, const ScenesOptions *o)
{
    Maker m = {.composer = {.images = set, .side = (int)o->side, .seed = (uint64_t)o->seed},
               .samples = o->samples};
    TRY(check_images(set));
    TRY(file_check_writable(o->out, o->force));
    TRY(class_names_read(&m.names, set->path));
    Status st = reader_new(&m.composer.reader, set);
    if (st == OK)
        st = make(&m, o->out, o->force, (int)(o->threads > 0 ? o->threads : threads_share(1)));
    reader_free(&m.composer.reader);
    class_names_free(&m.names);
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    DataSet *set = mem_new(sizeof *set);
    (void)argc;
    Status st = data_set_open(set, NULL, argv[0]);
    if (st == OK) st = make_from(set, options);
    mem_free(&set);
    return st;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_make_scenes = {
    .name = "data make scenes",
    .words = "IMAGES",
    .words_min = 1,
    .words_max = 1,
    .expects = "a data set of images",
    .help = "composes pictures with boxes from small grey images",
    .more = "Each scene has up to 8 objects of 14 to 80 pixels, in their own colours, on a "
            "background with gradients, lines, pieces of other images and noise. A box is around "
            "the pixels of at least 32 of 255. Some scenes have no object, some a heap with one "
            "box. The file depends on IMAGES, --samples, --side and --seed only.",
    VERB_FLAGS(ScenesOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
