/* Tests imports of folders of pictures: files, order and classes; squares equal to Pillow's and
 * encoded bytes equal to the files; broken files are named and left out. */
#include "folders.h"
#include "data/folder/folder.h"

#include <fcntl.h>
#include <math.h>

static Status import_encoded(const char *dir, const char *out)
{
    FolderImport import = import_of(dir, out);
    import.encoded = true;
    import.side = 0;
    return data_import_folder(&import, NULL);
}

static void classes_and_files_are_sorted_by_their_bytes(void)
{
    const char *dir = small_tree("sorted"), *out = in_scratch("sorted.h5");
    make_folder(at(dir, ".git"));
    copy("plain.png", at(dir, ".git/x.png"));
    write_bytes(at(dir, "a/.DS_Store"), "no", 2);
    write_bytes(at(dir, "loose.txt"), "no", 2);
    CHECK_OK(import_encoded(dir, out));
    CU_ASSERT_TRUE(labels_are(out, 4, (int32_t[]){0, 1, 1, 1}));
    CU_ASSERT_TRUE(class_is(out, 0, "B"));
    CU_ASSERT_TRUE(class_is(out, 1, "a"));
    int64_t n, m;
    uint64_t *offset = array_of(out, "/x_offset", H5T_NATIVE_UINT64, sizeof *offset, &n);
    uint8_t *bytes = array_of(out, "/x_bytes", H5T_NATIVE_UINT8, 1, &m);
    CU_ASSERT_EQUAL_FATAL(n, 5);
    CU_ASSERT_EQUAL(offset[4], (uint64_t)m);
    static const char *const order[] = {"exif6.jpg", "plain.png", "plain.jpg", "cmyk.jpg"};
    for (int i = 0; i < 4; ++i) {
        char path[200];
        size_t count;
        snprintf(path, sizeof path, PICTURES "%s", order[i]);
        char *file = whole(path, &count);
        CU_ASSERT_EQUAL_FATAL(offset[i + 1] - offset[i], count);
        CU_ASSERT_EQUAL(memcmp(bytes + offset[i], file, count), 0);
        mem_free(&file);
    }
    DataSet *set = mem_new(sizeof *set);
    CHECK_OK(data_set_open(set, NULL, out));
    CU_ASSERT_EQUAL(set->samples, 4);
    CHECK_OK(data_set_check(set, 0));
    /* Damage the second and third picture in the file: the second, sample 1, is named. */
    int fd = open(out, O_WRONLY);
    for (int i = 1; i < 3; ++i)
        CU_ASSERT_EQUAL(pwrite(fd, "no", 2, set->x.offset + (off_t)offset[i]), 2);
    close(fd);
    CHECK_FAILS(data_set_check(set, 0), ERR_DATA, "sample 1");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "1 more cannot be used, either"));
    mem_free(&set);
    int32_t *size = array_of(out, "/x_size", H5T_NATIVE_INT32, sizeof *size, &n);
    static const int32_t sizes[] = {9, 12, 18, 21, 18, 21, 18, 21};
    CU_ASSERT_EQUAL(memcmp(size, sizes, sizeof sizes), 0);
    uint8_t *orient = array_of(out, "/x_orient", H5T_NATIVE_UINT8, 1, &n);
    CU_ASSERT_EQUAL(memcmp(orient, (uint8_t[]){6, 1, 1, 1}, 4), 0);
    mem_free(&offset);
    mem_free(&bytes);
    mem_free(&size);
    mem_free(&orient);
}

static void squares_are_pillows(void)
{
    size_t bytes;
    char *planes = whole(PICTURES "short.rgb", &bytes),
         *lines = whole(PICTURES "short.txt", &bytes);
    char *rest = lines;
    int done = 0;
    for (char *line; (line = strtok_r(rest, "\n", &rest)); ++done) {
        char name[64], filter[16], dir_name[32];
        int turn, side;
        size_t begin;
        if (sscanf(line, "%63s %15s %d %d %zu", name, filter, &turn, &side, &begin) != 5)
            die("short.txt: %s", line);
        snprintf(dir_name, sizeof dir_name, "square%d", done);
        const char *dir = in_scratch(dir_name), *out = in_scratch("square.h5");
        make_folder(dir);
        make_folder(at(dir, "c"));
        copy(name, at(dir, "c/picture"));
        FolderImport import = import_of(dir, out);
        import.side = side;
        import.orient = turn;
        import.filter = strcmp(filter, "bicubic") == 0 ? IMAGE_BICUBIC : IMAGE_BILINEAR;
        CHECK_OK(data_import_folder(&import, NULL));
        int64_t n;
        uint8_t *x = array_of(out, "/x", H5T_NATIVE_UINT8, 1, &n);
        CU_ASSERT_EQUAL_FATAL(n, 3 * side * side);
        CU_ASSERT_EQUAL(memcmp(x, planes + begin, (size_t)n), 0);
        double sum = 0, squares = 0, count = side * side;
        for (int i = 0; i < side * side; ++i) sum += x[i], squares += (double)x[i] * x[i];
        DataSet set;
        CHECK_OK(data_set_open(&set, NULL, out));
        CU_ASSERT_DOUBLE_EQUAL(set.mean[0], sum / count / 255, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(set.std[0],
                               sqrt(squares / count - sum / count * (sum / count)) / 255, 1e-6);
        mem_free(&x);
    }
    CU_ASSERT_TRUE(done > 5);
    mem_free(&planes);
    mem_free(&lines);
}

/* The order of sorted(os.walk(class)), by which torchvision's ImageFolder lists files. */
static void folders_are_sorted_as_torchvision_sorts_them(void)
{
    static const char *const order[] = {"c/z.png",   "c/set/1",     "c/set/2",     "c/set 3/1",
                                        "c/set-2/1", "c/set.old/1", "c/set/sub/1", "c/set0/1"};
    enum { FILES = sizeof order / sizeof *order };
    static const char *const folders[] = {"",        "c",         "c/set",     "c/set 3",
                                          "c/set-2", "c/set.old", "c/set/sub", "c/set0"};
    const char *dir = in_scratch("siblings");
    FolderFiles files = {0};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) make_folder(at(dir, folders[i]));
    for (int i = 0; i < FILES; ++i) write_bytes(at(dir, order[i]), "x", 1);
    CHECK_OK(folder_scan(&files, dir));
    CU_ASSERT_EQUAL_FATAL(files.count, FILES);
    for (int i = 0; i < FILES; ++i)
        CU_ASSERT_STRING_EQUAL(files_path(&files, i), at(dir, order[i]));
    files_fini(&files);
}

