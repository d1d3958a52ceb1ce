/* Patches of fields, and arrays in chunks: what a patch holds is what the whole field holds at its
 * place, whatever the storage; places depend on seed, epoch and sample; tiles cover the field, each
 * pixel of the targets once. */
#include "fixture.h"
#include "../../src/data/fields/field_patch.h"

enum { FRAMES = 7, ROWS = 12, COLUMNS = 20, PIXELS = ROWS * COLUMNS, WORDS = 8 };
/* Sizes of the patch, and of the grid of fine targets, which has 2 rows and 3 columns for each of
 * the inputs. */
enum { PATCH_ROWS = 5, PATCH_COLUMNS = 8, FINE_ROWS = 2 * ROWS, FINE_COLUMNS = 3 * COLUMNS };

static float value_at(int frame, int row, int column)
{
    return (float)(1000 * frame + 30 * row + column);
}

/* Writes an array (frames, rows, columns); chunk NULL: contiguous. */
static void array_put(hid_t file, const char *name, int rows, int columns, const hsize_t *chunk,
                      bool shuffle, bool deflate, hid_t type)
{
    const hsize_t dim[] = {FRAMES, (hsize_t)rows, (hsize_t)columns};
    float *value = mem_new((size_t)(FRAMES * rows * columns) * sizeof *value), *at = value;
    for (int t = 0; t < FRAMES; ++t)
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < columns; ++k) *at++ = value_at(t, i, k);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, dim, NULL);
    if (chunk) H5Pset_chunk(create, 3, chunk);
    if (shuffle) H5Pset_shuffle(create);
    if (deflate) H5Pset_deflate(create, 4);
    hid_t d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    CU_ASSERT(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    mem_free(&value);
}

static const char *file_make(void)
{
    const char *path = in_scratch("patches.h5");
    const hsize_t frame[] = {1, ROWS, COLUMNS}, some[] = {3, 5, 7};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    array_put(file, "plain", ROWS, COLUMNS, NULL, false, false, H5T_IEEE_F32LE);
    array_put(file, "frames", ROWS, COLUMNS, frame, true, true, H5T_IEEE_F32LE);
    array_put(file, "some", ROWS, COLUMNS, some, false, true, H5T_IEEE_F64LE);
    array_put(file, "big", ROWS, COLUMNS, some, true, false, H5T_IEEE_F32BE);
    array_put(file, "raw", ROWS, COLUMNS, some, false, false, H5T_STD_I32LE);
    array_put(file, "fine", FINE_ROWS, FINE_COLUMNS, some, true, true, H5T_IEEE_F32LE);
    array_put(file, "odd", 15, COLUMNS, NULL, false, false, H5T_IEEE_F32LE);
    H5Fclose(file);
    return path;
}

static Status set_open(DataSet *set, Config **config, const char *variables, const char *patch,
                       bool tiles)
{
    char *word[] = {mem_format("data.variables=%s", variables),
                    mem_text("data.window={inputs: [0], targets: [1]}"),
                    mem_format("data.patch=%s", patch), mem_text("run.seed=5")};
    config_use_words(data_words, DATA_WORDS);
    Status st = config_load(config, NULL, 4, word);
    if (st == OK) st = data_set_open(set, *config, file_make());
    if (st == OK) st = data_set_take_patch(set, *config, tiles);
    for (int i = 0; i < 4; ++i) mem_free(&word[i]);
    return st;
}

/* Is a plane the window of a frame? NaN stands for pixels of other tiles, of which *missing are
 * counted. */
static bool is_window(const float *plane, int frame, const FieldRect *w, int *missing)
{
    for (int64_t i = 0; i < w->rows; ++i)
        for (int64_t k = 0; k < w->columns; ++k) {
            const float v = *plane++;
            if (isnan(v)) ++*missing;
            if (!isnan(v) && v != value_at(frame, (int)(w->row + i), (int)(w->column + k)))
                return false;
        }
    return true;
}

/* ---- random places ---- */

