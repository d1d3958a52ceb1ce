/* Shared segments made by memfd_create: unlike files in /dev/shm they need no name to clean up and
 * are not limited by the size of a mount (64 MB in many containers). A peer opens /proc/PID/fd/N
 * and checks by device and inode that it is the right file. All pages are reserved at once, so that
 * a lack of memory is an error message now and not SIGBUS in a step. */
#include "shm_segment.h"
#include "../world/mpi_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
static const size_t HUGE_BYTES = (size_t)2 << 20, PAGE_BYTES = 4096, LINE_BYTES = 64;

/* Location of a segment, for the peers that map it. */
typedef struct Handle {
    int64_t process, file, device, inode, job_rank;
} Handle;

static Status refuse(const char *what, int error)
{
    return fail(
        error == ENOMEM || error == ENOSPC ? ERR_MEMORY : ERR_CONFIG,
        "grid.transport: shm: cannot share memory between the ranks of this node: %s: %s; free "
        "some memory, use fewer ranks per node, or set grid.transport: mpi",
        what, strerror(error));
}

/* Maps file at a huge-page boundary. Returns NULL with errno set if the system refuses. */
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

/* Requests huge pages: start-up takes a tenth of the time of small-page faults, and sums are
 * faster. It is only a hint; the rest is reserved in small pages. */
static void advise_huge_pages(char *base, size_t bytes)
{
    size_t whole = bytes / HUGE_BYTES * HUGE_BYTES;
    if (whole == 0) return;
    madvise(base, whole, MADV_HUGEPAGE);
    /* The kernel collapses only ranges that have a page. */
    for (size_t at = 0; at < whole; at += HUGE_BYTES) ((volatile char *)base)[at] = 0;
    madvise(base, whole, MADV_COLLAPSE);
}

/* Checks that all segments fit. The kernel grants shared memory beyond what exists and later kills
 * a process for it. */
static Status check_memory(const char *what, double bytes)
{
    double available = proc_bytes("/proc/meminfo", "MemAvailable:");
    MemoryLimit limit = memory_limit("");
    if (available < 0 || limit.bytes < available) available = limit.bytes;
    if (bytes <= available) return OK;
    char need[32], have[32];
    return fail(
        ERR_CONFIG,
        "grid.transport: shm: %s of this node's ranks need %s of shared memory, and %s is free; "
        "use fewer ranks per node, or set grid.transport: mpi",
        what, text_bytes(bytes, need), text_bytes(available, have));
}

/* Makes this rank's segment. On error *file may be open and *base mapped; the caller releases
 * both. */
static Status make_segment(char **base, int *file, size_t bytes)
{
    *file = memfd_create("weft-arena", MFD_CLOEXEC);
    if (*file < 0) return refuse("memfd_create", errno);
    if (ftruncate(*file, (off_t)bytes) != 0) return refuse("ftruncate", errno);
    *base = map_file(*file, bytes);
    if (!*base) return refuse("mmap", errno);
    advise_huge_pages(*base, bytes);
    int error;
    do error = posix_fallocate(*file, 0, (off_t)bytes);
    while (error == EINTR);
    char size[32];
    if (error == 0) return OK;
    return refuse(text_bytes((double)bytes, size), error);
}

static Handle handle_of(int file)
{
    struct stat info = {0};
    if (file >= 0) fstat(file, &info);
    return (Handle){.process = getpid(),
                    .file = file,
                    .device = (int64_t)info.st_dev,
                    .inode = (int64_t)info.st_ino};
}

static Status map_peer(char **base, const Handle *handle, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)handle->process,
             (long long)handle->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return refuse(path, errno);
    Handle found = handle_of(file);
    bool same = found.device == handle->device && found.inode == handle->inode;
    *base = same ? map_file(file, bytes) : NULL;
    int error = same ? errno : ESTALE;
    close(file);
    return *base ? OK : refuse(path, error);
}

static Status map_peers(ShmSegment *shared, const World *world, const Handle *handle)
{
    for (int r = 0; r < world->size; ++r) {
        shared->process[r] = (pid_t)handle[r].process;
        shared->job_rank[r] = (int)handle[r].job_rank;
        if (r != world->rank) TRY(map_peer(&shared->segment[r], &handle[r], shared->bytes[r]));
    }
    return OK;
}

