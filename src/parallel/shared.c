/* Shared segments out of memfd_create: unlike files in /dev/shm they have no name to clean up and no limit of a mount (64 MB
 * in many containers). A peer opens /proc/PID/fd/N, and checks by device and inode that it got the file meant. Pages are
 * reserved when made, so that a lack of memory is an error message and not SIGBUS in a step. */
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
static const size_t HUGE_BYTES = (size_t)2 << 20;

/* How a peer finds a segment. */
typedef struct Card {
    int64_t process, file, device, inode;
} Card;

static Status refuse(const char *what, int error)
{
    return fail(
        ERR_CONFIG,
        "grid.transport: shm: cannot share memory between the ranks of this node: %s: %s; free "
        "some memory, use fewer ranks per node, or set grid.transport: mpi",
        what, strerror(error));
}

/* Maps file at a huge-page border. NULL where refused, errno says why. */
static char *map_file(int file, size_t bytes)
{
    char *wide = mmap(NULL, bytes + HUGE_BYTES, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED) return NULL;
    size_t head = (HUGE_BYTES - (uintptr_t)wide % HUGE_BYTES) % HUGE_BYTES;
    char *base = wide + head;
    bool mapped =
        mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    int error = errno;
    if (!mapped) {
        munmap(wide, bytes + HUGE_BYTES);
        errno = error;
        return NULL;
    }
    if (head > 0) munmap(wide, head);
    munmap(base + bytes, HUGE_BYTES - head);
    return base;
}

/* Huge pages where the kernel gives them at once: start takes a tenth of the time that faults of small pages take, and sums
 * are faster. Only a wish: what it does not cover is reserved in small pages. */
static void wish_huge(char *base, size_t bytes)
{
    size_t whole = bytes / HUGE_BYTES * HUGE_BYTES;
    if (whole == 0) return;
    madvise(base, whole, MADV_HUGEPAGE);
    /* The kernel collapses no range without any page. */
    for (size_t at = 0; at < whole; at += HUGE_BYTES) ((volatile char *)base)[at] = 0;
    madvise(base, whole, MADV_COLLAPSE);
}

/* The number after `key` in a file of lines "key number", or -1; key "" takes the file's first number. */
static double read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    char line[256];
    double value = -1;
    while (value < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%lf", &value) != 1)
            value = -1;
    fclose(file);
    return value;
}

/* The memory limit of this process's control group (version 2), or -1 where there is none. */
static double group_limit(void)
{
    char line[512], path[600];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file) return -1;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) found = strncmp(line, "0::/", 4) == 0;
    fclose(file);
    if (!found) return -1;
    line[strcspn(line, "\n")] = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + strlen("0::"));
    return read_number(path, "");
}

/* Shared memory is given out until the kernel kills somebody for it; so ask first whether all segments fit. */
static Status check_memory(double bytes)
{
    double available = 1024 * read_number("/proc/meminfo", "MemAvailable:"), limit = group_limit();
    if (available < 0 || (limit >= 0 && limit < available)) available = limit;
    if (available < 0 || bytes <= available) return OK;
    char need[32], have[32];
    return fail(
        ERR_CONFIG,
        "grid.transport: shm: the gradients of this node's ranks need %s of shared memory, and "
        "%s is free; use fewer ranks per node, or set grid.transport: mpi",
        text_bytes(bytes, need), text_bytes(available, have));
}

/* Makes this rank's segment. On error *file may be open and *base mapped: the caller releases both. */
static Status make_segment(char **base, int *file, size_t bytes)
{
    *file = memfd_create("weft-arena", MFD_CLOEXEC);
    if (*file < 0) return refuse("memfd_create", errno);
    if (ftruncate(*file, (off_t)bytes) != 0) return refuse("ftruncate", errno);
    *base = map_file(*file, bytes);
    if (!*base) return refuse("mmap", errno);
    wish_huge(*base, bytes);
    int error;
    do error = posix_fallocate(*file, 0, (off_t)bytes);
    while (error == EINTR);
    char size[32];
    if (error == 0) return OK;
    return refuse(text_bytes((double)bytes, size), error);
}

static Card card_of(int file)
{
    struct stat info = {0};
    if (file >= 0) fstat(file, &info);
    return (Card){getpid(), file, (int64_t)info.st_dev, (int64_t)info.st_ino};
}

static Status map_peer(char **base, const Card *card, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)card->process,
             (long long)card->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return refuse(path, errno);
    Card found = card_of(file);
    bool same = found.device == card->device && found.inode == card->inode;
    *base = same ? map_file(file, bytes) : NULL;
    int error = same ? errno : ESTALE;
    close(file);
    return *base ? OK : refuse(path, error);
}

static Status map_peers(Shared *shared, const World *world, const Card *card)
{
    for (int r = 0; r < world->size; ++r) {
        shared->process[r] = (pid_t)card[r].process;
        if (r != world->rank) TRY(map_peer(&shared->segment[r], &card[r], shared->segment_bytes));
    }
    return OK;
}

Status shared_init(Shared *shared, const World *world, size_t bytes)
{
    *shared = (Shared){.count = world->size, .segment_bytes = bytes};
    shared->segment = mem_new((size_t)world->size * sizeof(char *));
    shared->process = mem_new((size_t)world->size * sizeof(pid_t));
    int file = -1;
    Status status = status_agree(world, check_memory((double)bytes * world->size));
    if (status == OK)
        status = status_agree(world, make_segment(&shared->segment[world->rank], &file, bytes));
    if (status == OK) {
        Card mine = card_of(file), *card = mem_new((size_t)world->size * sizeof(Card));
        world_gather(world, &mine, sizeof mine, card);
        /* Nobody closes before all have opened: the agreement is the barrier. */
        status = status_agree(world, map_peers(shared, world, card));
        mem_free(&card);
    }
    if (file >= 0) close(file);
    if (status != OK) shared_fini(shared);
    return status;
}

void shared_fini(Shared *shared)
{
    for (int r = 0; r < shared->count; ++r)
        if (shared->segment[r]) munmap(shared->segment[r], shared->segment_bytes);
    mem_free(&shared->segment);
    mem_free(&shared->process);
    shared->count = 0;
}

bool shared_alive(const Shared *shared, int rank)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)shared->process[rank]);
    FILE *file = fopen(path, "re");
    if (!file) return errno != ENOENT && errno != ESRCH;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    /* "PID (name) STATE ...": the name may hold anything but is the last thing in brackets. */
    const char *state = strrchr(line, ')');
    return !state || (state[1] == ' ' && state[2] != 'Z' && state[2] != 'X');
}
