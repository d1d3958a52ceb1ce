/* Tests matching of labels by class names, for files of a list and for a test set and its training
 * set. Expected values were worked out by hand. */
#include "fixture.h"

static void h5_put_list(hid_t file, const char *const *name, hsize_t count)
{
    enum { WIDTH = 16 };
    char text[16 * WIDTH] = "";
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
    H5Tset_size(type, WIDTH);
    for (hsize_t i = 0; i < count; ++i) snprintf(text + i * WIDTH, WIDTH, "%s", name[i]);
    hid_t a = H5Acreate2(file, "classes", type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (a < 0 || H5Awrite(a, type, text) < 0) die("H5Awrite");
    H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
}

/* Writes a set of n rows of two numbers with these labels and names of classes, which end with
 * NULL. */
static const char *set_of(const char *file_name, int n, const int32_t *label,
                          const char *const *name)
{
    const char *path = in_scratch(file_name);
    float x[64] = {0};
    hsize_t count = 0, rows = (hsize_t)n;
    for (int i = 0; i < 2 * n; ++i) x[i] = (float)i;
    while (name && name[count]) ++count;
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {rows, 2}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_STD_U8LE, H5T_NATIVE_INT32, 1, {rows}, {0}, 0, label});
    if (count) h5_put_list(file, name, count);
    H5Fclose(file);
    return path;
}

static bool labels_read(const DataSet *set, int n, const int32_t *label)
{
    Reader *reader;
    int32_t is;
    bool same = set->samples == n && reader_new(&reader, set) == OK;
    for (int i = 0; same && i < n; ++i)
        same = reader_get(reader, i, NULL, &is, NULL) == OK && is == label[i];
    reader_free(&reader);
    return same;
}

/* Maps the labels of `test` to the classes of `train`; returns the status and the line. */
static Status use(DataSet *test, const char *path, const char *train, char **line)
{
    ClassNames file_names, classes;
    static DataSet set;
    *line = NULL;
    TRY(data_set_open(&set, NULL, train));
    TRY(data_set_class_names(&set, &classes));
    Status st = data_set_open(test, NULL, path);
    if (st == OK) st = data_set_class_names(test, &file_names);
    if (st == OK) {
        st = data_set_use_classes(test, &file_names, &classes, train, line);
        class_names_free(&file_names);
    }
    class_names_free(&classes);
    return st;
}

static const char *const animals[] = {"cat", "dog", "eel", "fox", NULL};

static void a_subset_in_another_order(void)
{
    static DataSet set;
    char *line;
    const char *train = set_of("train.h5", 4, (int32_t[]){0, 1, 2, 3}, animals);
    const char *less = set_of("less.h5", 5, (int32_t[]){2, 0, 1, 1, 2},
                              (const char *const[]){"cat", "eel", "fox", NULL});
    CHECK_OK(use(&set, less, train, &line));
    CU_ASSERT_EQUAL(set.classes, 4);
    CU_ASSERT_TRUE(labels_read(&set, 5, (int32_t[]){3, 0, 2, 2, 3}));
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    CU_ASSERT_PTR_NOT_NULL(strstr(line, "3 of the 4 classes"));
    CU_ASSERT_PTR_NOT_NULL(strstr(line, "lacks 'dog'"));
    mem_free(&line);
    const char *other = set_of("other.h5", 4, (int32_t[]){0, 1, 2, 3},
                               (const char *const[]){"fox", "eel", "cat", "dog", NULL});
    CHECK_OK(use(&set, other, train, &line));
    CU_ASSERT_TRUE(labels_read(&set, 4, (int32_t[]){3, 2, 0, 1}));
    CU_ASSERT_PTR_NOT_NULL(strstr(line, "in another order"));
    mem_free(&line);
    /* Equal lists give no line. */
    CHECK_OK(use(&set, set_of("same.h5", 2, (int32_t[]){1, 3}, animals), train, &line));
    CU_ASSERT_PTR_NULL(line);
    CU_ASSERT_TRUE(labels_read(&set, 2, (int32_t[]){1, 3}));
}

