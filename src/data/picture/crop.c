/* Chooses which part of a picture is used, and to which size it is resampled. The choices are those
 * of torchvision's RandomResizedCrop, Resize (of the short side), RandomCrop, CenterCrop and
 * RandomErasing. They depend on the picture's size, the configuration's keys data.* and random
 * words, not on pixels. Sizes and offsets are rounded with rint, because torchvision rounds with
 * Python's round, and both round halves to even. Also places pictures in letterboxes, and derives
 * the size of the model's input from the keys. */
#include "scene.h"

#include <limits.h>
#include <math.h>

int64_t draw_below(uint32_t word, int64_t below)
{
    return (int64_t)(((uint64_t)word * (uint64_t)below) >> 32);
}

double draw_between(uint32_t word, double lo, double hi)
{
    return lo + (hi - lo) * ((double)word * 0x1p-32);
}

/* Returns length * side / longer, rounded, but at least 1. */
static int letterbox_length(int length, int side, int longer)
{
    const int to = (int)((2 * (int64_t)length * side + longer) / (2 * (int64_t)longer));
    return to < 1 ? 1 : to;
}

ImageBox letterbox(int width, int height, int side)
{
    const int longer = width > height ? width : height;
    const int w = letterbox_length(width, side, longer), h = letterbox_length(height, side, longer);
    return (ImageBox){(side - w) / 2, (side - h) / 2, w, h};
}

BoxFit data_box_fit(const DataSet *set, int width, int height)
{
    const ImageBox at = letterbox(width, height, (int)set->height);
    return (BoxFit){at.x, at.y, {(double)at.width / width, (double)at.height / height}};
}

static bool jitters(const Config *c)
{
    const ConfigList *j = &c->data.color_jitter;
    for (int i = 0; i < j->count; ++i)
        if (j->value[i] > 0) return true;
    return false;
}

bool data_needs_picture_converter(const DataSet *set, const Config *c)
{
    if (!data_has_images(set)) return false;
    if (set->encoded) return true;
    if (c && data_has_boxes(set) && (c->data.letterbox || scene_is_changed(c))) return true;
    return c && (c->data.resize || c->data.random_resized_crop || c->data.random_crop ||
                 c->data.center_crop || jitters(c));
}

/* Returns the side of the square that is cropped from a picture; 0: no crop. */
static int64_t crop_side(const Config *c)
{
    if (c->data.random_resized_crop) return c->data.random_resized_crop;
    return c->data.random_crop ? c->data.random_crop : c->data.center_crop;
}

/* Returns the length to which the short side is resized before cropping; 0: the picture is not
 * resized. The default for encoded pictures is 8/7 of the crop's side, rounded, as torchvision's
 * 256 for 224. */
static int64_t short_side(const DataSet *set, const Config *c)
{
    if (c->data.resize || !set->encoded) return c->data.resize;
    return (2 * 8 * crop_side(c) + 7) / 14;
}

void view_cover_size(int64_t to_width, int64_t to_height, int64_t *width, int64_t *height)
{
    int64_t w = *width, h = *height;
    bool wide = h * to_width <= w * to_height;
    *width = wide ? w * to_height / h : to_width;
    *height = wide ? to_height : h * to_width / w;
}

Status view_set_size(PictureView *view, int64_t to_width, int64_t to_height, const char *name)
{
    int64_t width = view->box.width, height = view->box.height;
    view_cover_size(to_width, to_height, &width, &height);
    if (width > INT_MAX || height > INT_MAX)
        return fail(ERR_DATA, "%s: %dx%d pixels are too narrow to be resized to %lld", name,
                    view->box.width, view->box.height,
                    (long long)(to_width < to_height ? to_width : to_height));
    view->width = (int)width;
    view->height = (int)height;
    return OK;
}

/* Checks that the set's pictures can be resampled. `key` is the key that requires it. */
static Status check_resampling(const DataSet *set, const Config *c, const char *key)
{
    if (set->encoded || (set->x.type == ELEM_U8 && (set->channels == 1 || set->channels == 3)))
        return OK;
    return config_fail_key(c, key, "%s: only uint8 images of 1 or 3 channels are resampled", //
                           set->path);
}

/* A key, and whether the configuration has it. */
typedef struct KeyGiven {
    const char *key;
    bool given;
} KeyGiven;

/* Refuses the first key that is given. The message is "SET WHY". */
static Status refuse_given(const DataSet *set, const Config *c, const KeyGiven *keys, size_t bytes,
                           const char *why)
{
    for (size_t i = 0; i < bytes / sizeof *keys; ++i)
        if (keys[i].given) return config_fail_key(c, keys[i].key, "%s %s", set->path, why);
    return OK;
}

