/* Writes the tensors of a new checkpoint. No two hosts write to one page of the file: some network
 * file systems write whole pages back, and one host's page would undo the other's. An owner writes
 * the pages that its tensor fills,
 *
 *        | ...xxAAAA | AAAAAAAAA | AAAAAAAAA | AABBBxx.. |
 *              edge      pages       pages     edge
 *
 *        A: a tensor, B: the next, x: HDF5's metadata
 *
 * and sends the edges, less than a page each, to rank 0, which has laid the file out and writes
 * everything else. */
#include "layout.h"
#include "stored.h"
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* the most bytes of one pwrite call, which moves less than 2^31 bytes */
static const size_t PIECE_BYTES = (size_t)1 << 30;

static size_t tensor_bytes(const Save *save, int i)
{
    return (size_t)shape_count(save->io->tensor[i].shape) * sizeof(float);
}

void save_visit(const Save *save, SaveVisit visit, void *user)
{
    const CheckpointIo *io = save->io;
    for (int t = 0; t < save->turns; ++t) {
        int mine = -1;
        for (int k = save->turn[t]; k < save->turn[t + 1]; ++k) {
            int i = save->order[k];
            if (io->collect_begin) io->collect_begin(io->user, i, save->owner[i]);
            if (save->owner[i] == save->world->rank) mine = i;
        }
        if (io->collect_wait) io->collect_wait(io->user);
        if (mine >= 0) visit(user, mine, io->get(io->user, mine, save->plain));
    }
}

Status save_open(const Save *save, int flags, int *fd)
{
    struct stat st;
    *fd = file_open(save->part, flags | O_NOFOLLOW);
    if (*fd < 0) return write_failed(save->part, "opening the file", errno);
    int error = fstat(*fd, &st) == 0 ? 0 : errno;
    if (!error && st.st_ino == save->inode) return OK;
    close(*fd);
    *fd = -1;
    if (error) return write_failed(save->part, "opening the file", error);
    return fail(ERR_IO,
                "%s: this host sees another file of that name than rank 0's host does (inode %llu, "
                "there %llu): is it on a file system that all nodes share?",
                save->part, (unsigned long long)st.st_ino, (unsigned long long)save->inode);
}

/* ---- edges ---- */

/* The whole pages that a tensor fills. Offsets are counted from the tensor's first byte. */
typedef struct Pages {
    /* offset of the first whole page; `bytes` if there is none */
    size_t begin;
    /* offset of the end of the last whole page; `bytes` if there is none */
    size_t end;
    /* size of the tensor */
    size_t bytes;
} Pages;

