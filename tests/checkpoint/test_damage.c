/* Tests of files that are not good checkpoints: loading fails with a message that names the file,
 * and no tensor is set. */
#include "checkpoint/fixture.h"

static const char *folder;
/* paths of a good file and of its damaged copy */
static char *path, *bad;
/* content of the good file */
static unsigned char *bytes;
static size_t count;
static Fixture *f;
static int64_t handles;

static void begin(void)
{
    handles = fixture_handles();
    folder = fixture_folder();
    path = fixture_path(folder, "step-00000001.h5");
    bad = fixture_path(folder, "bad.h5");
    f = mem_new(sizeof *f);
    CHECK_OK(fixture_save(path, 1, 0));
    bytes = fixture_bytes(path, &count);
}

static void end(void)
{
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    mem_free(&bytes);
    mem_free(&f);
    mem_free(&bad);
    mem_free(&path);
    fixture_clean(folder);
}

static void refused(Status code, const char *text)
{
    CHECK_FAILS(fixture_load(bad, f, NULL), code, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "bad.h5"));
    CU_ASSERT_EQUAL(f->sets, 0);
}

static void test_truncated(void)
{
    begin();
    for (size_t n = 1; n < count; n += 1 + count / 300) {
        fixture_write(bad, bytes, n);
        refused(ERR_DATA, "bad.h5");
    }
    fixture_write(bad, bytes, count - 1);
    refused(ERR_DATA, "bad.h5");
    end();
}

static void test_not_a_checkpoint(void)
{
    begin();
    refused(ERR_NOINPUT, "No such file");
    fixture_write(bad, "", 0);
    refused(ERR_DATA, "empty");
    fixture_write(bad, "step,loss\n1,2.3\n", 16);
    refused(ERR_DATA, "not an HDF5 file");
    hid_t other = H5Fcreate(bad, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(other);
    refused(ERR_DATA, "not a checkpoint");
    CHECK_FAILS(fixture_load(folder, f, NULL), ERR_NOINPUT, "not a file");
    end();
}

/* Returns the offset of tensor i's first bytes in the good file. */
static size_t place_of(int i)
{
    float first[2] = {fixture_value(0, i, 0), fixture_value(0, i, 1)};
    void *at = memmem(bytes, count, first, sizeof first);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    return (size_t)((unsigned char *)at - bytes);
}

static void test_flip_in_data(void)
{
    begin();
    static const int which[] = {1, 3, 9};
    for (size_t k = 0; k < sizeof which / sizeof *which; ++k) {
        size_t at = place_of(which[k]) + 5 + 64 * k;
        bytes[at] ^= 4;
        fixture_write(bad, bytes, count);
        bytes[at] ^= 4;
        refused(ERR_DATA, fixture_tensor[which[k]].path);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "checksum"));
    }
    end();
}

static bool meta_equal(const CheckpointMeta *a, const CheckpointMeta *b)
{
    return a->step == b->step && a->epoch == b->epoch && a->data_step == b->data_step &&
           a->seed == b->seed && a->best_metric == b->best_metric &&
           strcmp(a->best_of, b->best_of) == 0 && a->evaluations == b->evaluations &&
           memcmp(&a->lr, &b->lr, sizeof a->lr) == 0 && a->stop_best == b->stop_best &&
           a->stop_bad_evaluations == b->stop_bad_evaluations && a->hook_stop == b->hook_stop &&
           memcmp(&a->input, &b->input, sizeof a->input) == 0 && a->classes &&
           strcmp(a->classes, b->classes) == 0 && strcmp(a->config, b->config) == 0 &&
           strcmp(a->grid, b->grid) == 0 && strcmp(a->data_train, b->data_train) == 0 &&
           strcmp(a->data_test, b->data_test) == 0 &&
           memcmp(&a->data_ids, &b->data_ids, sizeof a->data_ids) == 0;
}

/* Alters one byte and loads the file. Loading must fail with a message that names the file, or, if
 * the byte is padding, give the right values. Returns 1 if it failed. */
static int try_flip(size_t at, unsigned char mask)
{
    CheckpointMeta meta = {0}, want = fixture_meta(1);
    bytes[at] ^= mask;
    fixture_write(bad, bytes, count);
    bytes[at] ^= mask;
    Status status = fixture_load(bad, f, &meta);
    if (status == OK) {
        CU_ASSERT(fixture_holds(f, 0));
        CU_ASSERT(meta_equal(&meta, &want));
    } else {
        CU_ASSERT_EQUAL(f->sets, 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "bad.h5"));
    }
    checkpoint_meta_fini(&meta);
    return status != OK;
}

