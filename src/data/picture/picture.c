/* Prepares a picture for the model:
 *
 *     picture file --- decode the part --------+
 *     stored image --- convert the part to RGB +--> resample --> colours --> augment_picture
 *
 * crop.c chooses the part of the picture that is used before decoding, so only this part of a JPEG
 * is decoded. Pictures that must be rotated are decoded completely. So are the pictures of sets of
 * boxes, which are placed in a scene (scene.h). */
#include "scene.h"

#include <string.h>

struct PictureConverter {
    /* borrowed */
    const DataSet *set;
    /* borrowed */
    const Config *config;
    ImageDecoder *decoder;
    ImageResampler *resampler;
    /* decoded part of the picture, as RGB */
    Image from;
    /* scratch memory for rotation */
    Image spare;
    /* resampled pixels */
    Image view;
    /* resampled pixels with padding around them, or the input that a scene describes */
    Image padded;
    /* content of a picture file, or x of a sample as it is stored; owned */
    uint8_t *bytes;
    /* encoded sets: number of bytes allocated for `bytes` */
    size_t capacity;
};

/* The picture to prepare: a sample of the set, or a picture from another source. For the latter,
 * `training` is false, and epoch and sample are not used. */
typedef struct PictureSource {
    bool training;
    int64_t epoch, sample;
    /* name of the picture for messages; borrowed */
    const char *name;
} PictureSource;

PictureConverter *picture_converter_new(const DataSet *set, const Config *config)
{
    PictureConverter *w = mem_new(sizeof *w);
    w->set = set;
    w->config = config;
    w->decoder = image_decoder_new();
    w->resampler = image_resampler_new();
    return w;
}

void picture_converter_free(PictureConverter **converter)
{
    PictureConverter *w = *converter;
    if (!w) return;
    image_decoder_free(&w->decoder);
    image_resampler_free(&w->resampler);
    image_fini(&w->from);
    image_fini(&w->spare);
    image_fini(&w->view);
    image_fini(&w->padded);
    mem_free(&w->bytes);
    mem_free(converter);
}

/* Estimates the memory: three buffers of a picture's size (decoded, rotated, between the two passes
 * of resampling), two buffers of the size of the model's input (resampled, with padding), and the
 * file. */
size_t picture_converter_bytes(const DataSet *set)
{
    enum { USUAL_PIXELS = 500 * 375, USUAL_FILE_BYTES = 128 << 10, RGB = 3 };
    int64_t stored = set->encoded ? USUAL_PIXELS : set->stored_height * set->stored_width;
    return (size_t)(stored * RGB * 3 + set->height * set->width * RGB * 2 + USUAL_FILE_BYTES);
}

static Status choose_view(const PictureConverter *w, const PictureSource *source, int width,
                          int height, PictureView *v)
{
    if (!source->training)
        return view_choose_evaluation(v, w->set, w->config, width, height, source->name);
    RngKey key = augment_key(w->config, source->epoch, source->sample);
    return view_choose_training(v, w->set, w->config, key, width, height, source->name);
}

/* Returns the part of the picture that must be decoded for the view: the view's box. If the width
 * of the box is not resampled, only the columns of `kept` are needed; the same holds for its height
 * and rows. */
static ImageBox view_need(const PictureView *v)
{
    ImageBox need = v->box;
    if (v->width == v->box.width && v->kept.x >= 0 && v->kept.x + v->kept.width <= v->width) {
        need.x += v->kept.x;
        need.width = v->kept.width;
    }
    if (v->height == v->box.height && v->kept.y >= 0 && v->kept.y + v->kept.height <= v->height) {
        need.y += v->kept.y;
        need.height = v->kept.height;
    }
    return need;
}

/* Returns w->padded, an image of the size of `part`, with a copy of w->view and padding. part: box
 * of the resampled picture, which may reach beyond it; inside: the box of `part` that lies in the
 * resampled picture, whose pixels w->view has. The padding is zero, or grey for a set of boxes. */