static void a_class_that_training_has_not(void)
{
    static DataSet set;
    char *line;
    static const char *const more[] = {"ant", "cat", "dog", "eel", "fox", NULL};
    const char *train = set_of("t.h5", 4, (int32_t[]){0, 1, 2, 3}, animals);
    CHECK_OK(use(&set, set_of("empty.h5", 3, (int32_t[]){4, 2, 1}, more), train, &line));
    CU_ASSERT_PTR_NOT_NULL(strstr(line, "lacks 'ant'"));
    mem_free(&line);
    CHECK_OK(data_set_check_labels(&set));
    CU_ASSERT_TRUE(labels_read(&set, 3, (int32_t[]){3, 1, 0}));
    CHECK_OK(use(&set, set_of("ant.h5", 3, (int32_t[]){4, 0, 1}, more), train, &line));
    mem_free(&line);
    CHECK_FAILS(data_set_check_labels(&set), ERR_DATA, "sample 1 is of the class 'ant'");
}

static void names_that_do_not_fit(void)
{
    static DataSet set;
    char *line;
    const char *train = set_of("n.h5", 4, (int32_t[]){0, 1, 2, 3}, animals);
    static const char *const wolf[] = {"cat", "wolf", "eel", "fox", NULL};
    CHECK_FAILS(
        use(&set, set_of("wolf.h5", 2, (int32_t[]){0, 1}, wolf), train, &line), ERR_DATA,
        "'wolf' (class 1) is not among them, and 'dog' (their class 1) is not among its own");
    static const char *const twice[] = {"cat", "eel", "cat", NULL};
    CHECK_FAILS(use(&set, set_of("twice.h5", 2, (int32_t[]){0, 1}, twice), train, &line), ERR_DATA,
                "classes 0 and 2 are both named 'cat'");
    /* Labels of a file without names, or with only numbers, keep their numbers, and a line says
     * so. */
    static const char *const numbers[] = {"0", "1", "2", NULL};
    const char *bare = set_of("bare.h5", 2, (int32_t[]){0, 1}, NULL);
    CHECK_OK(use(&set, bare, train, &line));
    CU_ASSERT_TRUE(line && strstr(line, "bare.h5: has no names of classes, so labels are matched "
                                        "by number: 0 is 'cat', as in "));
    mem_free(&line);
    const char *counted = set_of("numbers.h5", 3, (int32_t[]){0, 1, 2}, numbers);
    CHECK_OK(use(&set, counted, train, &line));
    CU_ASSERT_TRUE(line && strstr(line, "numbers.h5: has no names of classes"));
    mem_free(&line);
    CU_ASSERT_TRUE(labels_read(&set, 3, (int32_t[]){0, 1, 2}));
    CHECK_OK(use(&set, train, counted, &line));
    CU_ASSERT_TRUE(line && strstr(line, "numbers.h5 has no names of classes: 0 is 'cat' here"));
    mem_free(&line);
    CHECK_OK(use(&set, bare, counted, &line));
    CU_ASSERT_PTR_NULL(line);
    /* Numbers that do not begin with 0 count as names. */
    static const char *const digits[] = {"0", "1", "2", "3", NULL}, *const no_zero[] = {"1", "2",
                                                                                        "3", NULL};
    const char *all = set_of("digits.h5", 4, (int32_t[]){0, 1, 2, 3}, digits);
    CHECK_OK(use(&set, set_of("one.h5", 3, (int32_t[]){0, 1, 2}, no_zero), all, &line));
    CU_ASSERT_TRUE(labels_read(&set, 3, (int32_t[]){1, 2, 3}));
    mem_free(&line);
}