static void test_flips(void)
{
    begin();
    int found = 0;
    RngKey key = rng_key(7, RNG_TEST, 0, 0);
    for (size_t at = 0; at < 160 && at < count; ++at)
        found += try_flip(at, (unsigned char)(1u << at % 8));
    for (uint32_t i = 0; i < 500; ++i)
        found += try_flip(rng_u32(key, 2 * i) % count,
                          (unsigned char)(1u << rng_u32(key, 2 * i + 1) % 8));
    /* this range includes all metadata before the first tensor's data */
    size_t first = place_of(1);
    for (size_t at = 160; at < first && at < 4096; at += 7) found += try_flip(at, 0xFF);
    CU_ASSERT(found > 300);
    end();
}

static void test_other_model(void)
{
    begin();
    CheckpointTensor mine[FIXTURE_COUNT + 1];
    memcpy(mine, fixture_tensor, sizeof fixture_tensor);
    CheckpointIo io = fixture_io(f, 0);
    World world = world_alone();
    io.tensor = f->tensor = mine;
    mine[3].shape.dim[0] = 100;
    CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA,
                "of another size: fc.weight (10x33 in the file, 100x33 in the model)");
    mine[3] = (CheckpointTensor){.path = "/params/head.weight", .shape = {2, {10, 33, 1, 1}}};
    CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA,
                "missing in the file: head.weight");
    mine[3] = fixture_tensor[3];
    io.count = FIXTURE_COUNT - 1;
    CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA, "not in this model: table");
    mine[FIXTURE_COUNT] = (CheckpointTensor){.path = "/params/extra", .shape = {1, {4, 1, 1, 1}}};
    io.count = FIXTURE_COUNT + 1;
    CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA, "missing in the file: extra");
    CU_ASSERT_EQUAL(f->sets, 0);
    end();
}

/* Opens a copy of the good file, bad.h5, to alter it by HDF5. */
static hid_t open_copy(void)
{
    fixture_write(bad, bytes, count);
    return H5Fopen(bad, H5F_ACC_RDWR, H5P_DEFAULT);
}

static void test_altered(void)
{
    begin();
    float value = 1;
    int64_t version = 9;
    hid_t file = open_copy(), set = H5Dopen2(file, "/params/fc.bias", 0);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, 0, &value);
    H5Dclose(set);
    H5Fclose(file);
    refused(ERR_DATA, "/params/fc.bias");
    file = open_copy();
    H5Adelete(file, "data_step");
    H5Fclose(file);
    refused(ERR_DATA, "data_step");
    file = open_copy();
    hid_t attr = H5Aopen(file, "version", 0);
    H5Awrite(attr, H5T_NATIVE_INT64, &version);
    H5Aclose(attr);
    H5Fclose(file);
    refused(ERR_DATA, "checkpoint format 9");
    file = open_copy();
    hsize_t dim[1] = {33};
    H5Ldelete(file, "/params/layer1.0.bn1.weight", 0);
    hid_t space = H5Screate_simple(1, dim, NULL);
    set = H5Dcreate2(file, "/params/layer1.0.bn1.weight", H5T_STD_I32LE, space, 0, 0, 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    refused(ERR_DATA, "does not hold floating-point numbers");
    end();
}

static const char first_moment[] = "/optim/m/conv1.weight";
static const char second_moment[] = "/optim/v/conv1.weight";

static void exchange(hid_t file)
{
    CU_ASSERT(H5Lmove(file, first_moment, file, "/optim/other", 0, 0) >= 0);
    CU_ASSERT(H5Lmove(file, second_moment, file, first_moment, 0, 0) >= 0);
    CU_ASSERT(H5Lmove(file, "/optim/other", file, second_moment, 0, 0) >= 0);
}

static void forget_bound(hid_t file, const char *tensor)
{
    hid_t set = H5Dopen2(file, tensor, 0);
    CU_ASSERT(H5Adelete(set, "bound_xxh64") >= 0);
    H5Dclose(set);
}

/* A tensor with valid bytes and checksum is refused if its name has been exchanged or changed. A
 * file of an earlier version of the format, whose checksums do not include names, still loads. */
static void test_exchanged(void)
{
    static const char text[] = "has the checksum of another name, shape or type";
    begin();
    hid_t file = open_copy();
    exchange(file);
    H5Fclose(file);
    refused(ERR_DATA, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "conv1.weight"));
    file = open_copy();
    CU_ASSERT(H5Lmove(file, "/params/fc.bias", file, "/params/fc.shift", 0, 0) >= 0);
    H5Fclose(file);
    refused(ERR_DATA, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "/params/fc.shift"));
    file = open_copy();
    for (int i = 0; i < FIXTURE_COUNT; ++i) forget_bound(file, fixture_tensor[i].path);
    H5Fclose(file);
    CHECK_OK(fixture_load(bad, f, NULL));
    CU_ASSERT(fixture_holds(f, 0));
    end();
}

