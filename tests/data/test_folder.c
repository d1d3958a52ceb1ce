/* Importing pictures from folders and lists: which files, in which order, which class; squares
 * equal to Pillow's and encoded bytes equal to the files; broken ones named and left out; an import
 * that goes on, and reads again only what has changed. */
#include "fixture.h"
#include "data/folder_files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>

#define PICTURES "tests/image/pictures/"

/* ---- folders ---- */

static void make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) die("mkdir %s", path);
}

static void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, count, f) != count || fclose(f) != 0) die("%s", path);
}

static void copy(const char *picture, const char *to)
{
    char from[200], *bytes;
    size_t count;
    snprintf(from, sizeof from, PICTURES "%s", picture);
    if (file_text(from, 1 << 20, &bytes, &count) != OK) die("%s", fail_message());
    write_bytes(to, bytes, count);
    mem_free(&bytes);
}

/* DIR/NAME; ten may be held at a time. */
static const char *at(const char *dir, const char *name)
{
    static char path[10][400];
    static int turn;
    turn = (turn + 1) % 10;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

/* Two classes: "B" with exif6.jpg; "a" with plain.png and, further down, plain.jpg and cmyk.jpg. */
static const char *small_tree(const char *name)
{
    const char *dir = in_scratch(name);
    make_folder(dir);
    make_folder(at(dir, "a"));
    make_folder(at(dir, "a/deep"));
    make_folder(at(dir, "B"));
    copy("plain.png", at(dir, "a/z.JPEG"));
    copy("plain.jpg", at(dir, "a/deep/1"));
    copy("cmyk.jpg", at(dir, "a/deep/2.png"));
    copy("exif6.jpg", at(dir, "B/x"));
    return dir;
}

static FolderImport import_of(const char *dir, const char *out)
{
    return (FolderImport){.dir = dir, .out = out, .side = 8, .threads = 2, .force = true};
}

static Status import_encoded(const char *dir, const char *out)
{
    FolderImport import = import_of(dir, out);
    import.encoded = true;
    import.side = 0;
    return data_import_folder(&import, NULL);
}

static char *whole(const char *path, size_t *bytes)
{
    char *text;
    if (file_text(path, (size_t)1 << 28, &text, bytes) != OK) die("%s", fail_message());
    return text;
}

static bool same_files(const char *a, const char *b)
{
    size_t left, right;
    char *x = whole(a, &left), *y = whole(b, &right);
    bool same = left == right && memcmp(x, y, left) == 0;
    mem_free(&x);
    mem_free(&y);
    return same;
}

/* An array of the file, read by HDF5; owned by the caller. */
static void *array_of(const char *path, const char *name, hid_t type, size_t each, int64_t *count)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    *count = (int64_t)H5Sget_simple_extent_npoints(space);
    void *values = mem_new((size_t)*count * each + 1);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) die("%s %s", path, name);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return values;
}

static bool labels_are(const char *path, int count, const int32_t *wanted)
{
    int64_t n;
    int32_t *label = array_of(path, "/y", H5T_NATIVE_INT32, sizeof *label, &n);
    bool same = n == count && memcmp(label, wanted, (size_t)count * sizeof *label) == 0;
    mem_free(&label);
    return same;
}

/* ---- tests ---- */

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
    /* the second and the third spoiled in the file: the first of them is named */
    int fd = open(out, O_WRONLY);
    for (int i = 1; i < 3; ++i)
        CU_ASSERT_EQUAL(pwrite(fd, "no", 2, set->x.offset + (off_t)offset[i]), 2);
    close(fd);
    CHECK_FAILS(data_set_check(set, 0), ERR_DATA, "sample 1");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "1 others cannot be used, either"));
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
                "4 of 8 files cannot be used: mend them, or leave them out with --broken skip");
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
                "class empty has no picture, nor have 1 others");
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
    /* by way of HDF5, too */
    const char *again = in_scratch("many_again.h5");
    CHECK_OK(data_import_hdf5(out, "/x", "/y", again, true));
    CU_ASSERT_TRUE(class_is(again, CLASSES - 1, name));
}

/* ---- lists ---- */

static Status list_of(FolderFiles *files, const char *text)
{
    char *own = mem_text(text);
    Status status = folder_list_text(files, "dir", "list.txt", own);
    mem_free(&own);
    return status;
}