static void files_of_a_list(void)
{
    static DataSet set;
    char *line, one[DATA_FINGERPRINT], two[DATA_FINGERPRINT];
    ClassNames names;
    const char *a =
        set_of("a.h5", 3, (int32_t[]){0, 1, 2}, (const char *const[]){"fox", "cat", "eel", NULL});
    const char *b = set_of("b.h5", 4, (int32_t[]){0, 1, 2, 3}, animals);
    const char *c = set_of("c.h5", 2, (int32_t[]){0, 1}, (const char *const[]){"eel", "dog", NULL});
    char *list = mem_format("%s\n%s\n%s", a, b, c);
    CHECK_OK(data_set_open(&set, NULL, list));
    CU_ASSERT_EQUAL(set.classes, 4);
    /* The classes are fox, cat, eel, and dog, which only b has. */
    CU_ASSERT_TRUE(labels_read(&set, 9, (int32_t[]){0, 1, 2, 1, 3, 2, 0, 2, 3}));
    CHECK_OK(data_set_class_names(&set, &names));
    CU_ASSERT_EQUAL_FATAL(names.count, 4);
    CU_ASSERT_STRING_EQUAL(names.name[0], "fox");
    CU_ASSERT_STRING_EQUAL(names.name[3], "dog");
    class_names_free(&names);
    CHECK_OK(data_set_check(&set, 0));
    /* Use the same files with the classes of set b. */
    CHECK_OK(use(&set, list, b, &line));
    CU_ASSERT_TRUE(labels_read(&set, 9, (int32_t[]){3, 0, 2, 0, 1, 2, 3, 2, 1}));
    mem_free(&line);
    CHECK_OK(data_set_fingerprint(&set, one));
    CHECK_OK(use(&set, list, a, &line));
    CHECK_OK(data_set_fingerprint(&set, two));
    CU_ASSERT_STRING_NOT_EQUAL(one, two);
    mem_free(&line);
    mem_free(&list);
    const char *d = set_of("d.h5", 2, (int32_t[]){0, 1}, (const char *const[]){"fox", "yak", NULL});
    list = mem_format("%s\n%s", a, d);
    CHECK_FAILS(data_set_open(&set, NULL, list), ERR_DATA, "'yak' (class 1) is not among them");
    mem_free(&list);
}

/* Opens these files as one set; checks labels and the first class's name. */
static void check_list(const char *const *file, int n, const int32_t *label, const char *first)
{
    static DataSet set;
    char *list = mem_text(file[0]);
    ClassNames names;
    for (int i = 1; file[i]; ++i) {
        char *more = mem_format("%s\n%s", list, file[i]);
        mem_free(&list);
        list = more;
    }
    CHECK_OK(data_set_open(&set, NULL, list));
    CU_ASSERT_TRUE(labels_read(&set, n, label));
    CHECK_OK(data_set_class_names(&set, &names));
    CU_ASSERT_TRUE(names.count > 0 && strcmp(names.name[0], first) == 0);
    class_names_free(&names);
    mem_free(&list);
}

/* Names of one file also apply to files without names, wherever it is in the list. */
static void names_of_some_files(void)
{
    static DataSet set;
    static const char *const numbers[] = {"0", "1", "2", NULL},
                             *const names[] = {"cat", "dog", "eel", NULL},
                             *const turned[] = {"eel", "cat", "dog", NULL};
    const char *count = set_of("lc.h5", 3, (int32_t[]){0, 1, 2}, numbers);
    const char *bare = set_of("lb.h5", 3, (int32_t[]){2, 1, 0}, NULL);
    const char *named = set_of("ln.h5", 3, (int32_t[]){0, 1, 2}, names);
    const char *other = set_of("lo.h5", 3, (int32_t[]){0, 1, 2}, turned);
    const int32_t right[] = {0, 1, 2, 0, 1, 2, 2, 0, 1};
    check_list((const char *const[]){count, named, other, NULL}, 9, right, "cat");
    check_list((const char *const[]){named, count, other, NULL}, 9, right, "cat");
    check_list((const char *const[]){bare, named, other, NULL}, 9,
               (int32_t[]){2, 1, 0, 0, 1, 2, 2, 0, 1}, "cat");
    check_list((const char *const[]){named, bare, other, NULL}, 9,
               (int32_t[]){0, 1, 2, 2, 1, 0, 2, 0, 1}, "cat");
    check_list((const char *const[]){count, bare, NULL}, 6, (int32_t[]){0, 1, 2, 2, 1, 0}, "0");
    /* Labels 0 to 3 exceed a list of three names. */
    const char *four = set_of("l4.h5", 4, (int32_t[]){0, 1, 2, 3}, NULL);
    char *list = mem_format("%s\n%s", named, four);
    CHECK_FAILS(data_set_open(&set, NULL, list), ERR_DATA, "l4.h5: has 4 classes");
    mem_free(&list);
    list = mem_format("%s\n%s", four, named);
    CHECK_FAILS(data_set_open(&set, NULL, list), ERR_DATA, "ln.h5: has 3 classes");
    mem_free(&list);
}

