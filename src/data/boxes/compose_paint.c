/* Paints a scene: first a gradient, lines and rectangles, and pieces of images, which have no box;
 * then the objects; at last noise over everything. A pixel of an object's scaled image with the
 * value a has the opacity a / 255 and the object's colour times a / 255. */
#include "compose_private.h"

#include <string.h>

enum {
    /* smallest and largest number of lines and rectangles */
    SHAPES_LEAST = 3,
    SHAPES_MOST = 8,
    /* smallest and largest number of pieces of images */
    PIECES_LEAST = 6,
    PIECES_MOST = 12,
    /* smallest and largest side of a piece, in pixels */
    PIECE_LEAST = 8,
    PIECE_MOST = 14,
    /* smallest and largest side of the scaled image from which a piece is cut, in pixels */
    CUT_LEAST = 28,
    CUT_MOST = 64,
    /* smallest and largest value of the gradient's corners and of the colours of shapes */
    DARK = 20,
    BRIGHT = 220,
    /* smallest and largest standard deviation of the noise */
    SIGMA_LEAST = 8,
    SIGMA_MOST = 16
};

/* A scene that is being painted. */
typedef struct Canvas {
    int side;
    /* red, green and blue, (3, side, side); borrowed */
    uint8_t *pixel;
} Canvas;

/* Returns a random integer from `least` to `most`. */
static int random_between(Draws *d, int least, int most)
{
    return least + (int)draw_below(draw_word(d), most - least + 1);
}

/* Fills the canvas with colours that are interpolated between random values of the corners. */
static void paint_gradient(const Canvas *c, Draws *d)
{
    int n = c->side - 1;
    for (int k = 0; k < 3; ++k) {
        int64_t corner[4];
        for (int i = 0; i < 4; ++i) corner[i] = random_between(d, DARK, BRIGHT);
        uint8_t *to = c->pixel + k * c->side * c->side;
        for (int y = 0; y <= n; ++y) {
            int64_t left = corner[0] * (n - y) + corner[1] * y;
            int64_t right = corner[2] * (n - y) + corner[3] * y;
            for (int x = 0; x <= n; ++x)
                *to++ = (uint8_t)((left * (n - x) + right * x) / ((int64_t)n * n));
        }
    }
}

/* Fills a rectangle; parts of it may be outside the scene. */
static void fill(const Canvas *c, ImageBox box, const uint8_t colour[3])
{
    for (int y = box.y; y < box.y + box.height; ++y)
        for (int x = box.x; x < box.x + box.width; ++x)
            if (x >= 0 && y >= 0 && x < c->side && y < c->side)
                for (int k = 0; k < 3; ++k) c->pixel[(k * c->side + y) * c->side + x] = colour[k];
}

static void paint_line(const Canvas *c, Draws *d, const uint8_t colour[3])
{
    int x0 = random_between(d, 0, c->side - 1), y0 = random_between(d, 0, c->side - 1);
    int dx = random_between(d, 0, c->side - 1) - x0, dy = random_between(d, 0, c->side - 1) - y0;
    int width = random_between(d, 1, 3);
    for (int i = 0; i <= c->side; ++i)
        fill(c, (ImageBox){x0 + dx * i / c->side, y0 + dy * i / c->side, width, width}, colour);
}

static void paint_shapes(const Canvas *c, Draws *d)
{
    int count = random_between(d, SHAPES_LEAST, SHAPES_MOST);
    for (int i = 0; i < count; ++i) {
        uint8_t colour[3];
        for (int k = 0; k < 3; ++k) colour[k] = (uint8_t)random_between(d, DARK, BRIGHT);
        if (draw_word(d) >> 31) {
            paint_line(c, d, colour);
            continue;
        }
        int x = random_between(d, 0, c->side - 1), y = random_between(d, 0, c->side - 1);
        int width = random_between(d, 4, 4 + c->side / 3),
            height = random_between(d, 4, 4 + c->side / 3);
        fill(c, (ImageBox){x, y, width, height}, colour);
    }
}

/* Paints the part `from` of the scaled image, in a colour, with its corner at (x, y) of the
 * scene. */
static void blend(const Canvas *c, const ComposeWork *w, ImageBox from, int x, int y,
                  const uint8_t colour[3])
{
    for (int v = 0; v < from.height; ++v) {
        for (int u = 0; u < from.width; ++u) {
            int a = compose_alpha(w, from.x + u, from.y + v), at = (y + v) * c->side + x + u;
            if (x + u < 0 || y + v < 0 || x + u >= c->side || y + v >= c->side) continue;
            for (int k = 0; k < 3; ++k) {
                uint8_t *p = c->pixel + k * c->side * c->side + at;
                *p = (uint8_t)((*p * (255 - a) * 255 + a * a * colour[k] + 32512) / 65025);
            }
        }
    }
}

static Status paint_pieces(const Canvas *c, const Composer *composer, ComposeWork *w, Draws *d)
{
    int count = random_between(d, PIECES_LEAST, PIECES_MOST);
    for (int i = 0; i < count; ++i) {
        int64_t image = draw_below(draw_word(d), composer->images->samples);
        int side = random_between(d, PIECE_LEAST, PIECE_MOST),
            cut = random_between(d, CUT_LEAST, CUT_MOST);
        int u = random_between(d, 0, cut - side), v = random_between(d, 0, cut - side);
        int x = random_between(d, 0, c->side - side), y = random_between(d, 0, c->side - side);
        uint8_t colour[3];
        int32_t class;
        for (int k = 0; k < 3; ++k) colour[k] = (uint8_t)random_between(d, 96, 255);
        TRY(compose_load(composer, w, image, cut, &class));
        blend(c, w, (ImageBox){u, v, side, side}, x, y, colour);
    }
    return OK;
}

/* Adds noise: the sum of the four bytes of a random word is nearly normal, with mean 510 and
 * standard deviation 147.8. */
static void add_noise(const Canvas *c, RngKey key, int sigma)
{
    int64_t values = 3 * (int64_t)c->side * c->side;
    for (int64_t i = 0; i < values; i += 4) {
        uint32_t word[4];
        rng_block(key, (uint64_t)i / 4, word);
        for (int64_t k = i; k < values && k < i + 4; ++k) {
            uint32_t r = word[k - i];
            int sum = (int)((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24)) - 510;
            int v = c->pixel[k] + sum * sigma * 10 / 1478;
            c->pixel[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

Status compose_paint(const Composer *composer, ComposeWork *work, int64_t scene,
                     const Composition *plan, uint8_t *out)
{
    Canvas c = {composer->side, out};
    uint64_t number = (uint64_t)scene;
    Draws d = {rng_key(composer->seed, RNG_TEST, number, COMPOSE_PAINT), 0};
    int sigma = random_between(&d, SIGMA_LEAST, SIGMA_MOST);
    if (composer->plain) {
        memset(out, 0, 3 * (size_t)c.side * (size_t)c.side);
    } else {
        paint_gradient(&c, &d);
        paint_shapes(&c, &d);
        TRY(paint_pieces(&c, composer, work, &d));
    }
    for (int i = 0; i < plan->count; ++i) {
        const ComposedObject *o = &plan->object[i];
        int32_t class;
        TRY(compose_load(composer, work, o->image, o->side, &class));
        blend(&c, work, (ImageBox){0, 0, o->side, o->side}, o->x, o->y, o->colour);
    }
    if (!composer->plain)
        add_noise(&c, rng_key(composer->seed, RNG_TEST, number, COMPOSE_NOISE), sigma);
    return OK;
}