static Pages pages_of(const Save *save, int i)
{
    size_t begin = (size_t)save->offset[i], bytes = tensor_bytes(save, i);
    size_t first = (begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES - begin;
    size_t last = (begin + bytes) / PAGE_BYTES * PAGE_BYTES;
    /* the tensor fills no page */
    if (last <= begin + first) return (Pages){bytes, bytes, bytes};
    return (Pages){first, last - begin, bytes};
}

static size_t edge_bytes(Pages pages)
{
    return pages.begin + pages.bytes - pages.end;
}

/* Writes with pwrite. Returns false with errno set if it fails. */
static bool write_all(int fd, const void *data, size_t bytes, int64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        ssize_t put = pwrite(fd, (const char *)data + done, piece, (off_t)offset + (off_t)done);
        if (put < 0 && errno == EINTR) continue;
        if (put == 0) errno = ENOSPC;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

/* Writes the edges of all ranks, on rank 0: rank by rank, and those of a rank in the order of
 * turns. */
static bool write_edges(const Save *save, int fd, const char *at)
{
    for (int rank = 0; rank < save->world->size; ++rank)
        for (int k = 0; k < save->io->count; ++k) {
            int i = save->order[k];
            if (save->owner[i] != rank) continue;
            Pages p = pages_of(save, i);
            int64_t tail = save->offset[i] + (int64_t)p.end;
            if (!write_all(fd, at, p.begin, save->offset[i])) return false;
            if (!write_all(fd, at + p.begin, p.bytes - p.end, tail)) return false;
            at += edge_bytes(p);
        }
    return true;
}

void save_collect_edges(Save *save)
{
    const World *world = save->world;
    size_t *bytes = mem_new((size_t)world->size * sizeof *bytes), sum = 0;
    for (int i = 0; i < save->io->count; ++i) {
        bytes[save->owner[i]] += edge_bytes(pages_of(save, i));
        sum += edge_bytes(pages_of(save, i));
    }
    if (world->rank == 0) save->all_edges = mem_new(sum + 1);
    world_collect(world, save->edges, bytes, 0, save->all_edges);
    mem_free(&bytes);
}

/* Syncs the file, unless `error` is set, and closes it. error: errno of an earlier failure, or
 * 0. */
static Status sync_and_close(const Save *save, int fd, int error)
{
    if (!error && fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && !error) error = errno;
    return error ? write_failed(save->part, "writing", error) : OK;
}

typedef struct Writing {
    const Save *save;
    /* descriptor of the file; -1 if it could not be opened */
    int fd;
    /* errno of the first failed write, or 0 */
    int error;
    /* bytes of save->edges that are filled */
    size_t used;
} Writing;

static void write_pages(void *user, int i, const float *data)
{
    Writing *w = user;
    const Save *save = w->save;
    const char *plain = (const char *)data;
    char *edges = save->edges + w->used;
    Pages p = pages_of(save, i);
    int64_t offset = save->offset[i] + (int64_t)p.begin;
    memcpy(edges, plain, p.begin);
    memcpy(edges + p.begin, plain + p.end, p.bytes - p.end);
    w->used += edge_bytes(p);
    if (w->fd < 0 || w->error) return;
    if (!write_all(w->fd, plain + p.begin, p.end - p.begin, offset)) w->error = errno;
    /* starts the transfer to the disk, which runs while the next tensor is collected; the final
     * fsync returns its errors */
    (void)sync_file_range(w->fd, (off_t)offset, (off_t)(p.end - p.begin), SYNC_FILE_RANGE_WRITE);
}

/* A rank that cannot write continues, because others may need its parts of tensors. */
Status save_write_pages(Save *save)
{
    Writing writing = {.save = save};
    size_t capacity = 1;
    Status status = save_open(save, O_WRONLY, &writing.fd);
    for (int i = 0; i < save->io->count; ++i)
        if (save->owner[i] == save->world->rank) capacity += edge_bytes(pages_of(save, i));
    save->edges = mem_new(capacity);
    save_visit(save, write_pages, &writing);
    return status == OK ? sync_and_close(save, writing.fd, writing.error) : status;
}

Status save_write_edges(Save *save)
{
    int fd;
    if (save->world->rank != 0) return OK;
    TRY(save_open(save, O_WRONLY, &fd));
    return sync_and_close(save, fd, write_edges(save, fd, save->all_edges) ? 0 : errno);
}

/* ---- reading back ---- */

static Status other_than_written(const char *path)
{
    return fail(
        ERR_IO,
        "%s: read back, it is not what was written (%s): the file system lost or altered it", path,
        fail_message());
}

/* Compares the offsets and checksums in the file's table with the offsets and checksums of the
 * save. */
static Status check_table(const Save *save, StoredFile *file)
{
    CheckpointMeta meta = {0};
    TRY(stored_open_trusted(file, save->part));
    TRY(stored_list(file));
    TRY(stored_meta(file, &meta));
    checkpoint_meta_fini(&meta);
    for (int i = 0; i < save->io->count; ++i) {
        const StoredTensor *t = stored_find(file, save->io->tensor[i].path);
        if (!t || t->offset != save->offset[i] || !t->has_hash || t->hash != save->hash[i])
            return fail(ERR_DATA, "tensor %s is not at the offset where it was written",
                        save->io->tensor[i].path);
    }
    return OK;
}

/* Returns the rank that reads tensor i back: a rank of the node after the owner's, if nodes have
 * equally many ranks. */
static int reader_of(const Save *save, int i)
{
    return (save->owner[i] + save->world->node_size) % save->world->size;
}

static Status read_one(const Save *save, StoredFile *file, int i, float *plain)
{
    const CheckpointTensor *mine = &save->io->tensor[i];
    StoredTensor tensor = {.path = (char *)(uintptr_t)mine->path,
                           .shape = mine->shape,
                           .offset = save->offset[i],
                           .hash = save->hash[i],
                           .has_hash = true};
    return stored_read(file, &tensor, plain);
}

static Status read_share(const Save *save, StoredFile *file)
{
    size_t largest = 1;
    for (int i = 0; i < save->io->count; ++i)
        if (reader_of(save, i) == save->world->rank && tensor_bytes(save, i) > largest)
            largest = tensor_bytes(save, i);
    float *plain = mem_pages_new(largest);
    Status status = OK;
    for (int i = 0; i < save->io->count && status == OK; ++i)
        if (reader_of(save, i) == save->world->rank) status = read_one(save, file, i, plain);
    mem_pages_free(plain, largest);
    return status;
}

Status save_read_back(Save *save)
{
    StoredFile file = {.path = save->part, .fd = -1, .id = -1};
    int fd;
    TRY(save_open(save, O_RDONLY, &fd));
    /* everything is synced: drop the cache, so that the disk is read */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    Status status =
        save->world->rank == 0 ? check_table(save, &file) : stored_open_plain(&file, save->part);
    if (status == OK) status = read_share(save, &file);
    stored_close(&file);
    return status == OK ? OK : other_than_written(save->part);
}

/* Verifies all checksums of a file that this process has written. */
static Status verify_written(const char *path)
{
    StoredFile file;
    Status status = stored_open_trusted(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = stored_verify(&file, NULL);
    stored_close(&file);
    return status == OK ? OK : other_than_written(path);
}

Status save_copy_file(const char *from, const char *to)
{
    enum { COPY_BYTES = 1 << 20 };
    char *bytes = mem_new(COPY_BYTES);
    int in = file_open(from, O_RDONLY | O_NOFOLLOW), out = file_create(to, O_WRONLY | O_EXCL);
    int error = in < 0 || out < 0 ? errno : 0;
    for (int64_t at = 0; !error;) {
        ssize_t got = pread(in, bytes, COPY_BYTES, (off_t)at);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 || !write_all(out, bytes, (size_t)got, at)) error = errno;
        at += got;
    }
    if (!error && fsync(out) != 0) error = errno;
    if (!error) (void)posix_fadvise(out, 0, 0, POSIX_FADV_DONTNEED);
    if (in >= 0) close(in);
    if (out >= 0 && close(out) != 0 && !error) error = errno;
    mem_free(&bytes);
    return error ? write_failed(to, "copying to it", error) : verify_written(to);
}
