/* Loads a checkpoint on any grid. Rank 0 reads the metadata, compares the tensors with the caller's
 * and broadcasts their locations in the file. Each tensor has one rank that reads and verifies it
 * (readers.c) and sends it to the other ranks that want it (share.c). Without
 * CheckpointIo.sets_early, the same ranks verify all tensors before any is sent. */
#include "load.h"
#include "mismatches.h"
#include "owners.h"

#include <string.h>

static void set_location(Load *load, int i, const StoredTensor *t)
{
    load->location[i] = (Location){t->offset, t->has_hash, t->hash};
    if (t->source) load->name[i] = mem_text(t->source);
}

/* Returns true for the path of optimizer state or of an average, which a load with params_only
 * skips. */
static bool is_state(const char *path)
{
    return strncmp(path, "/optim/", 7) == 0 || stored_is_average(path);
}

/* Finds tensor i in the file, and sets its location if the shapes are equal. A difference is added
 * to `state` for optimizer state and averages, and to `model` for other tensors. If the file has no
 * averages at all, averages are skipped. */
static void match(Load *load, int i, bool *used, Mismatches *model, Mismatches *state)
{
    const StoredFile *file = &load->file;
    const CheckpointTensor *mine = &load->io->tensor[i];
    const StoredTensor *t = stored_find(file, mine->path);
    Mismatches *to = is_state(mine->path) ? state : model;
    if (t) used[t - file->tensor] = true;
    if (!t && stored_is_average(mine->path) && file->meta.average_count == 0)
        load->location[i].offset = NOT_TAKEN;
    else if (!t)
        mismatches_missing(to, mine->path);
    else if (!shape_equal(t->shape, mine->shape))
        mismatches_size(to, mine->path, t->shape, mine->shape);
    else
        set_location(load, i, t);
}

/* Matches tensors by their paths, which must be the same. */
static Status match_same(Load *load)
{
    const StoredFile *file = &load->file;
    Mismatches model, state;
    bool *used = mem_new(((size_t)file->count + 1) * sizeof *used);
    bool averages = false;
    for (int i = 0; i < load->io->count && !averages; ++i)
        averages = stored_is_average(load->io->tensor[i].path);
    mismatches_begin(&model);
    mismatches_begin(&state);
    for (int i = 0; i < load->io->count; ++i) match(load, i, used, &model, &state);
    for (int i = 0; i < file->count; ++i) {
        const char *path = file->tensor[i].path;
        if (used[i] || (load->io->params_only && is_state(path))) continue;
        if (stored_is_average(path) && !averages) continue;
        mismatches_surplus(is_state(path) ? &state : &model, path);
    }
    mem_free(&used);
    const bool params = mismatches_count(&model) > 0;
    /* The last mismatches_end that fails determines the message, so the message about parameters
     * takes precedence. */
    Status status = mismatches_end(&state, file->path,
                                   "its optimizer was another one (optim.name, optim.groups or "
                                   "model.freeze; `weft ckpt info` shows what state it holds)");
    if (params)
        return mismatches_end(&model, file->path, "is of another model, and does not fit this one");
    (void)mismatches_end(&model, file->path, "");
    return status;
}

/* Matches tensors by the caller's io->match. */
static Status match_by_caller(Load *load)
{
    const StoredFile *file = &load->file;
    const CheckpointIo *io = load->io;
    CheckpointStored *stored = mem_new(((size_t)file->count + 1) * sizeof *stored);
    int *from = mem_new(((size_t)io->count + 1) * sizeof *from);
    for (int i = 0; i < file->count; ++i) {
        const StoredTensor *t = &file->tensor[i];
        stored[i] = (CheckpointStored){t->path, t->shape, t->has_hash ? t->hash : 0};
    }
    for (int i = 0; i < io->count; ++i) from[i] = -1;
    Status status = io->match(io->user, &file->meta, stored, file->count, from);
    for (int i = 0; i < io->count; ++i) {
        load->location[i].offset = NOT_TAKEN;
        if (from[i] < 0) continue;
        set_location(load, i, &file->tensor[from[i]]);
        if (!load->name[i]) load->name[i] = mem_text(file->tensor[from[i]].path);
    }
    mem_free(&from);
    mem_free(&stored);
    return status;
}

static void warn_unverified(const StoredFile *file)
{
    int bare = 0, first = -1;
    for (int i = 0; i < file->count; ++i)
        if (!file->tensor[i].has_hash && bare++ == 0) first = i;
    if (bare > 0)
        log_warn("%s: %d tensors (the first: %s) have no checksum and cannot be verified",
                 file->path, bare, file->tensor[first].path);
}

static Status read_table(Load *load, const char *path, CheckpointMeta *meta)
{
    TRY(stored_open(&load->file, path));
    TRY(stored_list(&load->file));
    if (load->io->loads_averages) stored_use_averages(&load->file);
    TRY(stored_meta(&load->file, meta));
    TRY(load->io->match ? match_by_caller(load) : match_same(load));
    warn_unverified(&load->file);
    return OK;
}

/* Broadcasts the locations and attributes that rank 0 has read. Collective. */
static void share_table(const Load *load, CheckpointMeta *meta)
{
    const World *world = load->world;
    world_bcast(world, load->location, (size_t)load->io->count * sizeof *load->location, 0);
    bool named = load->io->match || load->io->loads_averages;
    for (int i = 0; i < load->io->count && named; ++i)
        load->name[i] = world_bcast_text(world, load->name[i]);
    char *config = meta->config, *version = meta->version, *classes = meta->classes;
    char *algorithms = meta->algorithms, *data_files = meta->data_files;
    DataRanges ranges = meta->ranges;
    world_bcast(world, meta, sizeof *meta, 0);
    /* texts are broadcast separately, because pointers are valid on their own rank only */
    meta->ranges = ranges;
    meta->config = world_bcast_text(world, config);
    meta->version = world_bcast_text(world, version);
    meta->classes = world_bcast_text(world, classes);
    meta->algorithms = world_bcast_text(world, algorithms);
    meta->data_files = world_bcast_text(world, data_files);
}

