/* Tests interrupted imports of pictures: they resume, read only changed files again, run one at a
 * time, and stop on request. */
#include "folders.h"

#include <fcntl.h>
#include <sys/file.h>

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

/* Leaves an import of three blocks with a broken file at the end: all blocks are done, but the file
 * is not finished. */
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
    /* Damage the record of the second block. */
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
    /* Without interruption, and with other threads, the bytes are the same but for the poisoned
     * ones. */
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
    /* Another size is another import. */
    (void)half_done("changed2", out);
    poison(part, 3);
    import.dir = in_scratch("changed2");
    import.side = SIDE + 1;
    import.skip_broken = true;
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_FALSE(zeros(out, 3));
}

/* A link in place of OUT.part is neither followed nor replaced by an empty file, which the journal
 * would take for complete. */
static void a_link_is_not_resumed(void)
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

/* A stop requested before the import begins: no picture is decoded. */
static void it_stops_on_request(void)
{
    const char *dir = small_tree("stop"), *out = in_scratch("stop.h5");
    FolderImport import = import_of(dir, out);
    stop_begin();
    raise(SIGTERM);
    CHECK_FAILS(data_import_folder(&import, NULL), ERR_STOPPED, "stopped after 0 of 4 pictures");
    stop_end();
    CU_ASSERT_NOT_EQUAL(access(out, F_OK), 0);
    CHECK_OK(data_import_folder(&import, NULL));
    CU_ASSERT_TRUE(labels_are(out, 4, (int32_t[]){0, 1, 1, 1}));
}

int main(void)
{
    static const HarnessTest tests[] = {
        {"an import goes on", an_import_goes_on},
        {"what has changed is read again", what_has_changed_is_read_again},
        {"a link is not gone on with", a_link_is_not_resumed},
        {"one import at a time", one_import_at_a_time},
        {"it stops when asked to", it_stops_on_request},
    };
    log_init(false);
    return pictures_run("folder on", tests, (int)(sizeof tests / sizeof tests[0]));
}
