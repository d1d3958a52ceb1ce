/* Saving a checkpoint. Ranks share the tensors out by bytes; each hashes its own, rank 0 lays the
 * file out with all hashes (layout.c), the ranks write the tensors and sync (write.c), all of it is
 * read back, rank 0 renames. Tensors are asked for twice (to hash, to write), so that no more than
 * the largest is ever held. Until the rename nothing that was there changes. */
#include "layout.h"
#include "owners.h"
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* On rank 0: a name that no host can have looked up before, for a network file system may remember
 * what it was. */
static char *part_name(const char *path)
{
    static uint64_t saves;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t unique[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), ++saves};
    return mem_format("%s.%08x.part", path, (unsigned)hash_bytes(unique, sizeof unique));
}

static void save_init(Save *save, const World *world, const char *path, const CheckpointIo *io)
{
    size_t count = (size_t)io->count + 1;
    *save = (Save){.world = world, .io = io};
    save->part = world_bcast_text(world, world->rank == 0 ? part_name(path) : NULL);
    save->owner = mem_new(count * sizeof *save->owner);
    save->hash = mem_new(count * sizeof *save->hash);
    save->offset = mem_new(count * sizeof *save->offset);
    owners_assign(io, world->size, true, save->owner);
    save->plain =
        mem_new((size_t)owners_largest(io, save->owner, world->rank) * sizeof *save->plain);
}

static void save_fini(Save *save)
{
    mem_free(&save->plain);
    mem_free(&save->offset);
    mem_free(&save->hash);
    mem_free(&save->owner);
    mem_free(&save->part);
}

static Status check_finite(const CheckpointTensor *tensor, const float *plain)
{
    int64_t count = shape_count(tensor->shape);
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(plain[i]))
            return fail(ERR_DATA, "%s holds %g (element %lld), which is not saved,", tensor->path,
                        (double)plain[i], (long long)i);
    return OK;
}

/* Hashes this rank's tensors and learns the others'. A tensor that is not finite is an error, said
 * of the first one. Collective; the ranks need not agree. */
static Status share_hashes(Save *save)
{
    const CheckpointIo *io = save->io;
    Status status = OK;
    for (int i = 0; i < io->count; ++i) {
        if (!save_get(save, i)) continue;
        save->hash[i] =
            hash_bytes(save->plain, (size_t)shape_count(io->tensor[i].shape) * sizeof *save->plain);
        if (status == OK) status = check_finite(&io->tensor[i], save->plain);
    }
    size_t count = (size_t)io->count;
    uint64_t *all = mem_new((count + 1) * (size_t)save->world->size * sizeof *all);
    world_gather(save->world, save->hash, count * sizeof *all, all);
    for (size_t i = 0; i < count; ++i) save->hash[i] = all[(size_t)save->owner[i] * count + i];
    mem_free(&all);
    return status;
}

/* Makes the file, which every rank has synced, what loads. Rank 0. */
static Status publish(const Save *save, const char *path)
{
    int fd = open(save->part, O_WRONLY | O_CLOEXEC), error = 0;
    if (fd < 0 || fsync(fd) != 0) error = errno;
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    if (error) return write_failed(save->part, "syncing", error);
    if (rename(save->part, path) != 0) return write_failed(path, "renaming to it", errno);
    error = file_sync_entry(path);
    return error ? write_failed(path, "syncing its folder", error) : OK;
}

/* Rank 0 lays the file out; all ranks learn where its tensors go, and which file it is. */
static Status lay_out(Save *save, const CheckpointMeta *meta)
{
    const World *world = save->world;
    struct stat st = {0};
    Status status = OK;
    if (world->rank == 0) {
        status = layout_create(save->part, meta, save->io, save->hash, save->offset);
        if (status == OK && stat(save->part, &st) != 0)
            status = write_failed(save->part, "finding the file", errno);
    }
    TRY(status_agree(world, status));
    save->inode = st.st_ino;
    world_bcast(world, &save->inode, sizeof save->inode, 0);
    world_bcast(world, save->offset, (size_t)save->io->count * sizeof *save->offset, 0);
    return OK;
}

static Status save_file(Save *save, const char *path, const CheckpointMeta *meta)
{
    const World *world = save->world;
    TRY(status_agree(world, share_hashes(save)));
    TRY(lay_out(save, meta));
    TRY(status_agree(world, save_write(save)));
    TRY(status_agree(world, save_read_back(save)));
    return status_agree(world, world->rank == 0 ? publish(save, path) : OK);
}

Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io)
{
    Save save;
    save_init(&save, world, path, io);
    Status status = save_file(&save, path, meta);
    if (status != OK) {
        if (world->rank == 0) unlink(save.part);
        /* nobody returns while the .part is still there */
        world_barrier(world);
    }
    save_fini(&save);
    return status;
}
