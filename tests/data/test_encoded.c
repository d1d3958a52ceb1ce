/* Tests sets of encoded pictures: evaluation equals Pillow to the byte; training does not depend on
 * the number of threads; orientations; broken files; pictures that other programs have written;
 * keys of crops and colours also on sets of decoded pictures. */
#include "encoded.h"

#include "image/picture.h"

#include <inttypes.h>

/* Returns the hash of the bytes of a sample as evaluation prepares it, without scale and
 * normalisation. */
static uint64_t evaluated_hash(const DataSet *set, const Config *c, const char *file)
{
    ImageDecoder *decoder = image_decoder_new();
    PictureConverter *converter = picture_converter_new(set, c);
    Image image = {0};
    char *bytes;
    size_t count;
    int64_t plane = set->height * set->width;
    float *out = mem_new((size_t)(3 * plane) * sizeof *out);
    uint8_t *back = mem_new((size_t)(3 * plane));
    CHECK_OK(file_text(file, 1 << 20, &bytes, &count));
    CHECK_OK(image_decode(decoder, &image, bytes, count, file));
    CHECK_OK(picture_prepare(converter, &image, "picture", out));
    for (int64_t i = 0; i < 3 * plane; ++i) back[i] = (uint8_t)out[i % 3 * plane + i / 3];
    uint64_t hash = fnv(back, 3 * plane);
    picture_converter_free(&converter);
    image_decoder_free(&decoder);
    image_fini(&image);
    mem_free(&out);
    mem_free(&back);
    mem_free(&bytes);
    return hash;
}

static void test_evaluate(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    char file[64], path[128], filter[16];
    int side, crop, cases = 0;
    uint64_t want;
    const char *set_path = encoded_set("evaluate.h5", 3, 0, false, -1);
    FILE *f = fopen("tests/golden/image/evaluate.txt", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (; fscanf(f, "%63s %15s %d %d %" SCNx64, file, filter, &side, &crop, &want) == 5; ++cases) {
        DataSet set;
        Config c = config_pictures();
        c.data.normalize = false;
        c.data.scale = 1;
        c.data.resize = side;
        c.data.center_crop = crop;
        c.data.filter = strcmp(filter, "bicubic") == 0 ? FILTER_BICUBIC : FILTER_BILINEAR;
        CHECK_OK(data_set_open(&set, &c, set_path));
        snprintf(path, sizeof path, "tests/golden/image/%s", file);
        CU_ASSERT_EQUAL(evaluated_hash(&set, &c, path), want);
    }
    CU_ASSERT_EQUAL(cases, 20);
    fclose(f);
}

/* Hashes the content of `micro_batches` micro-batches of 5, in batches of 10. */
static uint64_t stream_hash(const DataSet *set, const Config *c, bool training, int workers,
                            int micro_batches)
{
    Loader *l = NULL;
    const MicroBatch *b;
    uint64_t hash = 0;
    int64_t each = set->channels * set->height * set->width;
    LoaderPlan plan = {.batch = 10,
                       .micro_batch = 5,
                       .micro_count = 2,
                       .training = training,
                       .slots = 3,
                       .workers = workers};
    CHECK_OK(loader_new(&l, set, c, plan));
    for (int i = 0; l && i < micro_batches; ++i) {
        CHECK_OK(loader_next(l, &b, NULL));
        if (!b) break;
        hash = hash_seeded(b->x, (size_t)(5 * each) * sizeof *b->x, hash);
        hash = hash_seeded(b->labels, 5 * sizeof *b->labels, hash);
        hash = hash_seeded(b->sample, 5 * sizeof *b->sample, hash);
        hash = hash_seeded(&b->label_share, sizeof b->label_share, hash);
        if (b->labels_other) hash = hash_seeded(b->labels_other, 5 * sizeof *b->labels, hash);
        loader_release(l);
    }
    loader_free(&l);
    return hash;
}

static void test_threads(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    DataSet set;
    Config c = config_all();
    CHECK_OK(data_set_open(&set, &c, encoded_set("threads.h5", 23, 0, false, -1)));
    CU_ASSERT(set.height == 24 && set.width == 24 && set.channels == 3 && set.samples == 23);
    uint64_t one = stream_hash(&set, &c, true, 1, 12);
    CU_ASSERT_EQUAL(stream_hash(&set, &c, true, 4, 12), one);
    CU_ASSERT_EQUAL(stream_hash(&set, &c, true, 7, 12), one);
    c.run.seed = 8;
    CU_ASSERT_NOT_EQUAL(stream_hash(&set, &c, true, 4, 12), one);
    uint64_t pass = stream_hash(&set, &c, false, 1, 99);
    CU_ASSERT_EQUAL(stream_hash(&set, &c, false, 4, 99), pass);
}

/* A picture is rotated before it is cropped, so evaluation sees the rotated picture. */
static void test_orientation(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    DataSet plain, turned;
    Config c = config_pictures();
    c.data.center_crop = 16;
    CHECK_OK(data_set_open(&plain, &c, encoded_set("plain.h5", 8, 0, false, -1)));
    CHECK_OK(data_set_open(&turned, &c, encoded_set("turned.h5", 8, 0, true, -1)));
    Reader *reader;
    CHECK_OK(reader_new(&reader, &turned));
    PictureConverter *converter = picture_converter_new(&turned, &c);
    ImageDecoder *decoder = image_decoder_new();
    Image image = {0}, spare = {0};
    float got[3 * 16 * 16], want[3 * 16 * 16];
    uint8_t *bytes = NULL;
    size_t room = 0, count;
    int orientation;
    for (int i = 0; i < 8; ++i) {
        CHECK_OK(reader_get_encoded(reader, i, &bytes, &room, &count, &orientation));
        CU_ASSERT_EQUAL(orientation, 1 + i);
        CHECK_OK(image_decode(decoder, &image, bytes, count, "it"));
        image_apply_orientation(&image, &spare, orientation);
        CHECK_OK(picture_prepare(converter, &image, "picture", want));
        CHECK_OK(picture_prepare_sample(converter, reader, false, 0, i, got));
        CU_ASSERT_EQUAL(memcmp(got, want, sizeof got), 0);
    }
    CU_ASSERT_NOT_EQUAL(stream_hash(&plain, &c, false, 1, 9),
                        stream_hash(&turned, &c, false, 1, 9));
    reader_free(&reader);
    picture_converter_free(&converter);
    image_decoder_free(&decoder);
    image_fini(&image);
    image_fini(&spare);
    mem_free(&bytes);
}

static void test_broken(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    DataSet set;
    Config c = config_all();
    const char *path = encoded_set("broken.h5", 12, 0, false, 7);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "the index /x_offset of sample 7");
    path = encoded_set("sizes.h5", 12, 0, false, -1);
    c = config_pictures();
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_FAILS(data_set_check_size(&set, &c), ERR_CONFIG, "set data.random_resized_crop");
    c.data.random_resized_crop = 24;
    c.data.center_crop = 30;
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_CONFIG, "data.center_crop");
}

