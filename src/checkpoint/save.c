/* Saves a checkpoint in stages. Ranks divide the tensors among themselves by bytes. A rank gets
 * each of its tensors twice, to hash and to write it, so that its buffer is no larger than its
 * largest tensor. Tensors that are distributed over ranks are collected in turns (owners.h).
 *
 *      collective               on each rank
 *      -                        hash its tensors
 *      add up hashes            rank 0 lays the file out (layout.c)
 *      broadcast the layout     write whole pages, sync (write.c)
 *      gather edges on rank 0   rank 0 writes them
 *      -                        read back (rank 0 the table, each rank a share of the tensors)
 *      -                        rank 0 copies it to io->second_path, if set, and renames it
 *
 * In a background save a thread does the work of the right column, and sends no messages. The
 * collective part runs between two steps. If a stage fails on any rank, the save ends. Existing
 * files do not change before the rename. */
#include "layout.h"
#include "owners.h"
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Returns, on rank 0, a name that no host can have looked up before, because network file systems
 * cache old entries. */
static char *part_name(const char *path)
{
    static uint64_t saves;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t unique[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), ++saves};
    return mem_format("%s.%08x.part", path, (unsigned)hash_bytes(unique, sizeof unique));
}

struct CheckpointSave {
    Save save;
    /* index of the current stage in `stages` */
    int stage;
    /* status of this rank's work in the stage */
    Status status;
    /* message of the failure of this work; owned */
    char *message;
    /* seconds spent by this rank so far */
    double seconds;
    /* argument of checkpoint_save_begin */
    bool in_background;
    /* true: the stage runs on `thread`, which has not been joined yet */
    bool threaded;
    pthread_t thread;
    /* true: this rank's work of the stage is not done */
    atomic_bool busy;
};

static void save_init(Save *save, const World *world, const char *path, const CheckpointIo *io)
{
    size_t count = (size_t)io->count + 1;
    *save = (Save){.world = world, .io = io, .path = mem_text(path)};
    save->part = world_bcast_text(world, world->rank == 0 ? part_name(path) : NULL);
    save->owner = mem_new(count * sizeof *save->owner);
    save->hash = mem_new(count * sizeof *save->hash);
    save->offset = mem_new(count * sizeof *save->offset);
    save->order = mem_new(count * sizeof *save->order);
    save->turn = mem_new(count * sizeof *save->turn);
    checkpoint_owners(io, world->size, save->owner);
    save->turns = owners_turns(io, save->owner, world->size, save->order, save->turn);
    save->plain_bytes = (size_t)owners_largest(io, save->owner, world->rank) * sizeof *save->plain;
    save->plain = mem_pages_new(save->plain_bytes);
}

static void save_fini(Save *save)
{
    mem_free(&save->all_edges);
    mem_free(&save->edges);
    mem_pages_free(save->plain, save->plain_bytes);
    mem_free(&save->offset);
    mem_free(&save->hash);
    mem_free(&save->turn);
    mem_free(&save->order);
    mem_free(&save->owner);
    mem_free(&save->part);
    mem_free(&save->path);
}

/* Fails if a value is not finite. A run appends "at step N" to the message (run_save.c). */
static Status check_finite(const CheckpointTensor *tensor, const float *plain)
{
    int64_t count = shape_count(tensor->shape);
    if (tensor->ids || mem_finite(plain, count)) return OK;
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(plain[i]))
            return fail(ERR_DATA, "%s holds %g (element %lld), which is not saved,", tensor->path,
                        (double)plain[i], (long long)i);
    return OK;
}

/* ---- work on each rank ---- */

typedef struct Hashing {
    const Save *save;
    Status status;
    /* index of the tensor that status is about, the lowest of this rank's bad tensors; io->count if
     * none is bad */
    int bad;
} Hashing;

/* Hashes a tensor. If several tensors are not finite, the error is about the one with the lowest
 * index. */
static void hash_tensor(void *user, int i, const float *plain)
{
    Hashing *h = user;
    const CheckpointTensor *tensor = &h->save->io->tensor[i];
    h->save->hash[i] = hash_bytes(plain, (size_t)shape_count(tensor->shape) * sizeof *plain);
    if (i > h->bad) return;
    Status status = check_finite(tensor, plain);
    if (status == OK) return;
    h->status = status;
    h->bad = i;
}

static Status hash_tensors(Save *save)
{
    Hashing hashing = {.save = save, .bad = save->io->count};
    save_visit(save, hash_tensor, &hashing);
    return hashing.status;
}

static void call_before(const Save *save)
{
    const CheckpointHooks *hooks = &save->io->hooks;
    if (hooks->before) hooks->before(hooks->user);
}

static Status lay_out(Save *save)
{
    struct stat st;
    if (save->world->rank != 0) return OK;
    call_before(save);
    TRY(layout_create(save->part, save->meta, save->io, save->hash, save->offset));
    if (lstat(save->part, &st) != 0) return write_failed(save->part, "finding the file", errno);
    save->inode = st.st_ino;
    return OK;
}

static Status rename_to(const Save *save, const char *part, const char *path)
{
    call_before(save);
    if (rename(part, path) != 0) return write_failed(path, "renaming to it", errno);
    int error = file_sync_entry(path);
    return error ? write_failed(path, "syncing its folder", error) : OK;
}

