/* Products of dense layers (Goto and van de Geijn 2008, section 4). Blocks of a and b are copied to
 * memory that is read sequentially, or are read in place. They are multiplied with sums in
 * registers: 14 x 2 vectors with AVX-512, else 6 x 2. A block of b is copied as panels of
 * TILE_COLUMNS columns. A block of a is copied row by row if the terms of a row are contiguous in
 * a, else as panels of TILE_ROWS rows. In a panel, the elements of one term are side by side. With
 * slices, there is a block of partial sums for each level of the tree that joins slices, small
 * enough for a core's cache. While the sum of a slice is in registers, it is joined with these
 * partial sums. */
#include "dense_tile.h"

enum {
    /* floats from one row to the next in the copy of a block of a whose terms are contiguous */
    ROW_DISTANCE = DENSE_DEPTH + 16,
    BLOCK_COLUMNS = VECTOR == 16 ? DENSE_BLOCK_COLUMNS : DENSE_BLOCK_COLUMNS / 2,
    /* Vectors that follow one another are read in place if they begin at most IN_PLACE floats
     * apart, and if that distance is at least a vector away from any multiple of CACHE_PERIOD
     * floats. */
    IN_PLACE = 1024,
    CACHE_PERIOD = 512,
    /* number of rows by which data are prefetched ahead into the first-level cache while rows are
     * copied */
    ROWS_AHEAD = 16,
};

/* Transposes 8 x 8 floats: to[k][j] = from[j][k]. from_row, to_row: floats from one row to the
 * next. */