/* Overwrites the bytes of samples `from` to `to` - 1, so that they are no pictures. The file has 30
 * samples. */
static void spoil(const DataSet *set, const char *path, int from, int to)
{
    uint64_t offset[31];
    hdf5_lock();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t d = H5Dopen2(file, "x_offset", H5P_DEFAULT);
    H5Dread(d, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, offset);
    H5Dclose(d);
    H5Fclose(file);
    hdf5_unlock();
    FILE *f = fopen(path, "r+");
    fseek(f, (long)((uint64_t)set->x.offset + offset[from]), SEEK_SET);
    for (uint64_t i = offset[from]; i < offset[to]; ++i) fputc('?', f);
    fclose(f);
}

/* The error of the first bad sample is reported, after the good micro-batches, for any number of
 * threads. */
static void test_bad_picture(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    DataSet set;
    Config c = config_pictures();
    c.data.center_crop = 16;
    const char *path = encoded_set("bad.h5", 30, 0, false, -1);
    CHECK_OK(data_set_open(&set, &c, path));
    spoil(&set, path, 17, 30);
    for (int workers = 1; workers <= 4; workers += 3) {
        Loader *l = NULL;
        const MicroBatch *b;
        LoaderPlan plan = {
            .batch = 4, .micro_batch = 4, .micro_count = 1, .slots = 2, .workers = workers};
        CHECK_OK(loader_new(&l, &set, &c, plan));
        int good = 0;
        Status st = OK;
        while ((st = loader_next(l, &b, NULL)) == OK && b) {
            ++good;
            loader_release(l);
        }
        CU_ASSERT_EQUAL(good, 4);
        CU_ASSERT_EQUAL(st, ERR_DATA);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "sample 17: no picture"));
        loader_free(&l);
    }
}

/* Two stored images (2,3,6,8), channels first or last, give the same result with the same keys. */
static void test_stored(void)
{
    uint8_t first[2 * 3 * 6 * 8], last[2 * 3 * 6 * 8];
    int32_t y[2] = {0, 1};
    for (int n = 0; n < 2; ++n)
        for (int c = 0; c < 3; ++c)
            for (int p = 0; p < 48; ++p) {
                uint8_t v = (uint8_t)(n * 91 + c * 60 + p * 7);
                first[(n * 3 + c) * 48 + p] = v;
                last[(n * 48 + p) * 3 + c] = v;
            }
    Config c = config_all();
    DataSet set[2];
    uint64_t hash[2];
    c.data.random_resized_crop = 5;
    for (int k = 0; k < 2; ++k) {
        const char *path = in_scratch(k ? "last.h5" : "first.h5");
        hid_t file = h5_new(path);
        H5Array x = {"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, {2, 3, 6, 8}, {0}, 0, first};
        if (k) x.dim[1] = 6, x.dim[2] = 8, x.dim[3] = 3, x.data = last;
        h5_put(file, x);
        h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {2}, {0}, 0, y});
        H5Fclose(file);
        c.data.layout = k ? LAYOUT_NHWC : LAYOUT_NCHW;
        CHECK_OK(data_set_open(&set[k], &c, path));
        CU_ASSERT(set[k].height == 5 && set[k].width == 5);
        hash[k] = stream_hash(&set[k], &c, true, 1 + k, 9);
    }
    CU_ASSERT_EQUAL(hash[0], hash[1]);
}

TEST_MAIN("encoded", {"evaluation gives Pillow's bytes", test_evaluate},
          {"any number of threads, the same", test_threads}, {"orientations", test_orientation},
          {"broken files and keys", test_broken},
          {"the first bad picture is named", test_bad_picture},
          {"stored images go the same way", test_stored})