Status load_read(Load *load, int i, float *plain)
{
    const Location *location = &load->location[i];
    const CheckpointTensor *mine = &load->io->tensor[i];
    const char *name = load->name[i] ? load->name[i] : mine->path;
    StoredTensor tensor = {.path = (char *)(uintptr_t)name,
                           .shape = mine->shape,
                           .offset = location->offset,
                           .hash = location->hash,
                           .has_hash = location->has_hash != 0};
    return stored_read(&load->file, &tensor, plain);
}

static bool reads(const Load *load, int i)
{
    return load->readers.reader[i] == load->world->rank;
}

static Status verify_share(Load *load)
{
    for (int i = 0; i < load->io->count; ++i)
        if (reads(load, i)) TRY(load_read(load, i, load->plain));
    return OK;
}

static void assign(Load *load)
{
    ReadBy *taken = mem_new(((size_t)load->io->count + 1) * sizeof *taken);
    for (int i = 0; i < load->io->count; ++i) {
        int64_t offset = load->location[i].offset;
        taken[i] = offset == NOT_TAKEN ? READ_NOT : offset < 0 ? READ_BY_FIRST : READ_BY_ANY;
    }
    readers_init(&load->readers, load->world, load->io, taken);
    mem_free(&taken);
}

/* Opens the file on the ranks that read, and checks that it is the file whose table rank 0 has
 * read, because a host may still see an older file of that name. Collective. */
static Status open_same(Load *load, const char *path)
{
    uint64_t inode = load->file.inode;
    bool reads_any = false;
    world_bcast(load->world, &inode, sizeof inode, 0);
    for (int i = 0; i < load->io->count; ++i) reads_any = reads_any || reads(load, i);
    if (load->world->rank == 0 || !reads_any) return OK;
    TRY(stored_open_plain(&load->file, path));
    if (load->file.inode == inode) return OK;
    return fail(ERR_IO,
                "%s: this host sees another file of that name than rank 0's host does; start again",
                path);
}

static Status load_file(Load *load, const char *path, CheckpointMeta *meta)
{
    const World *world = load->world;
    TRY(status_agree(world, world->rank == 0 ? read_table(load, path, meta) : OK));
    share_table(load, meta);
    assign(load);
    TRY(status_agree(world, open_same(load, path)));
    if (!load->io->sets_early) TRY(status_agree(world, verify_share(load)));
    return status_agree(world, load_share_tensors(load));
}

Status checkpoint_load(const World *world, const char *path, CheckpointMeta *meta,
                       const CheckpointIo *io)
{
    size_t count = (size_t)io->count + 1;
    CheckpointMeta read = {0};
    Load load = {.world = world, .io = io, .file = {.path = path, .fd = -1, .id = -1}};
    load.location = mem_new(count * sizeof *load.location);
    load.name = mem_new(count * sizeof *load.name);
    load.largest = owners_largest(io, NULL, 0);
    size_t bytes = 2 * (size_t)load.largest * sizeof *load.plain;
    load.plain = mem_pages_new(bytes);
    Status status = load_file(&load, path, &read);
    stored_close(&load.file);
    mem_pages_free(load.plain, bytes);
    readers_fini(&load.readers);
    for (int i = 0; i < io->count; ++i) mem_free(&load.name[i]);
    mem_free(&load.name);
    mem_free(&load.location);
    if (status == OK && meta)
        *meta = read;
    else
        checkpoint_meta_fini(&read);
    return status;
}

static Status list_read(const char *path, CheckpointList *list)
{
    StoredFile file;
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) list->tensor = mem_new((size_t)(file.count + 1) * sizeof *list->tensor);
    for (int i = 0; i < file.count && status == OK; ++i) {
        const StoredTensor *t = &file.tensor[i];
        if (t->block)
            list->tensor[list->count++] = (CheckpointTensor){
                .path = mem_text(t->path), .shape = t->shape, .ids = t->ids, .block = true};
    }
    stored_close(&file);
    return status;
}

Status checkpoint_list_blocks(const World *world, const char *path, CheckpointList *list)
{
    *list = (CheckpointList){0};
    TRY(status_agree(world, world->rank == 0 ? list_read(path, list) : OK));
    world_bcast(world, &list->count, sizeof list->count, 0);
    if (world->rank > 0) list->tensor = mem_new((size_t)(list->count + 1) * sizeof *list->tensor);
    for (int i = 0; i < list->count; ++i) {
        CheckpointTensor *t = &list->tensor[i];
        char *read = (char *)(uintptr_t)t->path;
        world_bcast(world, t, sizeof *t, 0);
        t->path = world_bcast_text(world, read);
    }
    return OK;
}

void checkpoint_list_fini(CheckpointList *list)
{
    for (int i = 0; i < list->count; ++i) {
        char *path = (char *)(uintptr_t)list->tensor[i].path;
        mem_free(&path);
    }
    mem_free(&list->tensor);
    list->count = 0;
}

Status checkpoint_read_meta(const char *path, CheckpointMeta *meta)
{
    StoredFile file;
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_meta(&file, meta);
    stored_close(&file);
    return status;
}
