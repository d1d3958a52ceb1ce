/* The tasks of the process `weft doctor --probe`, which is left behind if the file system does not
 * answer. The task "folder" tests a folder or, if the folder does not exist, the nearest existing
 * folder above it. It prints the line "at CALL" before each kind of call, "NAME VALUE" for each
 * result, and "at end" when it is complete. It unlinks its test file as soon as the file is open,
 * so that no file stays in the folder. The tasks "make", "find" and "remove" work on another file
 * in the same folder. */
#include "private.h"

#include "machine/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, SYNCS_MAX = 20, WRITE_BYTES_MAX = 64 << 20 };
/* time limit of each part of the test (syncs, writing, reading): after it no further call is
 * begun */
static const double STEP_S = 1.2;

static void print_number(const char *name, double value)
{
    printf("%s %.17g\n", name, value);
}

static const char *type_name(long type)
{
    static const struct {
        long type;
        const char *name;
    } known[] = {{0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
                 {0x6969, "NFS"},        {0x01021994, "tmpfs"},  {0x00c36400, "Ceph"},
                 {0x65735546, "FUSE"},   {0xef53, "ext4"},       {0x58465342, "XFS"},
                 {0x9123683e, "btrfs"},  {0x794c7630, "overlay"}};
    static char other[32];
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (known[i].type == type) return known[i].name;
    snprintf(other, sizeof other, "type-0x%lx", type);
    return other;
}

/* ---- the folder's free space and speed ---- */

static void measure_space(const char *folder)
{
    struct statfs fs;
    puts("at statfs");
    if (statfs(folder, &fs) != 0) {
        print_number("space_error", errno);
        return;
    }
    printf("type %s\n", type_name((long)fs.f_type));
    print_number("free_bytes", (double)fs.f_bavail * (double)fs.f_bsize);
    print_number("inodes", (double)fs.f_files);
    print_number("free_inodes", (double)fs.f_ffree);
}

/* try_locks, try_sync, try_write and try_read test calls on an open file and print the results. The
 * last three return 0 or an error: the errno of the call that failed, ENOSPC if a write was
 * incomplete, or EIO if the file ended early. try_locks returns nothing, because the test goes on
 * if locks fail. */
static void try_locks(int file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    puts("at flock");
    print_number("flock_error", flock(file, LOCK_EX | LOCK_NB) != 0 ? errno : 0);
    puts("at fcntl");
    print_number("fcntl_error", fcntl(file, F_SETLK, &lock) != 0 ? errno : 0);
}

static int try_sync(int file)
{
    static const char page[PAGE_BYTES];
    double times_s[SYNCS_MAX], begin_s = clock_s();
    int count = 0;
    puts("at fsync");
    while (count < SYNCS_MAX && clock_s() - begin_s < STEP_S) {
        double start_s = clock_s();
        ssize_t written = pwrite(file, page, sizeof page, 0);
        if (written != (ssize_t)sizeof page) return written < 0 ? errno : ENOSPC;
        if (fsync(file) != 0) return errno;
        times_s[count++] = clock_s() - start_s;
    }
    print_number("sync_s", median(times_s, count));
    return 0;
}

static int try_write(int file, double *bytes)
{
    double rate;
    puts("at write");
    int error = file_write_rate(file, 1, WRITE_BYTES_MAX, STEP_S, bytes, &rate);
    if (!error) print_number("write_bytes_per_s", rate);
    return error;
}

static int try_read(int file, double bytes)
{
    double rate;
    puts("at read");
    int error = file_read_rate(file, 0, bytes, STEP_S, &rate);
    if (!error) print_number("read_bytes_per_s", rate);
    return error;
}

static void try_file(const char *folder)
{
    char *path = mem_format("%s/.weft-doctor-XXXXXX", folder);
    puts("at open");
    int file = mkostemp(path, O_CLOEXEC);
    int error = file < 0 ? errno : 0;
    double bytes = 0;
    if (file >= 0) unlink(path);
    print_number("open_error", error);
    mem_free(&path);
    if (file < 0) return;
    error = try_sync(file);
    if (!error) try_locks(file);
    if (!error) error = try_write(file, &bytes);
    print_number("write_error", error);
    if (!error) print_number("read_error", try_read(file, bytes));
    close(file);
}

/* Runs the task "folder". name: not used; all tasks have the same parameters. */
static Status test_folder(const char *folder, const char *name)
{
    (void)name;
    bool above;
    puts("at lstat");
    char *existing = file_nearest_folder(folder, &above);
    if (above) printf("above %s\n", existing);
    measure_space(existing);
    try_file(existing);
    puts("at end");
    mem_free(&existing);
    return OK;
}

/* ---- whether all nodes see the same folder ---- */

/* Returns the path of the file that the first node makes and other nodes look for. The caller owns
 * it. */
static char *shared_path(const char *folder, const char *name)
{
    bool above;
    char *existing = file_nearest_folder(folder, &above);
    char *path = mem_format("%s/.weft-doctor-%s", existing, name);
    mem_free(&existing);
    return path;
}

static Status make_shared_file(const char *folder, const char *name)
{
    char *path = shared_path(folder, name);
    int file = file_create_new(path, O_WRONLY);
    if (file < 0 || write(file, name, strlen(name)) < 0 || fsync(file) != 0)
        puts("made 0");
    else
        puts("made 1");
    if (file >= 0) close(file);
    mem_free(&path);
    return OK;
}

static Status find_shared_file(const char *folder, const char *name)
{
    /* must be equal to the threshold of check_shared */
    static const double LIMIT_S = 5;
    char *path = shared_path(folder, name);
    double begin_s = clock_s();
    while (access(path, F_OK) != 0 && clock_s() - begin_s < LIMIT_S) clock_sleep(0.05);
    printf("found %d\n", access(path, F_OK) == 0);
    mem_free(&path);
    return OK;
}

static Status remove_shared_file(const char *folder, const char *name)
{
    char *path = shared_path(folder, name);
    unlink(path);
    mem_free(&path);
    return OK;
}

static bool is_file_name(const char *name)
{
    return *name && strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz") == strlen(name);
}

Status doctor_probe(const char *probe, const char *folder)
{
    static const struct {
        const char *prefix;
        Status (*run)(const char *folder, const char *name);
    } tasks[] = {{"folder:", test_folder},
                 {"make:", make_shared_file},
                 {"find:", find_shared_file},
                 {"remove:", remove_shared_file}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; ++i) {
        size_t length = strlen(tasks[i].prefix);
        if (strncmp(probe, tasks[i].prefix, length) == 0 && is_file_name(probe + length))
            return tasks[i].run(folder, probe + length);
    }
    return fail(ERR_USAGE, "--probe %s: expected folder:NAME, make:NAME, find:NAME or remove:NAME",
                probe);
}
