/* Opening untrusted files: only regular files are opened, without waiting for another process. */
#include "base.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static void folder_new(void)
{
    snprintf(folder, sizeof folder, "/tmp/weft-test-file-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    alarm(60);
}

static void put_plain(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

static void put_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    CU_ASSERT_EQUAL(bind(file, (struct sockaddr *)&address, sizeof address), 0);
    close(file);
}

/* errno of an attempt; 0: it was opened */
static int error_of(int file)
{
    if (file < 0) return errno;
    close(file);
    return 0;
}

static int error_of_stream(FILE *file)
{
    if (!file) return errno;
    fclose(file);
    return 0;
}

static void make_all(void)
{
    folder_new();
    put_plain(in_folder("plain"), "weft");
    CU_ASSERT_EQUAL(symlink("plain", in_folder("link")), 0);
    CU_ASSERT_EQUAL(mkfifo(in_folder("pipe"), 0600), 0);
    CU_ASSERT_EQUAL(symlink("pipe", in_folder("pipe-link")), 0);
    CU_ASSERT_EQUAL(mkdir(in_folder("folder"), 0700), 0);
    CU_ASSERT_EQUAL(symlink("/dev/zero", in_folder("zero")), 0);
    put_socket(in_folder("socket"));
}

static void remove_all(void)
{
    static const char *const name[] = {"plain", "link",   "pipe", "pipe-link",
                                       "zero",  "socket", "new"};
    for (size_t i = 0; i < sizeof name / sizeof *name; ++i) unlink(in_folder(name[i]));
    rmdir(in_folder("folder"));
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void test_read(void)
{
    static const struct {
        const char *name;
        int error;
    } one[] = {{"plain", 0},       {"link", 0},     {"pipe", ENXIO},   {"pipe-link", ENXIO},
               {"folder", EISDIR}, {"zero", ENXIO}, {"socket", ENXIO}, {"none", ENOENT}};
    make_all();
    for (size_t i = 0; i < sizeof one / sizeof *one; ++i) {
        const char *path = in_folder(one[i].name);
        CU_ASSERT_EQUAL(error_of(file_open(path, O_RDONLY)), one[i].error);
        CU_ASSERT_EQUAL(error_of_stream(file_open_stream(path)), one[i].error);
    }
    CU_ASSERT_EQUAL(error_of(file_open(in_folder("link"), O_RDONLY | O_NOFOLLOW)), ELOOP);
    CU_ASSERT_EQUAL(error_of(file_open(in_folder("pipe"), O_RDWR)), ENXIO);
    CU_ASSERT_EQUAL(error_of(file_open(in_folder("pipe"), O_WRONLY)), ENXIO);
    remove_all();
}

static void test_whole(void)
{
    char *text;
    size_t bytes;
    make_all();
    CHECK_OK(file_text(in_folder("plain"), 100, &text, &bytes));
    CU_ASSERT_STRING_EQUAL(text, "weft");
    mem_free(&text);
    CHECK_FAILS(file_text(in_folder("pipe"), 100, &text, &bytes), ERR_NOINPUT, "not a plain file");
    CHECK_FAILS(file_text(in_folder("socket"), 100, &text, &bytes), ERR_NOINPUT,
                "not a plain file");
    CHECK_FAILS(file_text(in_folder("zero"), 100, &text, &bytes), ERR_NOINPUT, "not a plain file");
    CHECK_FAILS(file_text(in_folder("folder"), 100, &text, &bytes), ERR_NOINPUT, "is a folder");
    remove_all();
}

/* An unnamed pipe is read to its end, however late its writer writes. */
static void test_unnamed_pipe(void)
{
    int ends[2];
    char path[64], *text;
    size_t bytes;
    folder_new();
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        usleep(200000);
        _exit(write(ends[1], "late", 4) == 4 ? 0 : 1);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CHECK_OK(file_text(path, 100, &text, &bytes));
    CU_ASSERT_EQUAL(bytes, 4);
    CU_ASSERT_STRING_EQUAL(text, "late");
    mem_free(&text);
    CU_ASSERT_EQUAL(error_of(file_open(path, O_RDONLY)), ENXIO);
    close(ends[0]);
    rmdir(folder);
}

static void test_create(void)
{
    make_all();
    int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("pipe"), O_WRONLY)), ENXIO);
    close(reader);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("pipe"), O_WRONLY)), ENXIO);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("pipe"), O_RDWR)), ENXIO);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("socket"), O_WRONLY)), ENXIO);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("folder"), O_WRONLY)), EISDIR);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("link"), O_WRONLY)), ELOOP);
    CU_ASSERT_EQUAL(error_of(file_create("/dev/null", O_WRONLY)), 0);
    CU_ASSERT_EQUAL(error_of(file_create(in_folder("new"), O_WRONLY)), 0);
    int file = file_create(in_folder("plain"), O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(write(file, "!", 1), 1);
    close(file);
    char *text;
    size_t bytes;
    CHECK_OK(file_text(in_folder("plain"), 100, &text, &bytes));
    CU_ASSERT_STRING_EQUAL(text, "weft!");
    mem_free(&text);
    /* A file is no folder. */
    CHECK_FAILS(file_make_folders(in_folder("plain")), ERR_IO, "File exists");
    CHECK_OK(file_make_folders(in_folder("folder")));
    remove_all();
}

/* An earlier write has failed, and closing succeeds: the errno of another call is not reported. */
static void test_failed_write(void)
{
    FILE *out = fopen("/dev/full", "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    setvbuf(out, NULL, _IONBF, 0);
    CU_ASSERT_EQUAL(fputc('x', out), EOF);
    errno = 0;
    CHECK_FAILS(file_close_stream(out, "new"), ERR_IO, "new: writing failed: Input/output error");
    out = fopen("/dev/full", "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputc('x', out);
    CHECK_FAILS(file_close_stream(out, "new"), ERR_IO, "new: writing failed: No space left");
    out = fopen("/dev/null", "w");
    fputc('x', out);
    CHECK_OK(file_close_stream(out, "new"));
}

TEST_MAIN("file", {"files that are read", test_read}, {"whole files", test_whole},
          {"a pipe without a name", test_unnamed_pipe}, {"files that are written", test_create},
          {"a write that failed", test_failed_write})