/* Refuses keys that do not suit the kind of set: for data without images all keys that change
 * pictures; for a set of boxes, whose pictures are always used whole, the keys that crop or resize
 * pictures; for other sets the keys that place pictures in the input of a detector. */
static Status check_keys(const DataSet *set, const Config *c)
{
    static const char no_images[] = "holds no images; remove it";
    const KeyGiven resizing[] = {{"data.random_resized_crop", c->data.random_resized_crop > 0},
                                 {"data.random_crop", c->data.random_crop > 0},
                                 {"data.center_crop", c->data.center_crop > 0},
                                 {"data.resize", c->data.resize > 0},
                                 {"data.augment", c->data.augment & AUGMENT_CROP}},
                   colours[] = {{"data.color_jitter", c->data.color_jitter.count > 0}},
                   scenes[] = {{"data.letterbox", c->data.letterbox > 0},
                               {"data.mosaic", c->data.mosaic > 0},
                               {"data.affine_scale", c->data.affine_scale.count > 0},
                               {"data.affine_shift", c->data.affine_shift > 0}};
    if (data_has_boxes(set))
        return refuse_given(set, c, resizing, sizeof resizing,
                            "is a set of boxes, whose pictures are used whole: set "
                            "data.letterbox, data.affine_scale and data.affine_shift");
    TRY(refuse_given(set, c, scenes, sizeof scenes, "is no set of boxes; remove it"));
    if (data_has_images(set)) return OK;
    TRY(refuse_given(set, c, resizing, sizeof resizing, no_images));
    return refuse_given(set, c, colours, sizeof colours, no_images);
}

Status view_set_model_size(DataSet *set, const Config *c)
{
    if (c) TRY(check_keys(set, c));
    if (!data_has_images(set)) return OK;
    if (data_has_boxes(set)) {
        const int64_t side = c ? c->data.letterbox : 0;
        if (c && side) TRY(check_resampling(set, c, "data.letterbox"));
        if (side || set->encoded) set->height = set->width = side;
        return OK;
    }
    if (!c || !data_needs_picture_converter(set, c)) {
        if (set->encoded) set->height = set->width = 0;
        return OK;
    }
    int64_t side = crop_side(c), random_side = c->data.random_resized_crop + c->data.random_crop;
    const char *key = c->data.random_resized_crop ? "data.random_resized_crop"
                      : c->data.random_crop       ? "data.random_crop"
                      : c->data.center_crop       ? "data.center_crop"
                      : c->data.resize            ? "data.resize"
                                                  : "data.color_jitter";
    TRY(check_resampling(set, c, key));
    if (random_side && c->data.center_crop && c->data.center_crop != random_side)
        return config_fail_key(c, "data.center_crop",
                               "is %lld and %s %lld: the model takes images of one size",
                               (long long)c->data.center_crop, key, (long long)random_side);
    if (set->encoded && !side) {
        set->height = set->width = 0;
        return OK;
    }
    int64_t width = set->width, height = set->height;
    if (!set->encoded && c->data.resize)
        view_cover_size(c->data.resize, c->data.resize, &width, &height);
    if (side && !set->encoded && !c->data.random_resized_crop && (width < side || height < side))
        return config_fail_key(c, key, "is %lld, images of %s are %lldx%lld: set data.resize",
                               (long long)side, set->path, (long long)width, (long long)height);
    set->width = side ? side : width;
    set->height = side ? side : height;
    return OK;
}

Status data_set_check_size(const DataSet *set, const Config *c)
{
    if (!set->encoded || set->height > 0) return OK;
    if (data_has_boxes(set))
        return config_fail_key(
            c, "data.letterbox",
            "%s holds pictures of many sizes: set it to the model's size, as 640", set->path);
    return config_fail_key(c, "data.random_resized_crop",
                           "%s holds pictures of many sizes: set data.random_resized_crop, "
                           "data.random_crop or data.center_crop to the model's size, as 224",
                           set->path);
}

int view_centre_offset(int whole, int part)
{
    return whole >= part ? (int)rint((whole - part) / 2.0) : -((part - whole) / 2);
}

