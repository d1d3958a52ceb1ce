/* Converts a stored sample, or a resampled picture of RGB bytes, to float (C,H,W), in torchvision's
 * usual order. First comes RandomCrop, from the image padded with zeros; then RandomHorizontalFlip;
 * then the values are scaled and normalised, by one multiply-add per value. Then comes Cutout
 * (DeVries & Taylor 2017): a square of zeros, which is the mean of normalised images. Its centre
 * may be any pixel, so the image's edge may cut it. Last is RandomErasing (Zhong et al. 2017).
 * Random choices depend on (seed, epoch, sample) only. */
#include "../data_private.h"

/* Random choices for one sample. */
typedef struct Choice {
    /* true: the image is mirrored */
    bool flip;
    /* crop: pixel (y, x) of the result before a flip is pixel (y + dy, x + dx) of the image, or
     * padding */
    int64_t dy, dx;
    /* cutout: the square has rows cut_y0 to cut_y1 - 1 and columns cut_x0 to cut_x1 - 1; cut_y0
     * equal to cut_y1: no cutout */
    int64_t cut_y0, cut_y1, cut_x0, cut_x1;
    /* rectangle to set to zero in all channels; height 0: none */
    ImageBox erase;
} Choice;

/* One channel of an image as it is stored, and its conversion. */
typedef struct Plane {
    ElementType type;
    const uint8_t *raw;
    int64_t height, width;
    /* distances in elements: row_step from a row to the next one, pixel_step from a pixel to the
     * next */
    int64_t row_step, pixel_step;
    /* the converted value of an element is raw * a + b */
    float a, b;
} Plane;