typedef float Eight __attribute__((vector_size(32)));
typedef int32_t EightPlaces __attribute__((vector_size(32)));
#define EIGHT_LANES(a, b, ...) VECTOR_SHUFFLE(EightPlaces, a, b, __VA_ARGS__)
SIMD_INLINE void transpose(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    enum { SIDE = 8 };
    Eight row[SIDE], two[SIDE], four[SIDE];
    for (int i = 0; i < SIDE; ++i) VECTOR_LOAD(row[i], from + i * from_row);
    for (int i = 0; i < SIDE; i += 2) {
        two[i] = EIGHT_LANES(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        two[i + 1] = EIGHT_LANES(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < SIDE; i += 4)
        for (int h = 0; h < 2; ++h) {
            four[i + 2 * h] = EIGHT_LANES(two[i + h], two[i + h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            four[i + 2 * h + 1] =
                EIGHT_LANES(two[i + h], two[i + h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < SIDE / 2; ++i) {
        Eight low = EIGHT_LANES(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        Eight high = EIGHT_LANES(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        VECTOR_STORE(to + i * to_row, low);
        VECTOR_STORE(to + (i + SIDE / 2) * to_row, high);
    }
}

/* Fills columns `first` to `end` - 1 of a panel with `depth` terms: panel[k][j] = from[k * row + j
 * * column]. width: number of columns of the panel. */
SIMD_INLINE void pack_columns(const float *from, int64_t row, int64_t column, int64_t depth,
                              int first, int end, const int width, float *panel)
{
    for (int64_t k = 0; k < depth && first < end; ++k)
        for (int j = first; j < end; ++j) panel[k * width + j] = from[k * row + j * column];
}

/* Fills a panel with `depth` terms from contiguous rows, which begin `row` floats apart. Copies
 * `used` floats of each row; the rest of the panel's columns become 0. */
SIMD_INLINE void pack_rows(const float *from, int64_t row, int64_t depth, int used, const int width,
                           float *panel)
{
    for (int64_t k = 0; k < depth; ++k, from += row, panel += width)
        for (int j = 0; j < width; j += VECTOR) {
            const int64_t room = min_of(width - j, VECTOR), some = min_of(used - j, room);
            __builtin_prefetch(from + ROWS_AHEAD * row + j);
            some_store(panel + j, some_load(from + j, some > 0 ? some : 0), room);
        }
}

/* Fills a panel with `depth` terms: panel[k][j] = from[k * row + j * column], with zeros from
 * column `count` on. If possible, blocks of 8 x 8 are transposed; the last block in either
 * direction overlaps the one before it. */
SIMD_INLINE void pack(const float *from, int64_t row, int64_t column, int64_t depth, int64_t count,
                      const int width, float *panel)
{
    enum { SIDE = 8 };
    const int used = count < width ? (int)count : width;
    int j = 0;
    if (column == 1) {
        if (used == width)
            pack_rows(from, row, depth, width, width, panel);
        else
            pack_rows(from, row, depth, used, width, panel);
        return;
    }
    if (used < width) memset(panel, 0, (size_t)(depth * width) * sizeof *panel);
    for (; row == 1 && depth >= SIDE && used >= SIDE && j < used; j += SIDE)
        for (int64_t k = 0; k < depth; k += SIDE) {
            const int64_t x = min_of(j, used - SIDE), y = min_of(k, depth - SIDE);
            transpose(from + x * column + y, column, panel + y * width + x, width);
        }
    pack_columns(from, row, column, depth, (int)min_of(j, used), used, width, panel);
}

/* The terms `first` to `first` + `depth` - 1 of all sums. */
typedef struct Terms {
    int64_t first, depth;
} Terms;

/* Returns whether vectors that begin `distance` floats apart are read in place: if only few of them
 * share a set of a core's caches, and they are on few pages. */
static bool reads_in_place(int64_t distance)
{
    const int64_t beyond = distance % CACHE_PERIOD;
    return distance <= IN_PLACE && beyond >= VECTOR && beyond <= CACHE_PERIOD - VECTOR;
}

static bool a_in_place(const DenseProduct *p)
{
    return p->a_col == 1 ? reads_in_place(p->a_row) : p->a_row == 1 && reads_in_place(p->a_col);
}

/* Returns whether panels of b that have all TILE_COLUMNS columns are read in place. */
static bool b_in_place(const DenseProduct *p)
{
    return p->b_col == 1 && reads_in_place(p->b_row);
}

/* Sets a, a_step, a_row and panels of *tile for rows `row` to `end` - 1 of a. The rows are used in
 * place, or copied to `room`: as rows if their terms are contiguous, else as panels of TILE_ROWS
 * rows. */
static void place_a(const DenseProduct *p, int64_t row, int64_t end, Terms terms, float *room,
                    Tile *tile)
{
    const float *from = p->a + row * p->a_row + terms.first * p->a_col;
    const int64_t rows = end - row;
    tile->panels = p->a_col != 1;
    if (a_in_place(p)) {
        tile->a = from;
        tile->a_step = tile->panels ? p->a_col : p->a_row;
        tile->a_row = p->a_row;
        return;
    }
    tile->a = room;
    tile->a_step = tile->panels ? TILE_ROWS : ROW_DISTANCE;
    tile->a_row = tile->panels ? terms.depth : ROW_DISTANCE;
    for (int64_t r = 0; r < rows && p->a_col == 1; ++r)
        memcpy(room + r * ROW_DISTANCE, from + r * p->a_row, (size_t)terms.depth * sizeof *room);
    for (int64_t r = 0; r < rows && p->a_col != 1; r += TILE_ROWS)
        pack(from + r * p->a_row, p->a_col, p->a_row, terms.depth, rows - r, TILE_ROWS,
             room + r * terms.depth);
}

/* Copies the panels of columns `column` to `end` - 1 of b, except those that are read in place.
 * Each panel has its room in `panels`, whether it is copied or not. */
static void pack_b(const DenseProduct *p, int64_t column, int64_t end, Terms terms, float *panels)
{
    const int64_t whole = b_in_place(p) ? (end - column) / TILE_COLUMNS * TILE_COLUMNS : 0;
    panels += whole * terms.depth;
    for (column += whole; column < end;
         column += TILE_COLUMNS, panels += TILE_COLUMNS * terms.depth)
        pack(p->b + terms.first * p->b_row + column * p->b_col, p->b_row, p->b_col, terms.depth,
             end - column, TILE_COLUMNS, panels);
}

/* Multiplies a block of rows by a block of columns, for the terms from `first` on. model: a tile
 * with all fields except b, b_step and columns. Its a, out and level are those of the block's first
 * element; its biases begin at column 0 of out. */
static void multiply_block(const DenseProduct *p, const DensePart *block, int64_t first,
                           const float *b_panels, const Tile *model)
{
    const bool in_place = b_in_place(p);
    for (int64_t c = block->column; c < block->column_end; c += TILE_COLUMNS) {
        const int64_t x = c - block->column;
        Tile t = *model;
        t.columns = min_of(block->column_end - c, TILE_COLUMNS);
        const bool whole = t.columns == TILE_COLUMNS;
        t.b = in_place && whole ? p->b + first * p->b_row + c : b_panels + x * t.depth;
        t.b_step = in_place && whole ? p->b_row : TILE_COLUMNS;
        t.out += x;
        t.level += x;
        if (t.bias_first) t.bias_first += c;
        if (t.bias_last) t.bias_last += c;
        for (int64_t r = block->row; r < block->row_end; r += TILE_ROWS) {
            multiply_tile(&t, block->row_end - r);
            t.a += TILE_ROWS * t.a_row;
            t.out += TILE_ROWS * t.out_row;
            t.level += TILE_ROWS * DENSE_BLOCK_COLUMNS;
        }
    }
}

/* ---- a chain ---- */

/* Computes a part, of at most BLOCK_COLUMNS columns, whose sums are chains. room: DENSE_SCRATCH
 * floats. */
static void chain_columns(const DenseProduct *p, const DensePart *part, float *room)
{
    float *const a_room = room + DENSE_DEPTH * DENSE_BLOCK_COLUMNS;
    DensePart block = *part;
    for (int64_t first = 0; first < p->k; first += DENSE_DEPTH) {
        const Terms terms = {first, min_of(p->k - first, DENSE_DEPTH)};
        const bool ends = first + terms.depth == p->k;
        pack_b(p, part->column, part->column_end, terms, room);
        for (block.row = part->row; block.row < part->row_end; block.row = block.row_end) {
            block.row_end = min_of(block.row + DENSE_BLOCK_ROWS, part->row_end);
            Tile tile = {.depth = terms.depth,
                         .out = p->out + block.row * p->out_row + block.column,
                         .out_row = p->out_row,
                         .level = a_room,
                         .bias_first = first == 0 && !p->bias_last ? p->bias : NULL,
                         .bias_last = ends && p->bias_last ? p->bias : NULL,
                         .adds = first > 0,
                         .relu = p->relu && ends};
            place_a(p, block.row, block.row_end, terms, a_room, &tile);
            multiply_block(p, &block, first, room, &tile);
        }
    }
}

/* ---- slices ---- */

/* Copies all terms of b in the part's columns, in the order of the slices. */
static void pack_slices(const DenseProduct *p, const DensePart *part, float *panels)
{
    const int64_t width =
        (part->column_end - part->column + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    for (int i = 0; i < p->slices * p->ranges; ++i)
        for (int64_t first = p->range[i].first; first < p->range[i].end; first += DENSE_DEPTH) {
            const Terms terms = {first, min_of(p->range[i].end - first, DENSE_DEPTH)};
            pack_b(p, part->column, part->column_end, terms, panels);
            panels += width * terms.depth;
        }
}

/* Returns how many sums of earlier slices are joined with the sum of slice i when it is
 * complete. */
static int joins_of(int i)
{
    int joins = 0;
    for (; i & 1; i /= 2) ++joins;
    return joins;
}

/* Computes a block of rows. The sum of slice i is joined with the sums of levels 0 .. joins - 1 and
 * becomes the sum of level `joins`. The sum of the last slice is the result. levels: the partial
 * sums of each level, DENSE_LEVEL floats apart. */
static void slices_rows(const DenseProduct *p, const DensePart *block, const float *panels,
                        float *levels, float *a_room)
{
    const int64_t width =
        (block->column_end - block->column + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    for (int i = 0; i < p->slices; ++i) {
        const int joins = joins_of(i);
        const bool last = i == p->slices - 1;
        const DenseRange *range = p->range + i * p->ranges, *final = range + p->ranges - 1;
        Tile tile = {.out = last ? p->out + block->row * p->out_row + block->column
                                 : levels + joins * DENSE_LEVEL,
                     .out_row = last ? p->out_row : DENSE_BLOCK_COLUMNS,
                     .out_whole = !last,
                     .level = levels};
        for (; range <= final; ++range)
            for (int64_t first = range->first; first < range->end; first += tile.depth) {
                tile.depth = min_of(range->end - first, DENSE_DEPTH);
                if (range == final && first + tile.depth == range->end) {
                    tile.joins = joins;
                    tile.bias_last = last ? p->bias : NULL;
                    tile.relu = last && p->relu;
                }
                const Terms terms = {first, tile.depth};
                place_a(p, block->row, block->row_end, terms, a_room, &tile);
                multiply_block(p, block, first, panels, &tile);
                panels += width * tile.depth;
                tile.adds = true;
            }
    }
}

/* Computes a part, of at most dense_slice_columns columns, whose sums are cut into slices. room:
 * the scratch of dense_product. */
static void slices_columns(const DenseProduct *p, const DensePart *part, float *room)
{
    float *const a_room = room, *const levels = a_room + DENSE_ROWS_ROOM,
                 *const panels = levels + joins_of(p->slices - 1) * DENSE_LEVEL;
    DensePart block = *part;
    pack_slices(p, part, panels);
    for (block.row = part->row; block.row < part->row_end; block.row = block.row_end) {
        block.row_end = min_of(block.row + DENSE_BLOCK_ROWS, part->row_end);
        slices_rows(p, &block, panels, levels, a_room);
    }
}

void SIMD_FLOAT_NAME(dense_product)(const DenseProduct *p, const DensePart *part, float *scratch)
{
    DensePart block = *part;
    const int64_t most = p->slices > 0 ? dense_slice_columns(p->k) : BLOCK_COLUMNS;
    const int64_t columns = min_of(most, BLOCK_COLUMNS);
    for (; block.column < part->column_end; block.column = block.column_end) {
        block.column_end = min_of(block.column + columns, part->column_end);
        if (p->slices > 0)
            slices_columns(p, &block, scratch);
        else
            chain_columns(p, &block, scratch);
    }
}
