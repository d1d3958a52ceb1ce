/* Saving a checkpoint. Ranks share the tensors out by bytes; each hashes its own, rank 0 lays the file out with all
 * hashes (layout.c), each rank writes its own at the offsets and syncs, rank 0 renames. Tensors are asked for twice (to
 * hash, to write), so that no more than the largest is ever held. Until the rename nothing that was there changes. */
#include "layout.h"
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const size_t PIECE_BYTES = (size_t)1 << 30; /* one pwrite moves less than 2^31 bytes */

typedef struct Save {
    const World *world;
    const CheckpointIo *io;
    char *part;      /* owned */
    int *owner;      /* owned, [count]: rank of each tensor */
    uint64_t *hash;  /* owned, [count] */
    int64_t *offset; /* owned, [count] */
    float *plain;    /* owned: this rank's largest tensor */
} Save;

static size_t tensor_bytes(const Save *save, int i)
{
    return (size_t)shape_count(save->io->tensor[i].shape) * sizeof(float);
}

static void save_init(Save *save, const World *world, const char *path, const CheckpointIo *io)
{
    size_t count = (size_t)io->count + 1;
    *save = (Save){.world = world, .io = io};
    save->part = mem_format("%s.part", path);
    save->owner = mem_new(count * sizeof *save->owner);
    save->hash = mem_new(count * sizeof *save->hash);
    save->offset = mem_new(count * sizeof *save->offset);
    share_tensors(io, world->size, true, save->owner);
    save->plain =
        mem_new((size_t)share_largest(io, save->owner, world->rank) * sizeof *save->plain);
}

static void save_fini(Save *save)
{
    mem_free(&save->plain);
    mem_free(&save->offset);
    mem_free(&save->hash);
    mem_free(&save->owner);
    mem_free(&save->part);
}

/* Tensor i in save->plain where this rank is its owner, else false. Collective where tensors lie in parts. */
static bool get_own(const Save *save, int i)
{
    const CheckpointIo *io = save->io;
    if (io->collect) io->collect(io->user, i, save->owner[i]);
    if (save->owner[i] != save->world->rank) return false;
    io->get(io->user, i, save->plain);
    return true;
}

/* Hashes this rank's tensors and learns the others'. Collective. */
static void share_hashes(Save *save)
{
    const CheckpointIo *io = save->io;
    for (int i = 0; i < io->count; ++i)
        if (get_own(save, i)) save->hash[i] = hash_bytes(save->plain, tensor_bytes(save, i));
    size_t count = (size_t)io->count;
    uint64_t *all = mem_new((count + 1) * (size_t)save->world->size * sizeof *all);
    world_gather(save->world, save->hash, count * sizeof *all, all);
    for (size_t i = 0; i < count; ++i) save->hash[i] = all[(size_t)save->owner[i] * count + i];
    mem_free(&all);
}

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

/* A rank that cannot write goes on to the end: others may need its parts. */
static Status write_own(const Save *save)
{
    int fd = open(save->part, O_WRONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;
    const char *doing = fd < 0 ? "opening the file" : "writing";
    for (int i = 0; i < save->io->count; ++i) {
        bool mine = get_own(save, i) && !error;
        if (mine && !write_all(fd, save->plain, tensor_bytes(save, i), save->offset[i]))
            error = errno;
    }
    if (!error && fsync(fd) != 0) error = errno;
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    return error ? write_failed(save->part, doing, error) : OK;
}

static Status sync_folder(const char *path)
{
    char *dir = mem_text(path), *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = 0;
    int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mem_free(&dir);
    /* Some file systems cannot sync a folder and say EINVAL; they order renames themselves. */
    int error = fd < 0 || (fsync(fd) != 0 && errno != EINVAL) ? errno : 0;
    if (fd >= 0) close(fd);
    return error ? write_failed(path, "syncing its folder", error) : OK;
}

/* Makes the file, which every rank has synced, what loads. Rank 0. */
static Status publish(const Save *save, const char *path)
{
    int fd = open(save->part, O_WRONLY | O_CLOEXEC), error = 0;
    if (fd < 0 || fsync(fd) != 0) error = errno;
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    if (error) return write_failed(save->part, "syncing", error);
    if (rename(save->part, path) != 0) return write_failed(path, "renaming to it", errno);
    return sync_folder(path);
}

static Status save_file(Save *save, const char *path, const CheckpointMeta *meta)
{
    const World *world = save->world;
    bool first = world->rank == 0;
    share_hashes(save);
    TRY(status_agree(
        world, first ? layout_create(save->part, meta, save->io, save->hash, save->offset) : OK));
    world_bcast(world, save->offset, (size_t)save->io->count * sizeof *save->offset, 0);
    TRY(status_agree(world, write_own(save)));
    return status_agree(world, first ? publish(save, path) : OK);
}

Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io)
{
    Save save;
    save_init(&save, world, path, io);
    Status status = save_file(&save, path, meta);
    if (status != OK) {
        if (world->rank == 0) unlink(save.part);
        world_barrier(world); /* nobody returns while the .part is still there */
    }
    save_fini(&save);
    return status;
}
