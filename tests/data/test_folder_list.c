/* Tests imports of pictures by a list: its lines, the pictures and labels they name, and refused
 * lists. */
#include "folders.h"

static Status list_of(FolderFiles *files, const char *text)
{
    char *copy = mem_text(text);
    Status status = folder_list_text(files, "dir", "list.txt", copy);
    mem_free(&copy);
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
    CHECK_FAILS(files_check_classes(&files, NULL), ERR_DATA, "class 0 and 63 more have no picture");
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
        {"a.jpg,0\nb.jpg,-1\n", "line 2: the label is a number that is not a class"},
        {"a.jpg,99999999999999999999\n", "line 1: the label is a number that is not a class"},
        {"a.jpg\n", "line 1: expected path,label"},
        {"a.jpg,\n", "line 1: expected path,label"},
        {"\"a.jpg,1\n", "line 1: expected path,label"},
        {",1\n", "line 1: expected path,label"},
        {"\n \n", "has no pictures"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        CHECK_FAILS(list_of(&files, bad[i][0]), ERR_DATA, bad[i][1]);
        files_fini(&files);
    }
    /* A picture may occur twice with the same label. */
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

int main(void)
{
    static const HarnessTest tests[] = {
        {"lists", lists},
        {"a list is imported in its order", a_list_is_imported_in_its_order},
    };
    log_init(false);
    return pictures_run("folder list", tests, (int)(sizeof tests / sizeof tests[0]));
}
