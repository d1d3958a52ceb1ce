/* Makes this rank's segment by memfd_create, and maps the segments of the other ranks. Also reads
 * whether a peer's process has ended, and its exit code. Unlike files in /dev/shm, such segments
 * have no name that must be removed, and the size of /dev/shm (64 MB in many containers) does not
 * limit them. A peer opens /proc/PID/fd/FD and compares device and inode, because the numbers PID
 * and FD may have been reused. All pages are reserved at set-up: otherwise a lack of memory would
 * end training with SIGBUS. */
#include "shm_segments.h"
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

/* Identity of a segment, for the peers that map it. */
typedef struct Handle {
    int64_t pid, fd, device, inode, job_rank;
} Handle;

/* Fails because of a system call. what: name of the call; error: its errno. */
static Status fail_shared_memory(const char *what, int error)
{
    return fail(
        error == ENOMEM || error == ENOSPC ? ERR_MEMORY : ERR_CONFIG,
        "grid.transport: shm: cannot share memory between the ranks of this node: %s: %s; free "
        "some memory, use fewer ranks per node, or set grid.transport: mpi",
        what, strerror(error));
}

/* Maps `bytes` bytes of the file of fd at a multiple of the huge-page size. Returns NULL and sets
 * errno if a system call fails. */
static char *map_file(int fd, size_t bytes)
{
    char *reserved = mmap(NULL, bytes + HUGE_BYTES, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return NULL;
    size_t head = (HUGE_BYTES - (uintptr_t)reserved % HUGE_BYTES) % HUGE_BYTES;
    char *base = reserved + head;
    bool mapped =
        mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    int error = errno;
    if (!mapped) {
        munmap(reserved, bytes + HUGE_BYTES);
        errno = error;
        return NULL;
    }
    if (head > 0) munmap(reserved, head);
    munmap(base + bytes, HUGE_BYTES - head);
    return base;
}

/* Requests huge pages: with them set-up takes a tenth of the time, and sums are faster. The kernel
 * may ignore the request. posix_fallocate later reserves the memory that has no huge page, in pages
 * of 4 KiB. */
static void advise_huge_pages(char *base, size_t bytes)
{
    size_t whole = bytes / HUGE_BYTES * HUGE_BYTES;
    if (whole == 0) return;
    madvise(base, whole, MADV_HUGEPAGE);
    /* writes to each 2 MiB, because MADV_COLLAPSE needs at least one page of them in memory */
    for (size_t at = 0; at < whole; at += HUGE_BYTES) ((volatile char *)base)[at] = 0;
    madvise(base, whole, MADV_COLLAPSE);
}

/* Checks that the segments of all ranks of the node, `bytes` bytes together, fit into the memory
 * that is available and into the limit of the control groups. Without this check the kernel would
 * grant more memory than there is, and its OOM killer would end processes later. */
static Status check_memory(const char *what, double bytes)
{
    double available = proc_bytes("/proc/meminfo", "MemAvailable:");
    MemoryLimit limit = memory_limit("");
    if (available < 0 || limit.bytes < available) available = limit.bytes;
    if (bytes <= available) return OK;
    char need[32], have[32];
    return fail(
        ERR_CONFIG,
        "grid.transport: shm: this node's ranks need %s of shared memory for %s, and %s is free; "
        "use fewer ranks per node, or set grid.transport: mpi",
        text_bytes(bytes, need), what, text_bytes(available, have));
}

/* Makes this rank's segment. Also on error *fd may be open and *base mapped; the caller releases
 * both. */
static Status make_segment(char **base, int *fd, size_t bytes)
{
    *fd = memfd_create("weft-arena", MFD_CLOEXEC);
    if (*fd < 0) return fail_shared_memory("memfd_create", errno);
    if (ftruncate(*fd, (off_t)bytes) != 0) return fail_shared_memory("ftruncate", errno);
    *base = map_file(*fd, bytes);
    if (!*base) return fail_shared_memory("mmap", errno);
    advise_huge_pages(*base, bytes);
    int error;
    do error = posix_fallocate(*fd, 0, (off_t)bytes);
    while (error == EINTR);
    if (error == 0) return OK;
    char call[64], size[32];
    snprintf(call, sizeof call, "posix_fallocate of %s", text_bytes((double)bytes, size));
    return fail_shared_memory(call, error);
}

static Handle handle_of(int fd)
{
    struct stat info = {0};
    if (fd >= 0) fstat(fd, &info);
    return (Handle){
        .pid = getpid(), .fd = fd, .device = (int64_t)info.st_dev, .inode = (int64_t)info.st_ino};
}

static Status map_peer(char **base, const Handle *handle, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)handle->pid,
             (long long)handle->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return fail_shared_memory(path, errno);
    Handle found = handle_of(fd);
    bool same = found.device == handle->device && found.inode == handle->inode;
    *base = same ? map_file(fd, bytes) : NULL;
    int error = same ? errno : ESTALE;
    close(fd);
    return *base ? OK : fail_shared_memory(path, error);
}