static void lists(void)
{
    FolderFiles files = {0};
    CHECK_OK(
        list_of(&files, "\xef\xbb\xbf\"a, \"\"b\"\".jpg\",dog\r\n\n/abs/c.jpg , cat\nd.jpg,dog"));
    CU_ASSERT_EQUAL_FATAL(files.count, 3);
    CU_ASSERT_STRING_EQUAL(files_path(&files, 0), "dir/a, \"b\".jpg");
    CU_ASSERT_STRING_EQUAL(files_path(&files, 1), "/abs/c.jpg");
    CU_ASSERT_EQUAL(files.classes, 2);
    CU_ASSERT_STRING_EQUAL(files.class_name[0], "cat");
    CU_ASSERT_EQUAL(files.file[0].label, 1);
    CU_ASSERT_EQUAL(files.file[1].label, 0);
    files_fini(&files);
    CHECK_OK(list_of(&files, "val 1.JPEG 65\nval 2.JPEG 3\n"));
    CU_ASSERT_STRING_EQUAL(files_path(&files, 0), "dir/val 1.JPEG");
    CU_ASSERT_EQUAL(files.classes, 66);
    CU_ASSERT_PTR_NULL(files.class_name);
    CU_ASSERT_EQUAL(files.file[1].label, 3);
    CHECK_FAILS(files_check_classes(&files, NULL), ERR_DATA, "class 0 has no picture");
    files_fini(&files);
    CHECK_OK(list_of(&files, "a b.png\tred fox\nc.png\t12"));
    CU_ASSERT_STRING_EQUAL(files_path(&files, 0), "dir/a b.png");
    CU_ASSERT_STRING_EQUAL(files.class_name[1], "red fox");
    CU_ASSERT_EQUAL(files.classes, 2);
    files_fini(&files);
    static const char *const bad[][2] = {
        {"a.jpg,1\nb.jpg,1,2\n", "line 2: a picture with several labels"},
        {"a.jpg\t1\t2\n", "line 1: a picture with several labels"},
        {"a.jpg,1\nb.jpg,2\na.jpg,2\n", "lines 1 and 3: a.jpg has several labels (1, 2)"},
        {"a.jpg,0\nb.jpg,-1\n", "line 2: the label is a number, but of no class"},
        {"a.jpg,99999999999999999999\n", "line 1: the label is a number, but of no class"},
        {"a.jpg\n", "line 1: expected path,label"},
        {"a.jpg,\n", "line 1: expected path,label"},
        {"\"a.jpg,1\n", "line 1: expected path,label"},
        {",1\n", "line 1: expected path,label"},
        {"\n \n", "names no picture"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        CHECK_FAILS(list_of(&files, bad[i][0]), ERR_DATA, bad[i][1]);
        files_fini(&files);
    }
    /* twice, as long as the label is the same */
    CHECK_OK(list_of(&files, "a.jpg,1\na.jpg,1\n"));
    CU_ASSERT_EQUAL(files.count, 2);
    files_fini(&files);
}

static void a_list_is_imported_in_its_order(void)
{
    const char *dir = small_tree("listed"), *out = in_scratch("listed.h5");
    FolderImport import = import_of(dir, out);
    import.list = in_scratch("list.csv");
    const char *text = "a/deep/2.png,two\nB/x,one\na/z.JPEG,two\n";
    write_bytes(import.list, text, strlen(text));
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(labels_are(out, 3, (int32_t[]){1, 0, 1}));
    CU_ASSERT_TRUE(class_is(out, 1, "two"));
    text = "B/x,0\nno/such.png,1\na/z.JPEG,1\n";
    write_bytes(import.list, text, strlen(text));
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_DATA, "1 of 3 files cannot be used");
    import.skip_broken = true;
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(labels_are(out, 2, (int32_t[]){0, 1}));
}

/* ---- going on ---- */

enum { MANY = 2 * FOLDER_BLOCK + 20, SIDE = 8, SQUARE = 3 * SIDE * SIDE };

static void poison(const char *part, int64_t sample)
{
    static const uint8_t zero[SQUARE];
    int fd = open(part, O_WRONLY);
    if (pwrite(fd, zero, SQUARE, 4096 + sample * SQUARE) != SQUARE) die("%s", part);
    close(fd);
}

static int zeros(const char *path, int64_t sample)
{
    int64_t n;
    uint8_t *x = array_of(path, "/x", H5T_NATIVE_UINT8, 1, &n);
    int count = 0;
    for (int i = 0; i < SQUARE; ++i) count += x[sample * SQUARE + i] == 0;
    mem_free(&x);
    return count == SQUARE;
}

/* Three blocks, and one broken file at the end: all is done, and nothing is finished. */
static const char *half_done(const char *name, const char *out)
{
    const char *dir = in_scratch(name);
    char path[60];
    make_folder(dir);
    make_folder(at(dir, "c"));
    copy("plain.png", at(dir, "picture"));
    for (int i = 0; i < MANY; ++i) {
        snprintf(path, sizeof path, "c/%05d", i);
        if (link(at(dir, "picture"), at(dir, path)) != 0) die("link");
    }
    write_bytes(at(dir, "c/last"), "broken", 6);
    FolderImport import = import_of(dir, out);
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_DATA, "1 of 533 files");
    return dir;
}

