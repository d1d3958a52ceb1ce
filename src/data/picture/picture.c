/* Prepares a picture for the model:
 *
 *     bytes -- decode what the view needs --+
 *     uint8 array -- interleave that part --+-> RGB -- resample --> colours --> augment_picture
 *
 * The part of the picture to use is chosen before decoding (view.c), so that of a JPEG only this
 * part is decoded. A picture that must be rotated is decoded whole. */
#include "../data_private.h"

#include <string.h>

struct PictureWork {
    /* borrowed */
    const DataSet *set;
    const Config *config;
    ImageDecoder *decoder;
    ImageResampler *resampler;
    /* decoded part; scratch for rotation; resampled view; view with padding */
    Image from, spare, cut, out;
    /* owned: bytes of a picture file, or a stored image */
    uint8_t *bytes;
    size_t room;
};

/* the picture to prepare: a sample of the set, or from another source */
typedef struct Taking {
    bool training;
    int64_t epoch, sample;
    const char *name;
} Taking;

PictureWork *picture_work_new(const DataSet *set, const Config *config)
{
    PictureWork *w = mem_new(sizeof *w);
    w->set = set;
    w->config = config;
    w->decoder = image_decoder_new();
    w->resampler = image_resampler_new();
    return w;
}

void picture_work_free(PictureWork **work)
{
    PictureWork *w = *work;
    if (!w) return;
    image_decoder_free(&w->decoder);
    image_resampler_free(&w->resampler);
    image_fini(&w->from);
    image_fini(&w->spare);
    image_fini(&w->cut);
    image_fini(&w->out);
    mem_free(&w->bytes);
    mem_free(work);
}

/* Estimates the memory: a photograph of usual size decoded, between the two resampling passes, and
 * cropped; and its file. */
size_t picture_work_bytes(const DataSet *set)
{
    enum { USUAL_PIXELS = 500 * 375, USUAL_FILE = 128 << 10, RGB = 3 };
    int64_t stored = set->encoded ? USUAL_PIXELS : set->stored_height * set->stored_width;
    return (size_t)(stored * RGB * 3 + set->height * set->width * RGB * 2 + USUAL_FILE);
}

static Status view_of(const PictureWork *w, const Taking *t, int width, int height, PictureView *v)
{
    if (!t->training) return view_choose_evaluation(v, w->set, w->config, width, height, t->name);
    RngKey key = augment_key(w->config, t->epoch, t->sample);
    return view_choose_training(v, w->set, w->config, key, width, height, t->name);
}

/* Returns the part of the picture that the view needs: only the pixels kept, if nothing is
 * resampled. */
static ImageBox view_need(const PictureView *v)
{
    ImageBox need = v->box;
    if (v->width == v->box.width && v->part.x >= 0 && v->part.x + v->part.width <= v->width) {
        need.x += v->part.x;
        need.width = v->part.width;
    }
    if (v->height == v->box.height && v->part.y >= 0 && v->part.y + v->part.height <= v->height) {
        need.y += v->part.y;
        need.height = v->part.height;
    }
    return need;
}

/* Copies the resampled view into a larger image with padding of zeros. */
static Image *with_padding(PictureWork *w, ImageBox part, ImageBox inside)
{
    image_set_size(&w->out, part.width, part.height);
    memset(w->out.pixel, 0, (size_t)part.width * (size_t)part.height * 3);
    for (int y = 0; y < inside.height; ++y)
        memcpy(w->out.pixel + ((size_t)(inside.y - part.y + y) * (size_t)part.width +
                               (size_t)(inside.x - part.x)) *
                                  3,
               w->cut.pixel + (size_t)y * (size_t)inside.width * 3, (size_t)inside.width * 3);
    return &w->out;
}

static ImageFilter filter_of(const PictureWork *w)
{
    return w->config ? (ImageFilter)w->config->data.filter : IMAGE_BILINEAR;
}

/* Returns the view's pixels. w->from holds the part `have` of the picture. */
static Image *view_cut(PictureWork *w, const PictureView *v, ImageBox have, ImageFilter filter)
{
    ImageBox box = v->box, inside = v->part;
    box.x -= have.x;
    box.y -= have.y;
    if (inside.x < 0) inside.width += inside.x, inside.x = 0;
    if (inside.y < 0) inside.height += inside.y, inside.y = 0;
    if (inside.width > v->width - inside.x) inside.width = v->width - inside.x;
    if (inside.height > v->height - inside.y) inside.height = v->height - inside.y;
    image_set_size(&w->cut, inside.width, inside.height);
    image_resample_part(w->resampler, &w->from, box, v->width, v->height, inside, &w->cut, filter);
    bool whole = inside.width == v->part.width && inside.height == v->part.height;
    return whole ? &w->cut : with_padding(w, v->part, inside);
}

static void finish(PictureWork *w, const Taking *t, Image *picture, float *out)
{
    if (t->training && w->config->data.color_jitter.count)
        picture_jitter(picture, w->config, augment_key(w->config, t->epoch, t->sample));
    augment_picture(w->set, w->config, t->training, t->epoch, t->sample, picture, out);
}