static Status map_peers(ShmSegments *shared, const World *world, const Handle *handle)
{
    for (int r = 0; r < world->size; ++r) {
        shared->pid[r] = (pid_t)handle[r].pid;
        shared->job_rank[r] = (int)handle[r].job_rank;
        if (r != world->rank) TRY(map_peer(&shared->segment[r], &handle[r], shared->bytes[r]));
    }
    return OK;
}

/* Returns the address of the exit code, at the end of a rank's segment. The code is 0 until the
 * rank ends the job. */
static _Atomic uint32_t *exit_code_of(const ShmSegments *shared, int rank)
{
    return (_Atomic uint32_t *)(shared->segment[rank] + shared->bytes[rank] - LINE_BYTES);
}

/* Returns the bytes of the segments of all ranks of the node. If `world` has only some ranks of the
 * node, assumes for each other rank the mean of world's ranks. */
static double node_bytes(const ShmSegments *shared, const World *world)
{
    double sum = 0;
    int local = 1;
    for (int r = 0; r < world->size; ++r) sum += (double)shared->bytes[r];
    world_launched(&local);
    return local > world->size ? sum / world->size * local : sum;
}

/* Makes this rank's segment and maps the segments of all ranks. The caller has set shared->bytes
 * and has set *fd to -1. If *fd is not -1 afterwards, also on error, the caller closes it. */
static Status make_and_map(ShmSegments *shared, const World *world, const char *what, int *fd)
{
    TRY(status_agree(world, check_memory(what, node_bytes(shared, world))));
    char **mine = &shared->segment[world->rank];
    TRY(status_agree(world, make_segment(mine, fd, shared->bytes[world->rank])));
    Handle my_handle = handle_of(*fd), *handle = mem_new((size_t)world->size * sizeof(Handle));
    int job_rank = 0;
    if (world->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &job_rank));
    my_handle.job_rank = job_rank;
    world_allgather(world, &my_handle, sizeof my_handle, handle);
    /* status_agree acts as the barrier: no rank closes its descriptor before all have opened it. */
    Status status = status_agree(world, map_peers(shared, world, handle));
    mem_free(&handle);
    return status;
}

Status shm_segments_init(ShmSegments *shared, const World *world, size_t bytes, const char *what)
{
    size_t ranks = (size_t)world->size;
    *shared = (ShmSegments){.count = world->size};
    shared->bytes = mem_new(ranks * sizeof *shared->bytes);
    shared->segment = mem_new(ranks * sizeof *shared->segment);
    shared->pid = mem_new(ranks * sizeof *shared->pid);
    shared->job_rank = mem_new(ranks * sizeof *shared->job_rank);
    bytes = (bytes + LINE_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    world_allgather(world, &bytes, sizeof bytes, shared->bytes);
    int fd = -1;
    Status status = make_and_map(shared, world, what, &fd);
    if (fd >= 0) close(fd);
    if (status == OK) {
        shared->exit_notice.code = exit_code_of(shared, world->rank);
        exit_notice_add(&shared->exit_notice);
    } else
        shm_segments_fini(shared);
    return status;
}

void shm_segments_fini(ShmSegments *shared)
{
    exit_notice_remove(&shared->exit_notice);
    for (int r = 0; r < shared->count; ++r)
        if (shared->segment[r]) munmap(shared->segment[r], shared->bytes[r]);
    mem_free(&shared->bytes);
    mem_free(&shared->segment);
    mem_free(&shared->pid);
    mem_free(&shared->job_rank);
    shared->count = 0;
}

Status shm_segments_check_one_node(const World *world)
{
    if (world->one_node) return OK;
    return fail(ERR_CONFIG,
                "grid.transport: shm needs all ranks on one node, but the %d ranks are on several "
                "nodes (%d on the node of rank %d); use mpi or auto",
                world->size, world->node_size, world->rank);
}

bool shm_segments_rank_is_alive(const ShmSegments *shared, int rank)
{
    return process_state(shared->pid[rank]) != PROCESS_ENDED;
}

uint32_t shm_segments_exit_code(const ShmSegments *shared, int rank)
{
    return atomic_load(exit_code_of(shared, rank));
}

void shm_segments_abort_if_peer_ended(const ShmSegments *shared, const char *doing)
{
    for (int r = 0; r < shared->count; ++r) {
        if (shm_segments_rank_is_alive(shared, r)) continue;
        uint32_t code = shm_segments_exit_code(shared, r);
        /* the peer printed the reason before it set the code */
        if (code != 0)
            world_abort((int)code);
        else
            die_lost(
                "%s: rank %d (process %lld) has ended; its own message, or the system's log (was "
                "memory short?), says why",
                doing, shared->job_rank[r], (long long)shared->pid[r]);
    }
}