static void an_import_goes_on(void)
{
    const char *out = in_scratch("on.h5"), *part = in_scratch("on.h5.part");
    const char *journal = in_scratch("on.h5.part.journal"), *plain = in_scratch("plain.h5");
    const char *dir = half_done("on", out);
    FolderImport import = import_of(dir, out);
    import.skip_broken = true;
    /* of the second block the record is spoiled */
    int fd = open(journal, O_WRONLY);
    CU_ASSERT_EQUAL(pwrite(fd, "spoiled", 7, FOLDER_RECORD + 100), 7);
    close(fd);
    poison(part, 3);
    poison(part, FOLDER_BLOCK + 3);
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(zeros(out, 3));
    CU_ASSERT_FALSE(zeros(out, FOLDER_BLOCK + 3));
    CU_ASSERT_NOT_EQUAL(access(part, F_OK), 0);
    CU_ASSERT_NOT_EQUAL(access(journal, F_OK), 0);
    /* without interruption, and with other threads: the same bytes but for what was poisoned */
    CHECK_OK(data_import_folder(&import, NULL));
    import.out = plain;
    import.threads = 5;
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(same_files(out, plain));
    CU_ASSERT_FALSE(zeros(plain, 3));
}

static void what_has_changed_is_read_again(void)
{
    const char *out = in_scratch("changed.h5"), *part = in_scratch("changed.h5.part");
    const char *dir = half_done("changed", out);
    FolderImport import = import_of(dir, out);
    poison(part, 3);
    poison(part, FOLDER_BLOCK + 3);
    unlink(at(dir, "c/00300"));
    copy("cmyk.jpg", at(dir, "c/00300"));
    copy("plain.jpg", at(dir, "c/last"));
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(zeros(out, 3));
    CU_ASSERT_FALSE(zeros(out, FOLDER_BLOCK + 3));
    /* another size is another import */
    (void)half_done("changed2", out);
    poison(part, 3);
    import.dir = in_scratch("changed2");
    import.side = SIDE + 1;
    import.skip_broken = true;
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_FALSE(zeros(out, 3));
}

/* A link in the place of what was kept is neither followed nor replaced by a file without samples,
 * which the journal would have for done. */
static void a_link_is_not_gone_on_with(void)
{
    const char *out = in_scratch("link.h5"), *part = in_scratch("link.h5.part");
    const char *victim = in_scratch("victim"), *dir = half_done("link", out);
    FolderImport import = import_of(dir, out);
    size_t bytes;
    import.skip_broken = true;
    write_bytes(victim, "precious", 8);
    CU_ASSERT_EQUAL(unlink(part), 0);
    CU_ASSERT_EQUAL(symlink(victim, part), 0);
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_IO, "is a symbolic link");
    CU_ASSERT_NOT_EQUAL(access(out, F_OK), 0);
    char *text = whole(victim, &bytes);
    CU_ASSERT_TRUE(bytes == 8 && memcmp(text, "precious", 8) == 0);
    mem_free(&text);
    CU_ASSERT_EQUAL(unlink(part), 0);
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_FALSE(zeros(out, 3));
}

static void one_import_at_a_time(void)
{
    const char *dir = small_tree("two"), *out = in_scratch("two.h5");
    FolderImport import = import_of(dir, out);
    int journal = open(in_scratch("two.h5.part.journal"), O_RDWR | O_CREAT, 0666);
    CU_ASSERT_EQUAL(flock(journal, LOCK_EX), 0);
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_USAGE, "another import is writing");
    close(journal);
    CHECK_OK(data_import_folder(&import, NULL));
}

static void it_stops_when_asked_to(void)
{
    const char *dir = small_tree("stop"), *out = in_scratch("stop.h5");
    FolderImport import = import_of(dir, out);
    stop_begin();
    raise(SIGTERM);
    Status status = data_import_folder(&import, NULL);
    stop_end();
    /* four pictures may be done before anybody looks */
    CU_ASSERT_TRUE(status == OK || status == ERR_STOPPED);
    import.force = true;
    CHECK_OK(data_import_folder(&import, NULL));
}

int main(void)
{
    char text[120];
    static const HarnessTest tests[] = {
        {"classes and files are sorted by their bytes",
         classes_and_files_are_sorted_by_their_bytes},
        {"squares are Pillow's", squares_are_pillows},
        {"broken ones are named or left out", broken_ones_are_named_or_left_out},
        {"folders that make no sense are refused", folders_that_make_no_sense_are_refused},
        {"thousands of long names", thousands_of_long_names},
        {"lists", lists},
        {"a list is imported in its order", a_list_is_imported_in_its_order},
        {"an import goes on", an_import_goes_on},
        {"what has changed is read again", what_has_changed_is_read_again},
        {"a link is not gone on with", a_link_is_not_gone_on_with},
        {"one import at a time", one_import_at_a_time},
        {"it stops when asked to", it_stops_when_asked_to},
    };
    image_versions(text, sizeof text);
    if (strstr(text, "no ")) {
        printf("  skipped: this build has %s\nfolder: 1 passed, 0 failed\n", text);
        return 0;
    }
    log_init(false);
    return harness_run("folder", tests, (int)(sizeof tests / sizeof tests[0]), 0, NULL);
}