static void append_byte(const char *path)
{
    FILE *file = fopen(path, "a");
    if (!file) die("fopen %s", path);
    fputc('x', file);
    fclose(file);
}

/* Lets a file grow after all files were decoded. user: its path. */
static void grow_at_end(void *user, int64_t done, int64_t total, int64_t broken)
{
    (void)broken;
    if (done == total) append_byte(user);
}

/* Not skipped: it may be a good picture now. 12 files are broken, and only 10 are decoded twice. */
static void broken_files_that_change_end_the_import(void)
{
    static const char *const changed[] = {"a/broken00", "a/broken11"};
    for (int i = 0; i < 2; ++i) {
        const char *dir = small_tree("growing");
        for (int k = 0; k < 12; ++k) {
            char name[20];
            snprintf(name, sizeof name, "a/broken%02d", k);
            write_bytes(at(dir, name), "nothing", 7);
        }
        FolderImport import = import_of(dir, in_scratch("growing.h5"));
        import.skip_broken = true;
        char *path = mem_text(at(dir, changed[i]));
        ImportRanks ranks = import_alone;
        ranks.user = path;
        ranks.progress = grow_at_end;
        CHECK_FAILS(data_import_folder(&import, &ranks), ERR_IO,
                    "has changed while it was imported: start the import again");
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), changed[i]));
        CU_ASSERT_NOT_EQUAL(access(import.out, F_OK), 0);
        CHECK_OK(data_import_folder(&import, NULL));
        unlink(import.out);
        mem_free(&path);
    }
}

/* FolderLabels of a folder's files: refuses the first picture that it checks, but only once. */
static Status find_tree(void *user, FolderFiles *files)
{
    return folder_scan(files, ((const FolderImport *)user)->dir);
}

static int64_t few_bytes(void *user)
{
    (void)user;
    return 1000;
}

static int64_t bytes_of_no_disk(void *user)
{
    (void)user;
    return INT64_C(1) << 60;
}

static Status refuse_once(void *user, int64_t i, const FolderSample *sample)
{
    static bool refused;
    (void)user, (void)i, (void)sample;
    if (refused) return OK;
    refused = true;
    return fail(ERR_DATA, "refused");
}

static void unfit_ones_that_fit_later_end_the_import(void)
{
    FolderImport import = import_of(small_tree("unfit"), in_scratch("unfit.h5"));
    FolderLabels labels = {.user = &import,
                           .kind = DATA_BOXES,
                           .find = find_tree,
                           .bytes = few_bytes,
                           .check = refuse_once};
    import.labels = &labels, import.encoded = true, import.allow_empty = true;
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_IO,
                "B/x: did not fit its labels before, but does now: import again");
}

/* A disk that is too small for the labels is noticed before anything is decoded. */
static void space_for_labels_is_reserved_first(void)
{
    FolderImport import = import_of(small_tree("large"), in_scratch("large.h5"));
    FolderLabels labels = {
        .user = &import, .kind = DATA_BOXES, .find = find_tree, .bytes = bytes_of_no_disk};
    import.labels = &labels, import.encoded = true, import.allow_empty = true;
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_IO, "No space left on device");
}

