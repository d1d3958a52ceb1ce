/* Draws a matrix of links as a heat map: the higher the value, the stronger the colour. If
 * HeatMap.marks is set, slow pairs have a frame. */
#include "private.h"

#include <math.h>

/* Sizes in pixels. */
enum { LEFT = 44, TITLE = 22, TOP = 20, CELL_WIDTH = 52, CELL_HEIGHT = 24, CELLS_WIDTH = 832 };
/* PALE: opacity of a cell with the least value. DARK: opacity of a cell with the greatest value.
 * Numbers are legible on both. */
static const double PALE = 0.04, DARK = 0.45;
/* number of different opacities of cells */
enum { SHADES = 12 };

/* The cells of a heat map. */
typedef struct Cells {
    /* position of the first row, in pixels */
    int y;
    /* size of a cell, in pixels */
    double width, height;
    /* the least and the greatest value */
    double least, most;
} Cells;

static Cells cells_of(const Topology *t, const HeatMap *map, int y)
{
    bool numbers = t->ranks <= HEAT_NUMBERS_MAX;
    double side = (double)CELLS_WIDTH / t->ranks;
    Cells c = {y + TITLE + TOP, numbers ? CELL_WIDTH : side, numbers ? CELL_HEIGHT : side, INFINITY,
               -INFINITY};
    for (int a = 0; a < t->ranks; ++a)
        for (int b = 0; b < t->ranks; ++b) {
            if (a == b) continue;
            c.least = fmin(c.least, map->matrix[(int64_t)a * t->ranks + b]);
            c.most = fmax(c.most, map->matrix[(int64_t)a * t->ranks + b]);
        }
    return c;
}

/* Returns the shade of a value, 0 to SHADES - 1. */
static int shade_of(const Cells *c, double value)
{
    double part = c->most > c->least ? (value - c->least) / (c->most - c->least) : 0.5;
    return (int)fmin(part * SHADES, SHADES - 1);
}

/* Draws all cells of one shade as one path. */
static void put_shade(FILE *out, const Topology *t, const HeatMap *map, const Cells *c, int shade)
{
    fprintf(out, "<path class=\"cell\" fill-opacity=\"%.2f\" d=\"",
            PALE + (DARK - PALE) * shade / (SHADES - 1));
    for (int a = 0; a < t->ranks; ++a)
        for (int b = 0; b < t->ranks; ++b)
            if (a != b && shade_of(c, map->matrix[(int64_t)a * t->ranks + b]) == shade)
                fprintf(out, "M%.1f %.1fh%.1fv%.1fh%.1fz", LEFT + b * c->width,
                        c->y + a * c->height, c->width - 1, c->height - 1, 1 - c->width);
    fputs("\" />\n", out);
}

static void put_numbers(FILE *out, const Topology *t, const HeatMap *map, const Cells *c)
{
    for (int a = 0; a < t->ranks; ++a)
        for (int b = 0; b < t->ranks; ++b)
            if (a != b)
                fprintf(out, "<text text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%.3g</text>\n",
                        LEFT + (b + 0.5) * c->width, c->y + (a + 0.5) * c->height + 4,
                        map->scale * map->matrix[(int64_t)a * t->ranks + b]);
}

/* Writes the number of a rank to the left of its row and above its column. */
static void put_rank(FILE *out, const Cells *c, int rank)
{
    fprintf(out,
            "<text text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%d</text>"
            "<text text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%d</text>\n",
            LEFT - 6, c->y + (rank + 0.5) * c->height + 4, rank, LEFT + (rank + 0.5) * c->width,
            c->y - 6, rank);
}

/* Frames the cell of ranks a (row) and b (column). */
static void put_frame(FILE *out, const Cells *c, int a, int b)
{
    fprintf(out, "<rect class=\"slow\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" />\n",
            LEFT + b * c->width, c->y + a * c->height, c->width - 1, c->height - 1);
}

int heat_map(FILE *out, const Topology *t, const HeatMap *map, int y)
{
    const Cells c = cells_of(t, map, y);
    int height = TITLE + TOP + (int)ceil(t->ranks * c.height);
    if (!out) return height;
    svg_text(out, "bold", "start", 0, y + 15, map->title);
    for (int shade = 0; shade < SHADES; ++shade) put_shade(out, t, map, &c, shade);
    if (t->ranks <= HEAT_NUMBERS_MAX) put_numbers(out, t, map, &c);
    for (int a = 0; a < t->ranks; ++a)
        if (t->ranks <= 2 * HEAT_NUMBERS_MAX || a % 8 == 0) put_rank(out, &c, a);
    SlowPair *pair;
    int count = map->marks ? topo_slow_pairs(t, &pair) : 0;
    for (int i = 0; i < count; ++i) {
        put_frame(out, &c, pair[i].a, pair[i].b);
        put_frame(out, &c, pair[i].b, pair[i].a);
    }
    if (map->marks) mem_free(&pair);
    return height;
}