/* The word in the last cache line of a segment: the code with which its rank ends the job, or 0. */
static _Atomic uint32_t *exit_code_of(const ShmSegment *shared, int rank)
{
    return (_Atomic uint32_t *)(shared->segment[rank] + shared->bytes[rank] - LINE_BYTES);
}

/* Bytes of the segments of all ranks of the node: where world is a part of them, the other parts
 * are about to need as much. */
static double node_bytes(const ShmSegment *shared, const World *world)
{
    double sum = 0;
    int local = 1;
    for (int r = 0; r < world->size; ++r) sum += (double)shared->bytes[r];
    world_launched(&local);
    return local > world->size ? sum / world->size * local : sum;
}

/* Makes and maps every rank's segment; shared->bytes is set. The caller closes *file, also on
 * error. */
static Status make_and_map(ShmSegment *shared, const World *world, const char *what, int *file)
{
    TRY(status_agree(world, check_memory(what, node_bytes(shared, world))));
    char **mine = &shared->segment[world->rank];
    TRY(status_agree(world, make_segment(mine, file, shared->bytes[world->rank])));
    Handle my_handle = handle_of(*file), *handle = mem_new((size_t)world->size * sizeof(Handle));
    int job_rank = 0;
    if (world->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &job_rank));
    my_handle.job_rank = job_rank;
    world_gather(world, &my_handle, sizeof my_handle, handle);
    /* No rank closes its file before all have opened it: the agreement is the barrier. */
    Status status = status_agree(world, map_peers(shared, world, handle));
    mem_free(&handle);
    return status;
}

Status shm_segment_init(ShmSegment *shared, const World *world, size_t bytes, const char *what)
{
    size_t ranks = (size_t)world->size;
    *shared = (ShmSegment){.count = world->size};
    shared->bytes = mem_new(ranks * sizeof *shared->bytes);
    shared->segment = mem_new(ranks * sizeof *shared->segment);
    shared->process = mem_new(ranks * sizeof *shared->process);
    shared->job_rank = mem_new(ranks * sizeof *shared->job_rank);
    bytes = (bytes + LINE_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    world_gather(world, &bytes, sizeof bytes, shared->bytes);
    int file = -1;
    Status status = make_and_map(shared, world, what, &file);
    if (file >= 0) close(file);
    if (status == OK) {
        shared->exit_notice.code = exit_code_of(shared, world->rank);
        exit_notice_add(&shared->exit_notice);
    } else
        shm_segment_fini(shared);
    return status;
}

void shm_segment_fini(ShmSegment *shared)
{
    exit_notice_remove(&shared->exit_notice);
    for (int r = 0; r < shared->count; ++r)
        if (shared->segment[r]) munmap(shared->segment[r], shared->bytes[r]);
    mem_free(&shared->bytes);
    mem_free(&shared->segment);
    mem_free(&shared->process);
    mem_free(&shared->job_rank);
    shared->count = 0;
}

Status shm_segment_needs_one_node(const World *world)
{
    if (world->one_node) return OK;
    return fail(ERR_CONFIG,
                "grid.transport: shm needs all ranks on one node, and the %d ranks are on several "
                "(%d on rank %d's); use mpi or auto",
                world->size, world->node_size, world->rank);
}

bool shm_segment_alive(const ShmSegment *shared, int rank)
{
    return process_state(shared->process[rank]) != PROCESS_ENDED;
}

uint32_t shm_segment_exit_code(const ShmSegment *shared, int rank)
{
    return atomic_load(exit_code_of(shared, rank));
}

void shm_segment_check_peers(const ShmSegment *shared, const char *doing)
{
    for (int r = 0; r < shared->count; ++r) {
        if (shm_segment_alive(shared, r)) continue;
        uint32_t code = shm_segment_exit_code(shared, r);
        /* the function has already printed the reason */
        if (code != 0)
            world_abort((int)code);
        else
            die_lost(
                "%s: rank %d (process %lld) has ended; its own message, or the system's log (was "
                "memory short?), says why",
                doing, shared->job_rank[r], (long long)shared->process[r]);
    }
}