static Image *with_padding(PictureConverter *w, ImageBox part, ImageBox inside)
{
    image_set_size(&w->padded, part.width, part.height);
    const int margin = data_has_boxes(w->set) ? LETTERBOX_GREY : 0;
    memset(w->padded.pixel, margin, (size_t)part.width * (size_t)part.height * 3);
    for (int y = 0; y < inside.height; ++y)
        memcpy(w->padded.pixel + ((size_t)(inside.y - part.y + y) * (size_t)part.width +
                                  (size_t)(inside.x - part.x)) *
                                     3,
               w->view.pixel + (size_t)y * (size_t)inside.width * 3, (size_t)inside.width * 3);
    return &w->padded;
}

static ImageFilter filter_of(const PictureConverter *w)
{
    return w->config ? (ImageFilter)w->config->data.filter : IMAGE_BILINEAR;
}

/* Resamples the picture, and returns the pixels of v->kept, in memory of w. decoded: the
 * part of the picture that w->from has. */
static Image *make_view(PictureConverter *w, const PictureView *v, ImageBox decoded,
                        ImageFilter filter)
{
    ImageBox box = v->box, inside = v->kept;
    box.x -= decoded.x;
    box.y -= decoded.y;
    if (inside.x < 0) inside.width += inside.x, inside.x = 0;
    if (inside.y < 0) inside.height += inside.y, inside.y = 0;
    if (inside.width > v->width - inside.x) inside.width = v->width - inside.x;
    if (inside.height > v->height - inside.y) inside.height = v->height - inside.y;
    image_set_size(&w->view, inside.width, inside.height);
    image_resample_part(w->resampler, &w->from, box, v->width, v->height, inside, &w->view, filter);
    bool needs_padding = inside.width != v->kept.width || inside.height != v->kept.height;
    return needs_padding ? with_padding(w, v->kept, inside) : &w->view;
}

/* Converts the pixels of a view, after data.color_jitter in training, to the model's input. */
static void convert_view(PictureConverter *w, const PictureSource *source, Image *picture,
                         float *out)
{
    if (source->training && w->config->data.color_jitter.count)
        picture_jitter(picture, w->config, augment_key(w->config, source->epoch, source->sample));
    augment_picture(w->set, w->config, source->training, source->epoch, source->sample, picture,
                    out);
}

/* Chooses the view of the picture file in w->bytes, which has `count` bytes, and decodes to w->from
 * the part of the picture that the view needs. Sets *decoded to this part. */
static Status decode(PictureConverter *w, const PictureSource *source, size_t count,
                     int orientation, PictureView *view, ImageBox *decoded)
{
    ImageHeader head;
    const char *name = source->name;
    TRY(image_read_header(&head, w->bytes, count, name));
    /* Orientations 5 to 8 swap the sides. */
    bool swap = orientation >= 5;
    int width = swap ? head.height : head.width, height = swap ? head.width : head.height;
    TRY(choose_view(w, source, width, height, view));
    ImageBox need = orientation > 1 ? (ImageBox){0, 0, head.width, head.height} : view_need(view);
    TRY(image_decode_part(w->decoder, &w->from, w->bytes, count, &head, need, decoded, name));
    image_apply_orientation(&w->from, &w->spare, orientation);
    if (orientation > 1) *decoded = (ImageBox){0, 0, width, height};
    return OK;
}

/* Converts a part of the stored image in w->bytes to RGB in w->from. A grey image gets three equal
 * channels. */
static void convert_to_rgb(PictureConverter *w, ImageBox part)
{
    const DataSet *set = w->set;
    int64_t width = set->stored_width, plane = width * set->stored_height;
    int64_t step = set->channels_last ? set->channels : 1;
    image_set_size(&w->from, part.width, part.height);
    uint8_t *to = w->from.pixel;
    for (int y = 0; y < part.height; ++y) {
        const uint8_t *from = w->bytes + ((part.y + y) * width + part.x) * step;
        const uint8_t *channel[3] = {from, from, from};
        for (int c = 1; c < set->channels; ++c) channel[c] = from + (step > 1 ? c : c * plane);
        for (int x = 0; x < part.width; ++x, to += 3)
            for (int c = 0; c < 3; ++c) to[c] = channel[c][x * step];
    }
}

/* Chooses the view of a stored image, and reads to w->from the part of the image that the view
 * needs. Sets *read to this part. */