/* Runs the command at the end of the last message. It makes a file from bad.h5 that loads, with the
 * values of salt 0. */
static void cure_works(void)
{
    const char *command = strstr(fail_message(), "h5repack");
    char *made = fixture_path(folder, "NEW.h5");
    CU_ASSERT_PTR_NOT_NULL_FATAL(command);
    if (system("h5repack --version >/dev/null 2>&1") != 0) {
        printf("  skipped: no h5repack here, so its command is not tried\n");
    } else {
        char *line = mem_format("cd %s && rm -f NEW.h5 && %s", folder, command);
        CU_ASSERT_EQUAL(system(line), 0);
        CHECK_OK(fixture_load(made, f, NULL));
        CU_ASSERT(fixture_holds(f, 0));
        mem_free(&line);
    }
    mem_free(&made);
}

/* Replaces the object `name` in bad.h5 by a link to the object `there` of the file other.h5. */
static void relink(const char *name, const char *there)
{
    hid_t file = open_copy();
    CU_ASSERT(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    CU_ASSERT(H5Lcreate_external("other.h5", there, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

/* A tensor behind an external link, or in a group behind one, is refused. Its offset belongs to the
 * other file, and bytes at this offset of bad.h5 are never read. */
static void test_external_link(void)
{
    begin();
    char *other = fixture_path(folder, "other.h5");
    const char *const text = "lies in another file, behind an external link";
    fixture_write(other, bytes, count);
    relink("/params/fc.weight", "/params/fc.weight");
    refused(ERR_DATA, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "tensor /params/fc.weight"));
    cure_works();
    relink("/buffers", "/buffers");
    refused(ERR_DATA, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "tensor /buffers/"));
    cure_works();
    mem_free(&other);
    end();
}

/* Replaces /params/fc.weight in bad.h5 by a data set with the creation property list `create`,
 * which stores the data outside of the file. */
static void replace_weight(hid_t create, bool write)
{
    enum { TENSOR = 3 };
    hsize_t dim[2] = {10, 33};
    float value[10 * 33];
    for (int i = 0; i < 10 * 33; ++i) value[i] = fixture_value(0, TENSOR, i);
    hid_t file = open_copy(), space = H5Screate_simple(2, dim, NULL);
    H5Ldelete(file, "/params/fc.weight", H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, "/params/fc.weight", H5T_IEEE_F32LE, space, 0, create, 0);
    if (write) H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(create);
    H5Fclose(file);
}

static void test_other_storage(void)
{
    begin();
    char *other = fixture_path(folder, "other.h5"), *raw = fixture_path(folder, "raw");
    hsize_t dim[2] = {10, 33};
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, dim, NULL);
    fixture_write(other, bytes, count);
    H5Pset_external(create, raw, 0, 10 * 33 * sizeof(float));
    replace_weight(create, true);
    refused(ERR_DATA, "tensor /params/fc.weight lies in other files (external storage)");
    cure_works();
    create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(create, space, other, "/params/fc.weight", space);
    H5Sclose(space);
    replace_weight(create, false);
    refused(ERR_DATA, "tensor /params/fc.weight lies in other files (a virtual data set)");
    cure_works();
    mem_free(&raw);
    mem_free(&other);
    end();
}

/* A tensor without dimensions is refused; a checkpoint's tensors have one to four. */
static void test_scalar(void)
{
    begin();
    hid_t file = open_copy(), space = H5Screate(H5S_SCALAR);
    CU_ASSERT(H5Ldelete(file, "/params/fc.weight", H5P_DEFAULT) >= 0);
    H5Dclose(H5Dcreate2(file, "/params/fc.weight", H5T_IEEE_F32LE, space, 0, 0, 0));
    H5Sclose(space);
    H5Fclose(file);
    refused(ERR_DATA, "has other than 1 to 4 dimensions");
    end();
}

TEST_MAIN("damage", {"truncated anywhere", test_truncated},
          {"missing, empty, text, other HDF5", test_not_a_checkpoint},
          {"a flipped bit in a tensor", test_flip_in_data}, {"flipped bits anywhere", test_flips},
          {"another model", test_other_model}, {"altered through HDF5", test_altered},
          {"tensors under other names", test_exchanged},
          {"a tensor in another file", test_external_link},
          {"a tensor stored in other files", test_other_storage},
          {"a tensor without dimensions", test_scalar})