/* Copies the part file to the second path. The second file is a copy, not a link, so that damage to
 * one file leaves the other intact. The copy is made before the first file is renamed, because the
 * rename completes the save. */
static Status publish_also(const Save *save, const char *also)
{
    char *part = part_name(also);
    Status status = save_copy_file(save->part, part);
    if (status == OK) status = rename_to(save, part, also);
    if (status != OK) unlink(part);
    mem_free(&part);
    return status;
}

/* Does the last stage, on rank 0: calls got_all, syncs the part file once more (every rank has
 * synced it), makes the second file, and renames the first. */
static Status publish(Save *save)
{
    const CheckpointHooks *hooks = &save->io->hooks;
    if (save->world->rank != 0) return OK;
    if (save->io->got_all) TRY(save->io->got_all(save->io->user));
    call_before(save);
    int fd = file_open(save->part, O_WRONLY | O_NOFOLLOW), error = 0;
    if (fd < 0 || fsync(fd) != 0) error = errno;
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    if (error) return write_failed(save->part, "syncing", error);
    if (save->io->second_path) TRY(publish_also(save, save->io->second_path));
    TRY(rename_to(save, save->part, save->path));
    if (hooks->after) hooks->after(hooks->user);
    return OK;
}

/* ---- collective work between stages ---- */

static void share_hashes(Save *save)
{
    /* a rank has 0 for tensors that it does not own, so the sum has the hashes of all tensors */
    world_allreduce(save->world, (int64_t *)save->hash, save->io->count);
}

/* Broadcasts the tensors' offsets and the file's inode. */
static void share_layout(Save *save)
{
    const World *world = save->world;
    world_bcast(world, &save->inode, sizeof save->inode, 0);
    world_bcast(world, save->offset, (size_t)save->io->count * sizeof *save->offset, 0);
}

/* ---- stages ---- */

typedef struct Stage {
    /* collective part; may be NULL */
    void (*exchange)(Save *save);
    /* work of each rank; sends no messages except to collect tensors */
    Status (*work)(Save *save);
} Stage;

static const Stage stages[] = {
    {NULL, hash_tensors},
    {share_hashes, lay_out},
    {share_layout, save_write_pages},
    {save_collect_edges, save_write_edges},
    {NULL, save_read_back},
    {NULL, publish},
};
enum { STAGES = sizeof stages / sizeof *stages };

static void *work(void *user)
{
    CheckpointSave *s = user;
    const double begun = clock_s();
    s->status = stages[s->stage].work(&s->save);
    if (s->status != OK) s->message = mem_text(fail_message());
    s->seconds += clock_s() - begun;
    atomic_store(&s->busy, false);
    return NULL;
}

static void stage_begin(CheckpointSave *s)
{
    const double begun = clock_s();
    if (stages[s->stage].exchange) stages[s->stage].exchange(&s->save);
    s->seconds += clock_s() - begun;
    atomic_store(&s->busy, true);
    s->threaded = s->in_background && thread_begin(&s->thread, work, s) == 0;
    if (!s->threaded) work(s);
}

/* Waits for this rank's work and returns the status of all ranks. Collective. */
static Status stage_end(CheckpointSave *s)
{
    if (s->threaded) pthread_join(s->thread, NULL);
    s->threaded = false;
    Status status = s->status;
    if (status != OK) status = fail(status, "%s", s->message);
    mem_free(&s->message);
    return status_agree(s->save.world, status);
}

CheckpointSave *checkpoint_save_begin(const World *world, const char *path,
                                      const CheckpointMeta *meta, const CheckpointIo *io,
                                      bool in_background)
{
    CheckpointSave *s = mem_new(sizeof *s);
    Save *save = &s->save;
    const double begun = clock_s();
    save_init(save, world, path, io);
    save->meta = meta;
    s->in_background = in_background;
    s->seconds = clock_s() - begun;
    stage_begin(s);
    return s;
}

double checkpoint_save_seconds(const CheckpointSave *s)
{
    return s->seconds;
}

bool checkpoint_save_busy(const CheckpointSave *s)
{
    return atomic_load(&s->busy);
}

Status checkpoint_save_next(CheckpointSave *s, bool *done)
{
    const World *world = s->save.world;
    Status status = stage_end(s);
    *done = status != OK || ++s->stage == STAGES;
    if (!*done) {
        stage_begin(s);
    } else if (status != OK) {
        if (world->rank == 0) unlink(s->save.part);
        /* no rank returns while the .part still exists */
        world_barrier(world);
    }
    return status;
}

void checkpoint_save_free(CheckpointSave **save)
{
    if (!*save) return;
    if ((*save)->threaded) pthread_join((*save)->thread, NULL);
    mem_free(&(*save)->message);
    save_fini(&(*save)->save);
    mem_free(save);
}

Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io)
{
    CheckpointSave *save = checkpoint_save_begin(world, path, meta, io, false);
    Status status = OK;
    for (bool done = false; !done;) status = checkpoint_save_next(save, &done);
    checkpoint_save_free(&save);
    return status;
}
