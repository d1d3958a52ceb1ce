/* Tests `weft ckpt info`, `check` and `diff`. */
#include "checkpoint/fixture.h"

static const char *folder;
static char *a, *b;

static void begin(void)
{
    folder = fixture_folder();
    a = fixture_path(folder, "a.h5");
    b = fixture_path(folder, "b.h5");
}

static void end(void)
{
    mem_free(&a);
    mem_free(&b);
    fixture_clean(folder);
}

static void test_print(void)
{
    begin();
    CHECK_OK(fixture_save(a, 12, 1));
    FILE *out = tmpfile();
    CHECK_OK(checkpoint_print(a, out, false));
    char *text = fixture_text(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "step 12, epoch 3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "33x7x3x3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "10 tensors"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  trained on 200x1x28x28 uint8, labels 200 int32, xxh3"));
    CU_ASSERT_PTR_NULL(strstr(text, "tested on"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  2 classes: cat, sea lion\n"));
    mem_free(&text);
    out = tmpfile();
    CHECK_OK(checkpoint_print(a, out, true));
    text = fixture_text(out);
    float plain[1] = {fixture_value(1, 4, 0)};
    char want[256];
    snprintf(want, sizeof want,
             "{\"path\":\"/params/fc.bias\",\"shape\":[1],\"xxh64\":\"%016llx\"}",
             (unsigned long long)hash_bytes(plain, sizeof plain));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, want));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"step\":12,\"epoch\":3,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"grid\":\"1x1x1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"data_train\":\"200x1x28x28 uint8, "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"data_test\":null"));
    CU_ASSERT_PTR_EQUAL(strchr(text, '\n'), text + strlen(text) - 1);
    mem_free(&text);
    CHECK_FAILS(checkpoint_print(b, stdout, false), ERR_NOINPUT, "b.h5");
    end();
}

/* Names of classes are printed only as far as they fit into one line. */
static void test_many_classes(void)
{
    begin();
    char classes[41 * 8] = "";
    for (int i = 0; i < 40; ++i) sprintf(classes + 8 * i, "name %02d%s", i, i < 39 ? "\n" : "");
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 0);
    CheckpointMeta meta = fixture_meta(1);
    World world = world_alone();
    meta.classes = classes;
    meta.input.classes = 40;
    CHECK_OK(checkpoint_save(&world, a, &meta, &io));
    FILE *out = tmpfile();
    CHECK_OK(checkpoint_print(a, out, false));
    char *text = fixture_text(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  40 classes: name 00, name 01, "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "name 06, name 07, ...\n"));
    mem_free(&text);
    mem_free(&f);
    end();
}

static void test_format(void)
{
    begin();
    CHECK_OK(fixture_save(a, 1, 0));
    const int64_t version = 99;
    hid_t file = H5Fopen(a, H5F_ACC_RDWR, H5P_DEFAULT), attr = H5Aopen(file, "version", 0);
    CU_ASSERT(H5Awrite(attr, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(attr);
    H5Fclose(file);
    CHECK_FAILS(checkpoint_check(a, stdout), ERR_DATA,
                "checkpoint format 99, but this version of weft reads");
    end();
}

static void test_check(void)
{
    begin();
    CHECK_OK(fixture_save(a, 12, 1));
    FILE *out = tmpfile();
    CHECK_OK(checkpoint_check(a, out));
    char *text = fixture_text(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "good: step 12, 10 tensors"));
    mem_free(&text);
    size_t count = 0;
    unsigned char *bytes = fixture_bytes(a, &count);
    float value[2] = {fixture_value(1, 1, 9), fixture_value(1, 1, 10)};
    float other[2] = {fixture_value(1, 9, 9), fixture_value(1, 9, 10)};
    unsigned char *at = memmem(bytes, count, value, sizeof value);
    unsigned char *at2 = memmem(bytes, count, other, sizeof other);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at2);
    at[1] ^= 64;
    at2[1] ^= 64;
    fixture_write(b, bytes, count);
    out = tmpfile();
    /* the error message has the damaged tensor whose name is first in alphabetical order */
    CHECK_FAILS(checkpoint_check(b, out), ERR_DATA, "/buffers/table");
    text = fixture_text(out);
    /* the printed text lists all damaged tensors */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "/params/layer1.0.conv1.weight"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "/buffers/table"));
    mem_free(&text);
    mem_free(&bytes);
    end();
}

static char *diff_text(bool want_equal)
{
    bool equal = !want_equal;
    FILE *out = tmpfile();
    CHECK_OK(checkpoint_diff(a, b, out, &equal));
    CU_ASSERT_EQUAL(equal, want_equal);
    return fixture_text(out);
}

static int odd_tensor, odd_element;
static const float *get_odd(void *user, int i, float *plain)
{
    fixture_get(user, i, plain);
    if (i == odd_tensor) plain[odd_element] = 0.5f;
    return plain;
}

static void save_odd(const CheckpointTensor *tensor, int count, CheckpointMeta meta)
{
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 1);
    World world = world_alone();
    io.get = get_odd;
    io.tensor = f->tensor = tensor;
    io.count = count;
    CHECK_OK(checkpoint_save(&world, b, &meta, &io));
    mem_free(&f);
}

static void test_diff(void)
{
    begin();
    CHECK_OK(fixture_save(a, 12, 1));
    CHECK_OK(fixture_save(b, 12, 1));
    char *text = diff_text(true);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "equal: 10 tensors"));
    mem_free(&text);
    odd_tensor = 1;
    /* index [1,2,1,1] of the tensor */
    odd_element = 7 * 9 + 2 * 9 + 4;
    save_odd(fixture_tensor, FIXTURE_COUNT, fixture_meta(12));
    text = diff_text(false);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "/params/layer1.0.conv1.weight differs first at [1,2,1,1] "
                                        "(element 85): 20085.125 and 0.5"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1 of its 2079 elements"));
    mem_free(&text);
    odd_tensor = -1;
    CheckpointMeta meta = fixture_meta(13);
    snprintf(meta.grid, sizeof meta.grid, "2x1x1");
    save_odd(fixture_tensor, FIXTURE_COUNT, meta);
    text = diff_text(false);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "attribute step: 12 and 13"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "note: grid 1x1x1 and 2x1x1"));
    mem_free(&text);
    /* a different grid alone is not a difference */
    meta.step = 12;
    save_odd(fixture_tensor, FIXTURE_COUNT, meta);
    text = diff_text(true);
    mem_free(&text);
    save_odd(fixture_tensor, FIXTURE_COUNT - 1, meta);
    text = diff_text(false);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "tensor /buffers/table is only in"));
    mem_free(&text);
    CheckpointTensor other[FIXTURE_COUNT];
    memcpy(other, fixture_tensor, sizeof other);
    other[8].shape.dim[0] = 34;
    save_odd(other, FIXTURE_COUNT, meta);
    text = diff_text(false);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "running_mean: shape 33 and 34"));
    mem_free(&text);
    bool equal = true;
    CHECK_FAILS(checkpoint_diff(a, folder, stdout, &equal), ERR_NOINPUT, folder);
    CU_ASSERT(!equal);
    end();
}

TEST_MAIN("verbs", {"print", test_print}, {"many classes", test_many_classes},
          {"another format", test_format}, {"check", test_check}, {"diff", test_diff})