/* A file's own list of classes limits its labels, even if the model has more classes. */
static void labels_beyond_the_names(void)
{
    static DataSet set, list;
    Config c = config_plain();
    const char *path = set_of("beyond.h5", 5, (int32_t[]){0, 1, 4, 2, 3}, animals);
    const char *good = set_of("within.h5", 2, (int32_t[]){0, 3}, animals);
    const char *what = "beyond.h5: sample 2: its label in /y is 4, but the file itself has 4 "
                       "classes (0 to 3)";
    c.model.classes = 10;
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_FAILS(data_set_check_labels(&set), ERR_DATA, what);
    CHECK_FAILS(data_set_check(&set, 10), ERR_DATA, what);
    char *both = mem_format("%s\n%s", good, path);
    CHECK_OK(data_set_open(&list, &c, both));
    CHECK_FAILS(data_set_check_labels(&list), ERR_DATA, what);
    mem_free(&both);
    c.model.classes = 0;
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_FAILS(data_set_check_labels(&set), ERR_DATA, what);
}

/* If most classes are empty, the message lists the labels that occur, and does not advise dropping
 * any. */
static void sparse_labels(void)
{
    static DataSet set;
    static LabelUse used;
    CHECK_OK(data_set_open(&set, NULL, set_of("tens.h5", 5, (int32_t[]){0, 10, 30, 20, 10}, NULL)));
    CHECK_OK(data_set_count_labels(&set, &used));
    char *odd = data_set_label_warning(&set, NULL, &used);
    CU_ASSERT_PTR_NOT_NULL_FATAL(odd);
    CU_ASSERT_PTR_NOT_NULL(strstr(odd, "its labels are 0, 10, 20, 30: 27 of 31 classes have no"));
    CU_ASSERT_PTR_NULL(strstr(odd, "drop"));
    mem_free(&odd);
    Config c = config_plain();
    c.model.classes = 4;
    CHECK_OK(data_set_open(&set, &c, set_of("tens.h5", 4, (int32_t[]){0, 10, 20, 30}, NULL)));
    CHECK_FAILS(data_set_check_labels(&set), ERR_DATA, "its label in /y is 10, but there are 4");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "drop"));
}

static void labels_of_64_bits(void)
{
    static DataSet set;
    const char *path = in_scratch("large.h5");
    const float x[4] = {1, 2, 3, 4};
    const uint64_t y[2] = {0, UINT64_C(9223372036854775818)};
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {2, 2}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, {2}, {0}, 0, y});
    H5Fclose(file);
    CHECK_FAILS(
        data_set_open(&set, NULL, path), ERR_DATA,
        "sample 1: its label in /y is 9223372036854775818, and labels are below 2147483647");
}

/* The fingerprint of a set does not depend on the order in which its file numbers classes. */
static void fingerprints(void)
{
    static DataSet set;
    char *line, one[DATA_FINGERPRINT], two[DATA_FINGERPRINT];
    const char *train = set_of("f.h5", 4, (int32_t[]){0, 1, 2, 3}, animals);
    const char *turned = set_of("g.h5", 4, (int32_t[]){1, 0, 3, 2},
                                (const char *const[]){"dog", "cat", "fox", "eel", NULL});
    CHECK_OK(use(&set, train, train, &line));
    CHECK_OK(data_set_fingerprint(&set, one));
    CHECK_OK(use(&set, turned, train, &line));
    mem_free(&line);
    CHECK_OK(data_set_fingerprint(&set, two));
    CU_ASSERT_STRING_EQUAL(one, two);
}