static Status read_stored(PictureConverter *w, Reader *reader, const PictureSource *source,
                          PictureView *view, ImageBox *read)
{
    const DataSet *set = w->set;
    if (!w->bytes) w->bytes = mem_new((size_t)set->x.sample_bytes);
    TRY(reader_get(reader, source->sample, w->bytes, NULL, NULL));
    TRY(choose_view(w, source, (int)set->stored_width, (int)set->stored_height, view));
    *read = view_need(view);
    convert_to_rgb(w, *read);
    return OK;
}

Status picture_prepare_sample(PictureConverter *converter, Reader *reader, bool training,
                              int64_t epoch, int64_t sample, float *out)
{
    PictureConverter *w = converter;
    char name[DATA_PATH + 32];
    PictureSource source = {training, epoch, sample, name};
    PictureView view;
    ImageBox decoded;
    size_t count;
    int orientation;
    sample_name(w->set, sample, name, sizeof name);
    if (w->set->encoded) {
        TRY(reader_get_encoded(reader, sample, &w->bytes, &w->capacity, &count, &orientation));
        TRY(decode(w, &source, count, orientation, &view, &decoded));
    } else {
        TRY(read_stored(w, reader, &source, &view, &decoded));
    }
    convert_view(w, &source, make_view(w, &view, decoded, filter_of(w)), out);
    return OK;
}

/* Chooses the view that an import as decoded images would use for this picture. The picture is
 * resized to cover the stored size, and its centre is cropped. For a set of boxes the complete
 * picture is resized so that its longer side is the stored side. */
static Status choose_import_view(PictureView *v, const DataSet *set, const Image *picture,
                                 const char *name)
{
    int width = (int)set->stored_width, height = (int)set->stored_height;
    *v = (PictureView){.box = {0, 0, picture->width, picture->height}};
    if (data_has_boxes(set)) {
        const ImageBox at = letterbox(picture->width, picture->height, width);
        v->width = at.width;
        v->height = at.height;
        v->kept = (ImageBox){0, 0, at.width, at.height};
        return OK;
    }
    TRY(view_set_size(v, width, height, name));
    v->kept = (ImageBox){view_centre_offset(v->width, width), view_centre_offset(v->height, height),
                         width, height};
    return OK;
}

Status picture_prepare(PictureConverter *converter, const Image *picture, const char *name,
                       float *out)
{
    PictureConverter *w = converter;
    const DataSet *set = w->set;
    PictureSource source = {0};
    ImageBox all = {0, 0, picture->width, picture->height};
    image_set_size(&w->from, picture->width, picture->height);
    memcpy(w->from.pixel, picture->pixel, (size_t)picture->width * (size_t)picture->height * 3);
    if (!set->encoded &&
        (picture->width != set->stored_width || picture->height != set->stored_height)) {
        PictureView stored;
        TRY(choose_import_view(&stored, set, picture, name));
        Image *pixels = make_view(w, &stored, all, set->bicubic ? IMAGE_BICUBIC : IMAGE_BILINEAR);
        Image former = w->from;
        w->from = *pixels;
        *pixels = former;
        all = (ImageBox){0, 0, w->from.width, w->from.height};
    }
    PictureView view = {.box = all, .kept = all, .width = all.width, .height = all.height};
    if (data_has_boxes(set)) {
        /* The picture is placed by its own size, as in data_box_fit, not by the size of the
         * import's view. */
        TRY(view_choose_evaluation(&view, set, w->config, picture->width, picture->height, name));
        view.box = all;
    } else if (data_needs_picture_converter(set, w->config)) {
        TRY(view_choose_evaluation(&view, set, w->config, all.width, all.height, name));
    }
    Image *pixels = make_view(w, &view, all, filter_of(w));
    /* The model reads one channel; a saturation of 0 makes the three channels equal. */
    if (set->channels == 1) image_saturation(pixels, 0);
    convert_view(w, &source, pixels, out);
    return OK;
}

/* ---- scenes ---- */