static void broken_ones_are_named_or_left_out(void)
{
    const char *dir = small_tree("broken"), *good = in_scratch("good.h5");
    const char *out = in_scratch("skipped.h5"), *encoded = in_scratch("skipped_encoded.h5");
    const char *good_encoded = in_scratch("good_encoded.h5");
    FolderImport import = import_of(dir, good), skip = import_of(dir, out);
    skip.skip_broken = true;
    CHECK_OK(data_import_folder(&import, NULL));
    CHECK_OK(import_encoded(dir, good_encoded));
    write_bytes(at(dir, "a/deep/1a.jpg"), "nothing", 7);
    write_bytes(at(dir, "a/deep/3"), "", 0);
    write_bytes(at(dir, "B/a.jpg"), "\xff\xd8\xff\xe0", 4);
    CU_ASSERT_EQUAL(symlink("/nowhere/at/all", at(dir, "B/link")), 0);
    import.out = out;
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_DATA,
                "4 of 8 files cannot be used: repair them, or leave them out with --broken skip");
    CU_ASSERT_NOT_EQUAL(access(out, F_OK), 0);
    CHECK_OK(data_import_folder(&skip, NULL));
    CU_ASSERT_TRUE(same_files(out, good));
    skip.out = encoded, skip.encoded = true, skip.side = 0;
    CHECK_OK(data_import_folder(&skip, NULL));
    CU_ASSERT_TRUE(same_files(encoded, good_encoded));
    unlink(at(dir, "B/x"));
    CHECK_FAILS(data_import_folder(&skip, NULL), ERR_DATA, "class B has no picture");
    skip.allow_empty = true;
    CHECK_OK(data_import_folder(&skip, NULL));
    CU_ASSERT_TRUE(labels_are(encoded, 3, (int32_t[]){1, 1, 1}));
}

static void folders_that_make_no_sense_are_refused(void)
{
    const char *dir = small_tree("odd"), *out = in_scratch("odd.h5");
    FolderImport import = import_of(dir, out);
    make_folder(at(dir, "empty"));
    make_folder(at(dir, "none"));
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_DATA,
                "class empty and 1 more have no picture");
    rmdir(at(dir, "none"));
    import.allow_empty = true;
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_EQUAL(symlink("../..", at(dir, "a/deep/up")), 0);
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_DATA, "a/deep/up");
    unlink(at(dir, "a/deep/up"));
    CU_ASSERT_EQUAL(symlink("../../B", at(dir, "a/deep/B")), 0);
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(labels_are(out, 5, (int32_t[]){0, 1, 1, 1, 1}));
    import.dir = at(dir, "B");
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_DATA, "has no folders");
    import.dir = at(dir, "nix");
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_NOINPUT, "nix");
    import.dir = dir, import.force = false;
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_USAGE, "--force");
}

static void thousands_of_long_names(void)
{
    enum { CLASSES = 1500, LENGTH = 200 };
    const char *dir = in_scratch("many"), *out = in_scratch("many.h5");
    char name[LENGTH + 1], path[400];
    make_folder(dir);
    copy("png.JPEG", at(dir, "picture"));
    for (int i = 0; i < CLASSES; ++i) {
        snprintf(name, sizeof name, "n%05d, %s", i, "a name of several words");
        memset(name + strlen(name), 'x', sizeof name - strlen(name) - 1);
        name[LENGTH] = 0;
        make_folder(at(dir, name));
        snprintf(path, sizeof path, "%s/%s/p", dir, name);
        if (link(at(dir, "picture"), path) != 0) die("link");
    }
    FolderImport import = import_of(dir, out);
    CHECK_OK(data_import_folder(&import, NULL));
    DataSet set;
    ClassNames names;
    CHECK_OK(data_set_open(&set, NULL, out));
    CU_ASSERT_EQUAL(set.classes, CLASSES);
    CHECK_OK(class_names_read(&names, out));
    CU_ASSERT_EQUAL_FATAL(names.count, CLASSES);
    CU_ASSERT_STRING_EQUAL(names.name[CLASSES - 1], name);
    CU_ASSERT_EQUAL(strncmp(names.name[7], "n00007, a name", 14), 0);
    class_names_free(&names);
    size_t room = (size_t)CLASSES * (LENGTH + 60);
    char *text = mem_new(room);
    FILE *f = fmemopen(text, room, "w");
    CHECK_OK(data_set_print(&set, f, false));
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, name));
    mem_free(&text);
    /* The same after an import through HDF5. */
    const char *again = in_scratch("many_again.h5");
    CHECK_OK(data_import_hdf5(out, "/x", "/y", again, true, NULL));
    CU_ASSERT_TRUE(class_is(again, CLASSES - 1, name));
}

int main(void)
{
    static const HarnessTest tests[] = {
        {"classes and files are sorted by their bytes",
         classes_and_files_are_sorted_by_their_bytes},
        {"squares are Pillow's", squares_are_pillows},
        {"folders are sorted as torchvision sorts them",
         folders_are_sorted_as_torchvision_sorts_them},
        {"broken files that change end the import", broken_files_that_change_end_the_import},
        {"unfit ones that fit later end the import", unfit_ones_that_fit_later_end_the_import},
        {"space for labels is reserved first", space_for_labels_is_reserved_first},
        {"broken ones are named or left out", broken_ones_are_named_or_left_out},
        {"folders that make no sense are refused", folders_that_make_no_sense_are_refused},
        {"thousands of long names", thousands_of_long_names},
    };
    log_init(false);
    return pictures_run("folder", tests, (int)(sizeof tests / sizeof tests[0]));
}