static void places(void)
{
    DataSet *set = mem_new(sizeof *set);
    Config *config = NULL;
    FieldReader *reader = NULL;
    enum { INPUTS = 5, EPOCHS = 4 };
    float x[INPUTS * PATCH_ROWS * PATCH_COLUMNS], y[6 * PATCH_ROWS * PATCH_COLUMNS];
    int missing = 0, same = 0;
    CHECK_OK(set_open(set, &config, "{inputs: [plain, frames, some, big, raw], targets: [fine]}",
                      "5x8", false));
    CU_ASSERT(set->samples == FRAMES - 1 && set->height == PATCH_ROWS &&
              set->width == PATCH_COLUMNS && set->y.dim[2] == 2 * PATCH_ROWS &&
              set->y.dim[3] == 3 * PATCH_COLUMNS);
    CHECK_OK(field_reader_new(&reader, set));
    for (int epoch = 0; epoch < EPOCHS; ++epoch)
        for (int s = 0; s < set->samples; ++s) {
            const FieldPlace p = field_place(&set->field_set, epoch, s);
            const FieldPlace next = field_place(&set->field_set, epoch + 1, s);
            same += p.input.row == next.input.row && p.input.column == next.input.column;
            CU_ASSERT(p.input.row >= 0 && p.input.row + PATCH_ROWS <= ROWS && p.input.column >= 0 &&
                      p.input.column + PATCH_COLUMNS <= COLUMNS);
            CU_ASSERT(p.target.row == 2 * p.input.row && p.target.column == 3 * p.input.column);
            CHECK_OK(field_read_at(reader, epoch, s, false, x, y));
            for (int c = 0; c < INPUTS; ++c)
                CU_ASSERT(is_window(x + c * PATCH_ROWS * PATCH_COLUMNS, s, &p.input, &missing));
            CU_ASSERT(is_window(y, s + 1, &p.target, &missing));
        }
    CU_ASSERT(missing == 0 && same < EPOCHS * FRAMES / 2);
    field_reader_free(&reader);
    data_set_drop_patch(set);
    CU_ASSERT(set->samples == FRAMES - 1 && set->height == ROWS && set->y.dim[3] == FINE_COLUMNS);
    config_free(&config);
    data_set_fini(set);
    mem_free(&set);
}

/* ---- tiles ---- */

/* Reads all tiles of a frame, and counts how often each pixel of the targets is there. */
static void tiles(void)
{
    DataSet *set = mem_new(sizeof *set);
    Config *config = NULL;
    FieldReader *reader = NULL;
    enum { TILES = 9 };
    float x[PATCH_ROWS * PATCH_COLUMNS], y[PATCH_ROWS * PATCH_COLUMNS];
    int64_t row, column;
    CHECK_OK(set_open(set, &config, "{inputs: [frames], targets: [some]}", "5x8", true));
    CU_ASSERT_EQUAL(set->samples, TILES * (FRAMES - 1));
    CHECK_OK(field_reader_new(&reader, set));
    for (int s = 0; s < FRAMES - 1; ++s) {
        int seen[PIXELS] = {0}, missing = 0;
        for (int t = 0; t < TILES; ++t) {
            const FieldPlace p = field_place(&set->field_set, 3, s * TILES + t);
            CHECK_OK(field_read(reader, s * TILES + t, true, x, y));
            CU_ASSERT(is_window(x, s, &p.input, &missing));
            CU_ASSERT(is_window(y, s + 1, &p.target, &missing));
            data_sample_place(set, s * TILES + t, &row, &column);
            for (int i = 0; i < PATCH_ROWS * PATCH_COLUMNS; ++i)
                seen[(row + i / PATCH_COLUMNS) * COLUMNS + column + i % PATCH_COLUMNS] +=
                    !isnan(y[i]);
        }
        for (int i = 0; i < PIXELS; ++i) CU_ASSERT_EQUAL(seen[i], 1);
        CU_ASSERT_EQUAL(missing, TILES * PATCH_ROWS * PATCH_COLUMNS - PIXELS);
    }
    field_reader_free(&reader);
    data_set_drop_patch(set);
    CU_ASSERT_EQUAL(set->samples, FRAMES - 1);
    config_free(&config);
    data_set_fini(set);
    mem_free(&set);
}

static void refused(void)
{
    static const struct Row {
        const char *variables, *patch, *message;
    } row[] = {
        {"{inputs: [plain], targets: [plain]}", "13x8", "13 rows, but the inputs of"},
        {"{inputs: [plain], targets: [plain]}", "5x21", "21 columns, but the inputs of"},
        {"{inputs: [plain], targets: [odd]}", "5x8", "neither is a multiple of the other"},
        {"{inputs: [fine], targets: [plain]}", "5x9", "must be a multiple of 2"},
        {"{inputs: [plain], targets: [plain]}", "64", "expected rows x columns"},
        {"{inputs: [plain], targets: [plain]}", "0x8", "expected rows x columns"},
    };
    DataSet *set = mem_new(sizeof *set);
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        Config *config = NULL;
        CHECK_FAILS(set_open(set, &config, row[i].variables, row[i].patch, false), ERR_CONFIG,
                    row[i].message);
        config_free(&config);
        data_set_fini(set);
        memset(set, 0, sizeof *set);
    }
    mem_free(&set);
}

TEST_MAIN("patches of fields", {"random places", places}, {"tiles", tiles}, {"refused", refused})