Status picture_read(PictureConverter *converter, Reader *reader, const DataBoxes *boxes,
                    int64_t sample, const Image **picture)
{
    PictureConverter *w = converter;
    const DataSet *set = w->set;
    const int height = boxes->size[2 * sample], width = boxes->size[2 * sample + 1];
    char name[DATA_PATH + 32];
    size_t count;
    int orientation;
    *picture = &w->from;
    sample_name(set, sample, name, sizeof name);
    if (!set->encoded) {
        if (!w->bytes) w->bytes = mem_new((size_t)set->x.sample_bytes);
        TRY(reader_get(reader, sample, w->bytes, NULL, NULL));
        convert_to_rgb(w, letterbox(width, height, (int)set->stored_width));
        return OK;
    }
    TRY(reader_get_encoded(reader, sample, &w->bytes, &w->capacity, &count, &orientation));
    TRY(image_decode(w->decoder, &w->from, w->bytes, count, name));
    image_apply_orientation(&w->from, &w->spare, orientation);
    if (w->from.width == width && w->from.height == height) return OK;
    return fail(ERR_DATA, "%s: has %dx%d pixels, its boxes are of %dx%d", name, w->from.width,
                w->from.height, width, height);
}

/* Resamples the visible part of a picture of a scene, and copies it to its place in w->padded. */
static void place_part(PictureConverter *w, const Image *picture, const ScenePart *p)
{
    const SceneBox *place = &p->place, *seen = &p->seen;
    const ImageBox all = {0, 0, picture->width, picture->height};
    const ImageBox part = {seen->x0 - place->x0, seen->y0 - place->y0, seen->x1 - seen->x0,
                           seen->y1 - seen->y0};
    image_set_size(&w->view, part.width, part.height);
    image_resample_part(w->resampler, picture, all, place->x1 - place->x0, place->y1 - place->y0,
                        part, &w->view, filter_of(w));
    for (int y = 0; y < part.height; ++y)
        memcpy(w->padded.pixel +
                   ((size_t)(seen->y0 + y) * (size_t)w->padded.width + (size_t)seen->x0) * 3,
               w->view.pixel + (size_t)y * (size_t)part.width * 3, (size_t)part.width * 3);
}

Status picture_prepare_scene(PictureConverter *converter, Reader *reader, const DataBoxes *boxes,
                             bool training, int64_t epoch, int64_t sample, float *out)
{
    PictureConverter *w = converter;
    const int side = (int)w->set->height;
    const SceneSource from = {w->set, w->config, boxes};
    const Scene scene = scene_choose(&from, training, epoch, sample);
    const PictureSource source = {.training = training, .epoch = epoch, .sample = sample};
    const Image *picture;
    image_set_size(&w->padded, side, side);
    memset(w->padded.pixel, LETTERBOX_GREY, (size_t)side * (size_t)side * 3);
    for (int i = 0; i < scene.count; ++i) {
        const ScenePart *p = &scene.part[i];
        if (p->seen.x1 <= p->seen.x0 || p->seen.y1 <= p->seen.y0) continue;
        TRY(picture_read(w, reader, boxes, p->sample, &picture));
        place_part(w, picture, p);
    }
    if (w->set->channels == 1) image_saturation(&w->padded, 0);
    convert_view(w, &source, &w->padded, out);
    return OK;
}

/* The changes of colour are made in a random order, each by a random amount. */
void picture_jitter(Image *image, const Config *config, RngKey key)
{
    enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES };
    const double *strength = config->data.color_jitter.value;
    uint32_t amount_word[CHANGES], order_word[CHANGES];
    int order[CHANGES] = {BRIGHTNESS, CONTRAST, SATURATION, HUE};
    rng_block(key, DRAW_JITTER, amount_word);
    rng_block(key, DRAW_ORDER, order_word);
    for (int i = CHANGES - 1; i > 0; --i) {
        int j = (int)draw_below(order_word[i], i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < CHANGES; ++i) {
        int k = order[i];
        double s = strength[k];
        if (s <= 0) continue;
        float factor = (float)draw_between(amount_word[k], s < 1 ? 1 - s : 0, 1 + s);
        if (k == BRIGHTNESS) image_brightness(image, factor);
        if (k == CONTRAST) image_contrast(image, factor);
        if (k == SATURATION) image_saturation(image, factor);
        if (k == HUE) image_hue(image, (int)(draw_between(amount_word[k], -s, s) * 255));
    }
}