static void labels_that_begin_above_0(void)
{
    static DataSet set;
    static LabelUse used;
    Config c = config_plain();
    const char *path = set_of("letters.h5", 6, (int32_t[]){1, 2, 3, 4, 1, 4}, NULL);
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.classes, 5);
    CHECK_OK(data_set_count_labels(&set, &used));
    CU_ASSERT(used.least == 1 && used.most == 4 && used.second == 3 && used.count == 4);
    char *odd = data_set_label_warning(&set, &c, &used);
    CU_ASSERT_PTR_NOT_NULL_FATAL(odd);
    CU_ASSERT_PTR_NOT_NULL(strstr(odd, "labels are 1 to 4, so 1 of 5 classes have no sample"));
    CU_ASSERT_PTR_NOT_NULL(strstr(odd, "data.label_base: 1"));
    mem_free(&odd);
    c.data.label_base = 1;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.classes, 4);
    CU_ASSERT_TRUE(labels_read(&set, 6, (int32_t[]){0, 1, 2, 3, 0, 3}));
    CHECK_OK(data_set_count_labels(&set, &used));
    CU_ASSERT_PTR_NULL(data_set_label_warning(&set, &c, &used));
    /* An importer has written numbers as names, one of them for label 0, which does not occur. */
    static const char *const numbers[] = {"0", "1", "2", "3", "4", NULL};
    ClassNames names;
    CHECK_OK(data_set_open(&set, &c, set_of("idx.h5", 4, (int32_t[]){1, 2, 3, 4}, numbers)));
    CU_ASSERT_EQUAL(set.classes, 4);
    CHECK_OK(data_set_class_names(&set, &names));
    CU_ASSERT_EQUAL_FATAL(names.count, 4);
    CU_ASSERT_STRING_EQUAL(names.name[0], "1");
    class_names_free(&names);
    CHECK_FAILS(data_set_open(&set, &c, set_of("zero.h5", 2, (int32_t[]){1, 0}, NULL)), ERR_DATA,
                "labels begin at 1");
    /* There is a name for each of the labels 1 to 4. */
    c.data.label_base = 0;
    path = set_of("named.h5", 4, (int32_t[]){1, 2, 3, 4}, animals);
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_FAILS(data_set_check_labels(&set), ERR_DATA, "set data.label_base");
    c.data.label_base = 1;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_TRUE(labels_read(&set, 4, (int32_t[]){0, 1, 2, 3}));
}

static void a_label_for_none(void)
{
    static DataSet set;
    static LabelUse used;
    LabelDrop drop = {.label = 255};
    const int32_t label[] = {0, 255, 2, 1, 255, 3};
    const char *path = set_of("void.h5", 6, label, NULL), *out = in_scratch("kept.h5");
    CHECK_OK(data_set_open(&set, NULL, path));
    CHECK_OK(data_set_count_labels(&set, &used));
    char *odd = data_set_label_warning(&set, NULL, &used);
    CU_ASSERT_PTR_NOT_NULL_FATAL(odd);
    CU_ASSERT_PTR_NOT_NULL(strstr(odd, "labels are 0 to 3, and 255, so 251 of 256 classes"));
    CU_ASSERT_PTR_NOT_NULL(strstr(odd, "--drop-label 255"));
    mem_free(&odd);
    CHECK_OK(data_import_hdf5(path, "/x", "/y", out, true, &drop));
    CU_ASSERT_EQUAL(drop.count, 2);
    CHECK_OK(data_set_open(&set, NULL, out));
    CU_ASSERT_EQUAL(set.classes, 4);
    CU_ASSERT_TRUE(labels_read(&set, 4, (int32_t[]){0, 2, 1, 3}));
    Reader *reader;
    float x[2];
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, 2, x, NULL, NULL));
    CU_ASSERT(x[0] == 6 && x[1] == 7);
    reader_free(&reader);
    drop.label = 7;
    CHECK_OK(data_import_hdf5(path, "/x", "/y", out, true, &drop));
    CU_ASSERT_EQUAL(drop.count, 0);
    const char *none = set_of("none.h5", 2, (int32_t[]){255, 255}, NULL);
    drop.label = 255;
    CHECK_FAILS(data_import_hdf5(none, "/x", "/y", out, true, &drop), ERR_DATA,
                "none would remain");
}

TEST_MAIN("class_map", {"a subset, in another order", a_subset_in_another_order},
          {"a class that training has not", a_class_that_training_has_not},
          {"names that do not fit", names_that_do_not_fit}, {"files of a list", files_of_a_list},
          {"names of some files", names_of_some_files},
          {"labels beyond the names", labels_beyond_the_names}, {"sparse labels", sparse_labels},
          {"labels of 64 bits", labels_of_64_bits}, {"fingerprints", fingerprints},
          {"labels from 1", labels_that_begin_above_0}, {"a label for none", a_label_for_none})