static Status decode(PictureWork *w, const Taking *t, size_t count, int orientation,
                     PictureView *view, ImageBox *have)
{
    ImageHead head;
    TRY(image_read_head(&head, w->bytes, count, t->name));
    bool swap = orientation >= 5;
    int width = swap ? head.height : head.width, height = swap ? head.width : head.height;
    TRY(view_of(w, t, width, height, view));
    ImageBox need = orientation > 1 ? (ImageBox){0, 0, head.width, head.height} : view_need(view);
    TRY(image_decode_part(w->decoder, &w->from, w->bytes, count, &head, need, have, t->name));
    image_turn(&w->from, &w->spare, orientation);
    if (orientation > 1) *have = (ImageBox){0, 0, width, height};
    return OK;
}

/* Converts a part of a stored image to RGB; grey becomes three equal channels. */
static void interleave(PictureWork *w, ImageBox part)
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

static Status take_stored(PictureWork *w, Reader *reader, const Taking *t, PictureView *view,
                          ImageBox *have)
{
    const DataSet *set = w->set;
    if (!w->bytes) w->bytes = mem_new((size_t)set->x.sample_bytes);
    TRY(reader_get(reader, t->sample, w->bytes, NULL, NULL));
    TRY(view_of(w, t, (int)set->stored_width, (int)set->stored_height, view));
    *have = view_need(view);
    interleave(w, *have);
    return OK;
}

Status picture_prepare_sample(PictureWork *work, Reader *reader, bool training, int64_t epoch,
                              int64_t sample, float *out)
{
    PictureWork *w = work;
    char name[DATA_PATH + 32];
    Taking t = {training, epoch, sample, name};
    PictureView view;
    ImageBox have;
    size_t count;
    int orientation;
    sample_name(w->set, sample, name, sizeof name);
    if (w->set->encoded) {
        TRY(reader_get_encoded(reader, sample, &w->bytes, &w->room, &count, &orientation));
        TRY(decode(w, &t, count, orientation, &view, &have));
    } else {
        TRY(take_stored(w, reader, &t, &view, &have));
    }
    finish(w, &t, view_cut(w, &view, have, filter_of(w)), out);
    return OK;
}

/* Chooses the view that an import of decoded images uses: resized to cover the stored size, and
 * centre cropped. */
static Status view_stored(PictureView *v, const DataSet *set, const Image *picture,
                          const char *name)
{
    int width = (int)set->stored_width, height = (int)set->stored_height;
    *v = (PictureView){.box = {0, 0, picture->width, picture->height}};
    TRY(view_set_size(v, width, height, name));
    v->part = (ImageBox){view_centre_offset(v->width, width), view_centre_offset(v->height, height),
                         width, height};
    return OK;
}

Status picture_prepare(PictureWork *work, const Image *picture, const char *name, float *out)
{
    PictureWork *w = work;
    const DataSet *set = w->set;
    Taking t = {0};
    ImageBox all = {0, 0, picture->width, picture->height};
    image_set_size(&w->from, picture->width, picture->height);
    memcpy(w->from.pixel, picture->pixel, (size_t)picture->width * (size_t)picture->height * 3);
    if (!set->encoded &&
        (picture->width != set->stored_width || picture->height != set->stored_height)) {
        PictureView stored;
        TRY(view_stored(&stored, set, picture, name));
        Image *cut = view_cut(w, &stored, all, set->bicubic ? IMAGE_BICUBIC : IMAGE_BILINEAR);
        Image size = w->from;
        w->from = *cut;
        *cut = size;
        all = (ImageBox){0, 0, w->from.width, w->from.height};
    }
    PictureView view = {.box = all, .part = all, .width = all.width, .height = all.height};
    if (data_needs_picture_work(set, w->config))
        TRY(view_choose_evaluation(&view, set, w->config, all.width, all.height, name));
    Image *cut = view_cut(w, &view, all, filter_of(w));
    if (set->channels == 1) image_saturation(cut, 0);
    finish(w, &t, cut, out);
    return OK;
}

/* Applies up to four changes of colour in random order. */
void picture_jitter(Image *image, const Config *config, RngKey key)
{
    const double *by = config->data.color_jitter.value;
    uint32_t r[4], o[4];
    int order[4] = {0, 1, 2, 3};
    rng_block(key, DRAW_JITTER, r);
    rng_block(key, DRAW_ORDER, o);
    for (int i = 3; i > 0; --i) {
        int j = (int)draw_below(o[i], i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < 4; ++i) {
        int k = order[i];
        if (by[k] <= 0) continue;
        double least = by[k] < 1 ? 1 - by[k] : 0;
        float factor = (float)draw_between(r[k], least, 1 + by[k]);
        if (k == 0) image_brightness(image, factor);
        if (k == 1) image_contrast(image, factor);
        if (k == 2) image_saturation(image, factor);
        if (k == 3) image_hue(image, (int)(draw_between(r[k], -by[k], by[k]) * 255));
    }
}
