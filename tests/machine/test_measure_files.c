/* Rates of a file: the bytes that were written, also if the file cannot become as large as
 * requested. */
#include "harness.h"
#include "machine/measure.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int open_file(void)
{
    char path[] = "/tmp/weft-test-XXXXXX";
    int file = mkstemp(path);
    CU_ASSERT_FATAL(file >= 0);
    unlink(path);
    return file;
}

static void test_whole(void)
{
    int file = open_file();
    double bytes = 0, write_rate = 0, read_rate = 0;
    CU_ASSERT_EQUAL(file_write_rate(file, 1, 3e5, 60, &bytes, &write_rate), 0);
    CU_ASSERT(bytes == 3e5 && write_rate > 0);
    CU_ASSERT_EQUAL(lseek(file, 0, SEEK_END), 300000);
    CU_ASSERT_EQUAL(file_read_rate(file, 0, bytes, 60, &read_rate), 0);
    CU_ASSERT(read_rate > 0);
    CU_ASSERT_EQUAL(file_read_rate(file, 0, bytes + 1, 60, &read_rate), EIO);
    close(file);
}

/* The second write is cut after half of its bytes, as on a full disk. */
static void test_cut(void)
{
    int file = open_file();
    struct rlimit before, limit;
    double bytes = 0, rate;
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 3 << 19;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int error = file_write_rate(file, 1, 4 << 20, 60, &bytes, &rate);
    setrlimit(RLIMIT_FSIZE, &before);
    CU_ASSERT_EQUAL(error, ENOSPC);
    CU_ASSERT_EQUAL(bytes, 3 << 19);
    CU_ASSERT_EQUAL(lseek(file, 0, SEEK_END), 3 << 19);
    close(file);
}

TEST_MAIN("measure_files", {"a whole file", test_whole}, {"a file that is cut", test_cut})
