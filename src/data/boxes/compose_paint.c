/* Paints a scene: a gradient, lines and rectangles, pieces of images that have no label, then the
 * objects, and noise over all. An object's pixel of value a has the opacity a / 255 and the
 * object's colour times a / 255. */
#include "compose_private.h"

#include <string.h>

enum {
    /* number of lines and rectangles */
    SHAPES_LEAST = 3,
    SHAPES_MOST = 8,
    /* number of pieces of images */
    PIECES_LEAST = 6,
    PIECES_MOST = 12,
    /* side of a piece, and of the scaled image that it is cut from, in pixels */
    PIECE_LEAST = 8,
    PIECE_MOST = 14,
    CUT_LEAST = 28,
    CUT_MOST = 64,
    /* values of the gradient's corners and of the colours of shapes */
    DARK = 20,
    BRIGHT = 220,
    /* standard deviation of the noise */
    SIGMA_LEAST = 8,
    SIGMA_MOST = 16
};

/* A scene while it is painted: three planes of side x side pixels. */
typedef struct Canvas {
    int side;
    uint8_t *pixel;
} Canvas;

static int draw_whole(Draws *d, int least, int most)
{
    return least + (int)draw_below(draw_word(d), most - least + 1);
}

/* Fills the canvas with colours that are interpolated between random values of the corners. */
static void paint_gradient(const Canvas *c, Draws *d)
{
    int n = c->side - 1;
    for (int k = 0; k < 3; ++k) {
        int64_t corner[4];
        for (int i = 0; i < 4; ++i) corner[i] = draw_whole(d, DARK, BRIGHT);
        uint8_t *to = c->pixel + k * c->side * c->side;
        for (int y = 0; y <= n; ++y) {
            int64_t left = corner[0] * (n - y) + corner[1] * y;
            int64_t right = corner[2] * (n - y) + corner[3] * y;
            for (int x = 0; x <= n; ++x)
                *to++ = (uint8_t)((left * (n - x) + right * x) / ((int64_t)n * n));
        }
    }
}

/* Fills a rectangle, of which parts may be outside. */
static void fill(const Canvas *c, ImageBox box, const uint8_t colour[3])
{
    for (int y = box.y; y < box.y + box.height; ++y)
        for (int x = box.x; x < box.x + box.width; ++x)
            if (x >= 0 && y >= 0 && x < c->side && y < c->side)
                for (int k = 0; k < 3; ++k) c->pixel[(k * c->side + y) * c->side + x] = colour[k];
}

static void paint_line(const Canvas *c, Draws *d, const uint8_t colour[3])
{
    int x0 = draw_whole(d, 0, c->side - 1), y0 = draw_whole(d, 0, c->side - 1);
    int dx = draw_whole(d, 0, c->side - 1) - x0, dy = draw_whole(d, 0, c->side - 1) - y0;
    int width = draw_whole(d, 1, 3);
    for (int i = 0; i <= c->side; ++i)
        fill(c, (ImageBox){x0 + dx * i / c->side, y0 + dy * i / c->side, width, width}, colour);
}

static void paint_shapes(const Canvas *c, Draws *d)
{
    int count = draw_whole(d, SHAPES_LEAST, SHAPES_MOST);
    for (int i = 0; i < count; ++i) {
        uint8_t colour[3];
        for (int k = 0; k < 3; ++k) colour[k] = (uint8_t)draw_whole(d, DARK, BRIGHT);
        if (draw_word(d) >> 31) {
            paint_line(c, d, colour);
            continue;
        }
        int x = draw_whole(d, 0, c->side - 1), y = draw_whole(d, 0, c->side - 1);
        int width = draw_whole(d, 4, 4 + c->side / 3), height = draw_whole(d, 4, 4 + c->side / 3);
        fill(c, (ImageBox){x, y, width, height}, colour);
    }
}

/* Paints the part `from` of the scaled image at (x, y) of the scene. */
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
    int count = draw_whole(d, PIECES_LEAST, PIECES_MOST);
    for (int i = 0; i < count; ++i) {
        int64_t image = draw_below(draw_word(d), composer->images->samples);
        int side = draw_whole(d, PIECE_LEAST, PIECE_MOST), cut = draw_whole(d, CUT_LEAST, CUT_MOST);
        int u = draw_whole(d, 0, cut - side), v = draw_whole(d, 0, cut - side);
        int x = draw_whole(d, 0, c->side - side), y = draw_whole(d, 0, c->side - side);
        uint8_t colour[3];
        int32_t class;
        for (int k = 0; k < 3; ++k) colour[k] = (uint8_t)draw_whole(d, 96, 255);
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
    int sigma = draw_whole(&d, SIGMA_LEAST, SIGMA_MOST);
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