Status view_choose_evaluation(PictureView *view, const DataSet *set, const Config *c, int width,
                              int height, const char *name)
{
    *view = (PictureView){.box = {0, 0, width, height}, .width = width, .height = height};
    if (data_has_boxes(set)) {
        const int side = (int)set->height;
        const ImageBox at = letterbox(width, height, side);
        view->width = at.width;
        view->height = at.height;
        view->kept = (ImageBox){-at.x, -at.y, side, side};
        return OK;
    }
    const int64_t short_to = short_side(set, c);
    if (short_to) TRY(view_set_size(view, short_to, short_to, name));
    int part_width = (int)set->width, part_height = (int)set->height;
    view->kept = (ImageBox){view_centre_offset(view->width, part_width),
                            view_centre_offset(view->height, part_height), part_width, part_height};
    return OK;
}

/* Returns the box that RandomResizedCrop uses after DRAW_TRIES tries without success: the whole
 * picture or, if its ratio of width to height is outside the bounds, the largest centred box whose
 * ratio is the nearer bound. */
static ImageBox centre_box(int width, int height, double ratio_min, double ratio_max)
{
    double ratio = (double)width / height;
    int w = width, h = height;
    if (ratio < ratio_min)
        h = (int)rint(w / ratio_min);
    else if (ratio > ratio_max)
        w = (int)rint(h * ratio_max);
    return (ImageBox){(width - w) / 2, (height - h) / 2, w, h};
}

/* Draws the box of RandomResizedCrop. */
static ImageBox draw_resized_crop(const Config *c, RngKey key, int width, int height)
{
    const double *scale = c->data.crop_scale.value, *ratio = c->data.crop_ratio.value;
    double area = (double)width * height;
    for (int t = 0; t < DRAW_TRIES; ++t) {
        uint32_t r[4];
        rng_block(key, (uint64_t)(DRAW_RESIZED_CROP + t), r);
        double box_area = area * draw_between(r[0], scale[0], scale[1]);
        double aspect = exp(draw_between(r[1], log(ratio[0]), log(ratio[1])));
        double w = rint(sqrt(box_area * aspect)), h = rint(sqrt(box_area / aspect));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        int y = (int)draw_below(r[2], height - (int)h + 1);
        int x = (int)draw_below(r[3], width - (int)w + 1);
        return (ImageBox){x, y, (int)w, (int)h};
    }
    return centre_box(width, height, ratio[0], ratio[1]);
}

Status view_choose_training(PictureView *view, const DataSet *set, const Config *c, RngKey key,
                            int width, int height, const char *name)
{
    int side = (int)crop_side(c);
    if (c->data.random_resized_crop) {
        *view = (PictureView){.box = draw_resized_crop(c, key, width, height),
                              .kept = {0, 0, side, side},
                              .width = side,
                              .height = side};
        return OK;
    }
    TRY(view_choose_evaluation(view, set, c, width, height, name));
    if (!c->data.random_crop) return OK;
    if (view->width < side || view->height < side)
        return fail(ERR_DATA,
                    "%s: is %dx%d, and resized to data.resize it is too small for data.random_crop "
                    "%d: set a larger data.resize",
                    name, width, height, side);
    uint32_t r[4];
    rng_block(key, DRAW_RANDOM_CROP, r);
    view->kept.y = (int)draw_below(r[0], view->height - side + 1);
    view->kept.x = (int)draw_below(r[1], view->width - side + 1);
    return OK;
}

ImageBox choose_erasing(const DataSet *set, const Config *c, RngKey key)
{
    /* torchvision's defaults: smallest and largest fraction of the area, and ratio of height to
     * width */
    const double scale[2] = {0.02, 0.33}, ratio[2] = {0.3, 3.3};
    int64_t height = set->height, width = set->width;
    double area = (double)height * (double)width;
    uint32_t r[4];
    rng_block(key, DRAW_ERASE, r);
    if (c->data.erasing <= 0 || draw_between(r[0], 0, 1) >= c->data.erasing) return (ImageBox){0};
    for (int t = 0; t < DRAW_TRIES; ++t) {
        rng_block(key, (uint64_t)(DRAW_ERASE_BOX + t), r);
        double box_area = area * draw_between(r[0], scale[0], scale[1]);
        double aspect = exp(draw_between(r[1], log(ratio[0]), log(ratio[1])));
        double h = rint(sqrt(box_area * aspect)), w = rint(sqrt(box_area / aspect));
        if (h >= (double)height || w >= (double)width) continue;
        int y = (int)draw_below(r[2], height - (int64_t)h + 1);
        int x = (int)draw_below(r[3], width - (int64_t)w + 1);
        return (ImageBox){x, y, (int)w, (int)h};
    }
    return (ImageBox){0};
}