static int64_t clip(int64_t v, int64_t high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

RngKey augment_key(const Config *config, int64_t epoch, int64_t sample)
{
    return rng_key((uint64_t)config->run.seed, RNG_AUGMENT, (uint64_t)epoch, (uint64_t)sample);
}

bool augment_flips(const Config *config, int64_t epoch, int64_t sample)
{
    uint32_t r[4];
    if (!(config->data.augment & AUGMENT_FLIP)) return false;
    rng_block(augment_key(config, epoch, sample), DRAW_FLIP_CROP, r);
    return r[0] >> 31;
}

static Choice choose(const DataSet *set, const Config *config, int64_t epoch, int64_t sample)
{
    Choice c = {0};
    uint32_t r[4], cut[4];
    int augment = config->data.augment;
    RngKey key = augment_key(config, epoch, sample);
    rng_block(key, DRAW_FLIP_CROP, r);
    c.flip = augment_flips(config, epoch, sample);
    if (augment & AUGMENT_CROP) {
        int64_t pad = config->data.crop_pad;
        c.dy = draw_below(r[1], 2 * pad + 1) - pad;
        c.dx = draw_below(r[2], 2 * pad + 1) - pad;
    }
    if (augment & AUGMENT_CUTOUT) {
        int64_t size = config->data.cutout_size;
        rng_block(key, DRAW_CUTOUT, cut);
        int64_t y = draw_below(cut[0], set->height) - size / 2,
                x = draw_below(cut[1], set->width) - size / 2;
        c.cut_y0 = clip(y, set->height), c.cut_y1 = clip(y + size, set->height);
        c.cut_x0 = clip(x, set->width), c.cut_x1 = clip(x + size, set->width);
    }
    if (config->data.erasing > 0) c.erase = choose_erasing(set, config, key);
    return c;
}

static void fill(float *to, int64_t n, float value)
{
    for (int64_t i = 0; i < n; ++i) to[i] = value;
}

/* Converts row y of the result. Its columns first .. end - 1 come from the stored image, the other
 * columns are padding (converted zeros). A flip mirrors the row. */
static void convert_row(const Plane *p, const Choice *c, int64_t y, float *to)
{
    int64_t width = p->width, raw_y = y + c->dy;
    int64_t first = clip(-c->dx, width), end = clip(width - c->dx, width);
    if (raw_y < 0 || raw_y >= p->height || first >= end) {
        fill(to, width, p->b);
        return;
    }
    const uint8_t *raw = p->raw + (size_t)(raw_y * p->row_step + (first + c->dx) * p->pixel_step) *
                                      element_bytes(p->type);
    if (c->flip) {
        fill(to + width - first, first, p->b);
        fill(to, width - end, p->b);
        element_scale_row(p->type, to + width - 1 - first, -1, raw, p->pixel_step, end - first,
                          p->a, p->b);
    } else {
        fill(to, first, p->b);
        fill(to + end, width - end, p->b);
        element_scale_row(p->type, to + first, 1, raw, p->pixel_step, end - first, p->a, p->b);
    }
}

static void convert_plane(const Plane *p, const Choice *c, float *to)
{
    bool unmoved = !c->flip && c->dy == 0 && c->dx == 0;
    if (unmoved && p->row_step == p->width * p->pixel_step)
        element_scale_row(p->type, to, 1, p->raw, p->pixel_step, p->height * p->width, p->a, p->b);
    else
        for (int64_t y = 0; y < p->height; ++y) convert_row(p, c, y, to + y * p->width);
    for (int64_t y = c->cut_y0; y < c->cut_y1; ++y)
        fill(to + y * p->width + c->cut_x0, c->cut_x1 - c->cut_x0, 0.0f);
}

/* Returns whether this file applies the set's mean and deviation. It does not for fields, which
 * their reader normalises. */
static bool normalises(const DataSet *set)
{
    return set->has_stats && !data_has_fields(set);
}

/* Sets a and b so that raw * a + b is (raw * scale - mean) / std, with entry i of mean and std. */
static inline void affine_by(const DataSet *set, int64_t i, float *a, float *b)
{
    *a = (float)((double)set->scale / (double)set->std[i]);
    *b = (float)(-(double)set->mean[i] / (double)set->std[i]);
}

/* Sets a and b of the conversion raw * a + b of a channel. */
static void affine(const DataSet *set, int64_t channel, float *a, float *b)
{
    *a = (float)set->scale, *b = 0;
    if (normalises(set)) affine_by(set, set->stats_count == 1 ? 0 : channel, a, b);
}

static bool has_choices(const DataSet *set, const Config *config, bool training)
{
    return training && data_has_images(set) && config &&
           (config->data.augment || config->data.erasing > 0);
}

/* Erases the chosen rectangle of a normalised sample (C,H,W). */
static void augment_normalised(const DataSet *set, const Choice *c, float *out)
{
    for (int64_t k = 0; k < set->channels; ++k)
        for (int y = c->erase.y; y < c->erase.y + c->erase.height; ++y)
            fill(out + (k * set->height + y) * set->width + c->erase.x, c->erase.width, 0.0f);
}

/* Converts a sample that has one value per channel. */
static void convert_values(const DataSet *set, const void *raw, float *out)
{
    const int64_t n = set->channels;
    float a, b;
    if (set->stats_count <= 1 || !normalises(set)) {
        affine(set, 0, &a, &b);
        element_scale_row(set->x.type, out, 1, raw, 1, n, a, b);
        return;
    }
    element_scale_row(set->x.type, out, 1, raw, 1, n, 1.0f, 0.0f);
#pragma omp simd private(a, b)
    for (int64_t i = 0; i < n; ++i) {
        affine_by(set, i, &a, &b);
        out[i] = out[i] * a + b;
    }
}

void augment_sample(const DataSet *set, const Config *config, bool training, int64_t epoch,
                    int64_t sample, const void *raw, float *out)
{
    const bool chooses = has_choices(set, config, training);
    int64_t pixels = set->height * set->width, step = set->channels_last ? set->channels : 1;
    if (pixels == 1 && !chooses) {
        convert_values(set, raw, out);
        return;
    }
    const Choice choice = chooses ? choose(set, config, epoch, sample) : (Choice){0};
    Plane p = {.type = set->x.type,
               .height = set->height,
               .width = set->width,
               .row_step = set->width * step,
               .pixel_step = step};
    for (int64_t c = 0; c < set->channels; ++c) {
        affine(set, c, &p.a, &p.b);
        p.raw = (const uint8_t *)raw +
                (size_t)(set->channels_last ? c : c * pixels) * element_bytes(p.type);
        convert_plane(&p, &choice, out + c * pixels);
    }
    augment_normalised(set, &choice, out);
}

/* Converts a picture that is not cropped, all three channels of a pixel together, and applies the
 * cutout. */
static void convert_rgb(const DataSet *set, const Choice *choice, const Image *picture, float *out)
{
    int64_t height = set->height, width = set->width, pixels = height * width;
    float a[3], b[3];
    for (int c = 0; c < 3; ++c) affine(set, c, &a[c], &b[c]);
    for (int64_t y = 0; y < height; ++y) {
        float *row = out + y * width + (choice->flip ? width - 1 : 0);
        float *const to[3] = {row, row + pixels, row + 2 * pixels};
        rgb_row(to, picture->pixel + y * width * 3, (int)width, a, b, choice->flip);
    }
    for (int64_t c = 0; c < 3; ++c)
        for (int64_t y = choice->cut_y0; y < choice->cut_y1; ++y)
            fill(out + c * pixels + y * width + choice->cut_x0, choice->cut_x1 - choice->cut_x0,
                 0.0f);
}

void augment_picture(const DataSet *set, const Config *config, bool training, int64_t epoch,
                     int64_t sample, const Image *picture, float *out)
{
    Choice choice = {0};
    if (has_choices(set, config, training)) choice = choose(set, config, epoch, sample);
    Plane p = {.type = ELEM_U8,
               .height = set->height,
               .width = set->width,
               .row_step = set->width * 3,
               .pixel_step = 3};
    if (set->channels == 3 && choice.dy == 0 && choice.dx == 0) {
        convert_rgb(set, &choice, picture, out);
    } else {
        for (int64_t c = 0; c < set->channels; ++c) {
            affine(set, c, &p.a, &p.b);
            p.raw = picture->pixel + c;
            convert_plane(&p, &choice, out + c * set->height * set->width);
        }
    }
    augment_normalised(set, &choice, out);
}
