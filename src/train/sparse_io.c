/* Blocks of rows between tables and checkpoints. A table of N rows has as many blocks as bring each
 * below BLOCK_ROWS rows, a power of two, so that each is some whole shards and the file is the same on
 * every grid. A block lies on one owner or on several; whoever writes it collects it from them.
 *
 *     /tables/NAME/ids    (N)            one block behind the other, each by (shard, id)
 *     /tables/NAME/rows   (N, width)
 *     /optim/SLOT/tables/NAME   (N, floats of the slot) */
#include "sparse_io.h"

#include "tensors.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 1 << 16, PART_IDS = -2, PART_ROWS = -1 };

/* A block of a table that is loaded: where the rows of its ids are, NULL where they are another
 * rank's; what has come before the ids. */
typedef struct Arrival {
    bool known;
    int64_t count;
    /* owned, all */
    float **row;
    float *waiting[OPTIM_SLOTS + 2];
} Arrival;

struct SparseIo {
    /* borrowed */
    Trainer *trainer;
    int count;
    /* owned: of each tensor its table, its part (PART_IDS, PART_ROWS, or a slot of state), its block
     * among those of the table, and which of Arrival it is */
    CheckpointTensor *tensor;
    int *table, *part, *block, *arrival;
    /* owned: blocks of each table of the graph; rows of each shard of each table */
    int *blocks;
    int64_t *shard_rows;
    /* owned: the rows of one table, that was asked for last; -1: none */
    TableRows listed;
    int listed_table;
    /* owned: this rank's part of a block, and a whole one */
    float *mine, *whole;
    /* owned, where blocks are loaded */
    Arrival *arrivals;
    int arrival_count;
};

static RowState state_of(const Trainer *t, int table)
{
    OptimRule rule = optim_rule(t->config, t->table_rule[table]);
    return rule.table->row_state(rule.is, t->graph->table[table].width);
}

static int part_floats(const Trainer *t, int table, int part)
{
    if (part == PART_IDS) return 2;
    return part == PART_ROWS ? t->graph->table[table].width : state_of(t, table).floats[part];
}

/* Owner: the caller. */
static char *part_path(const Trainer *t, int table, int part)
{
    const char *name = t->graph->table[table].name;
    if (part >= 0) return mem_format("/optim/%s/tables/%s", state_of(t, table).name[part], name);
    return mem_format("/tables/%s/%s", name, part == PART_IDS ? "ids" : "rows");
}

static void add(SparseIo *io, CheckpointTensor tensor, int table, int part, int block)
{
    size_t count = (size_t)io->count + 1;
    const Trainer *t = io->trainer;
    io->tensor = mem_resize(io->tensor, count * sizeof *io->tensor);
    io->table = mem_resize(io->table, count * sizeof *io->table);
    io->part = mem_resize(io->part, count * sizeof *io->part);
    io->block = mem_resize(io->block, count * sizeof *io->block);
    tensor.ids = part == PART_IDS;
    tensor.block = true;
    tensor.rank_first = tensors_stage(t, t->graph->table[table].node) * t->shape.dp;
    tensor.rank_count = t->shape.dp;
    io->tensor[io->count] = tensor;
    io->table[io->count] = table;
    io->part[io->count] = part;
    io->block[io->count++] = block;
}

static SparseIo *begin(Trainer *t)
{
    SparseIo *io = mem_new(sizeof *io);
    size_t tables = (size_t)t->graph->table_count;
    io->trainer = t;
    io->listed_table = -1;
    io->blocks = mem_new(tables * sizeof *io->blocks);
    io->shard_rows = mem_new(tables * ROW_SHARDS * sizeof *io->shard_rows);
    return io;
}

void sparse_io_free(SparseIo **sparse)
{
    SparseIo *io = *sparse;
    if (!io) return;
    for (int i = 0; i < io->count; ++i) {
        char *path = (char *)(uintptr_t)io->tensor[i].path;
        mem_free(&path);
    }
    for (int a = 0; a < io->arrival_count; ++a) {
        mem_free(&io->arrivals[a].row);
        for (int p = 0; p < OPTIM_SLOTS + 2; ++p) mem_free(&io->arrivals[a].waiting[p]);
    }
    table_rows_fini(&io->listed);
    mem_free(&io->arrivals);
    mem_free(&io->arrival);
    mem_free(&io->tensor);
    mem_free(&io->table);
    mem_free(&io->part);
    mem_free(&io->block);
    mem_free(&io->blocks);
    mem_free(&io->shard_rows);
    mem_free(&io->mine);
    mem_free(&io->whole);
    mem_free(sparse);
}

int sparse_io_count(const SparseIo *io)
{
    return io ? io->count : 0;
}

const CheckpointTensor *sparse_io_tensors(const SparseIo *io)
{
    return io->tensor;
}

static int first_shard(const SparseIo *io, int table, int block)
{
    return (int)((int64_t)block * ROW_SHARDS / io->blocks[table]);
}

/* ---- saving ---- */

/* Each shard has one owner. */
static void count_rows(SparseIo *io, int table)
{
    Trainer *t = io->trainer;
    TableRows rows;
    size_t bytes = ROW_SHARDS * sizeof(int32_t);
    int32_t *mine = mem_new(bytes), *all = mem_new(bytes * (size_t)t->world->size);
    int64_t *shard = io->shard_rows + (size_t)table * ROW_SHARDS, sum = 0;
    tables_list(t->tables, table, &rows);
    for (int s = 0; s < ROW_SHARDS; ++s) mine[s] = (int32_t)(rows.first[s + 1] - rows.first[s]);
    table_rows_fini(&rows);
    world_gather(t->world, mine, bytes, all);
    for (int r = 0; r < t->world->size; ++r)
        for (int s = 0; s < ROW_SHARDS; ++s) shard[s] += all[r * ROW_SHARDS + s];
    for (int s = 0; s < ROW_SHARDS; ++s) sum += shard[s];
    io->blocks[table] = 1;
    while (sum > (int64_t)io->blocks[table] * BLOCK_ROWS && io->blocks[table] < ROW_SHARDS)
        io->blocks[table] *= 2;
    mem_free(&mine);
    mem_free(&all);
}

/* Rows of a block that replica r has; r < 0: all. */
static int64_t rows_of(const SparseIo *io, int table, int block, int r)
{
    const int64_t *shard = io->shard_rows + (size_t)table * ROW_SHARDS;
    int64_t rows = 0;
    for (int s = first_shard(io, table, block); s < first_shard(io, table, block + 1); ++s)
        if (r < 0 || table_owner(s, io->trainer->shape.dp) == r) rows += shard[s];
    return rows;
}

static size_t tensor_bytes(const SparseIo *io, int i)
{
    return (size_t)shape_count(io->tensor[i].shape) * sizeof(float);
}

SparseIo *sparse_io_saving(Trainer *t)
{
    if (t->graph->table_count == 0) return NULL;
    SparseIo *io = begin(t);
    size_t most = 1;
    for (int k = 0; k < t->graph->table_count; ++k) {
        count_rows(io, k);
        for (int part = PART_IDS; part < state_of(t, k).slots; ++part) {
            char *path = part_path(t, k, part);
            for (int b = 0; b < io->blocks[k]; ++b) {
                Shape shape = shape_of(2, rows_of(io, k, b, -1), part_floats(t, k, part), 1, 1);
                char *name = mem_format("%s%c%04d", path, CHECKPOINT_BLOCK, b);
                add(io, (CheckpointTensor){.path = name, .shape = shape}, k, part, b);
                size_t bytes = tensor_bytes(io, io->count - 1);
                if (bytes > most) most = bytes;
            }
            mem_free(&path);
        }
    }
    io->mine = mem_new(most);
    io->whole = mem_new(most);
    return io;
}

/* This rank's rows of a block, one behind the other. */
static void pack(SparseIo *io, int i)
{
    const Trainer *t = io->trainer;
    int table = io->table[i], part = io->part[i], skip = 0;
    if (io->listed_table != table) {
        table_rows_fini(&io->listed);
        tables_list(t->tables, table, &io->listed);
        io->listed_table = table;
    }
    const TableRows *rows = &io->listed;
    int64_t from = rows->first[first_shard(io, table, io->block[i])];
    int64_t end = rows->first[first_shard(io, table, io->block[i] + 1)];
    size_t bytes = (size_t)part_floats(t, table, part) * sizeof(float);
    for (int p = PART_ROWS; p < part; ++p) skip += part_floats(t, table, p);
    char *to = (char *)io->mine;
    for (int64_t k = from; k < end; ++k, to += bytes)
        memcpy(to, part == PART_IDS ? (const void *)&rows->id[k] : rows->row[k] + skip, bytes);
}

void sparse_io_collect(SparseIo *io, int i, int writer)
{
    const Trainer *t = io->trainer;
    const CheckpointTensor *of = &io->tensor[i];
    int here = t->world->rank - of->rank_first;
    size_t *bytes = mem_new((size_t)t->world->size * sizeof *bytes);
    size_t row = (size_t)part_floats(t, io->table[i], io->part[i]) * sizeof(float);
    for (int r = 0; r < of->rank_count; ++r)
        bytes[of->rank_first + r] = (size_t)rows_of(io, io->table[i], io->block[i], r) * row;
    if (here >= 0 && here < of->rank_count) pack(io, i);
    world_collect(t->world, io->mine, bytes, writer, io->whole);
    mem_free(&bytes);
}

const float *sparse_io_get(const SparseIo *io, int i)
{
    (void)i;
    return io->whole;
}

/* ---- loading ---- */

/* Blocks of a part in the file; where there are none, one that will be missed. */
static void add_part(SparseIo *io, const CheckpointList *list, int table, int part)
{
    const Trainer *t = io->trainer;
    char *path = part_path(t, table, part);
    size_t chars = strlen(path);
    int blocks = 0;
    for (int i = 0; i < list->count; ++i) {
        const CheckpointTensor *of = &list->tensor[i];
        if (strncmp(of->path, path, chars) != 0 || of->path[chars] != CHECKPOINT_BLOCK) continue;
        Shape shape = shape_of(2, of->shape.dim[0], part_floats(t, table, part), 1, 1);
        add(io, (CheckpointTensor){.path = mem_text(of->path), .shape = shape}, table, part,
            blocks++);
    }
    if (blocks == 0) {
        char *name = mem_format("%s%c%04d", path, CHECKPOINT_BLOCK, blocks++);
        Shape shape = shape_of(2, 1, part_floats(t, table, part), 1, 1);
        add(io, (CheckpointTensor){.path = name, .shape = shape}, table, part, 0);
    }
    if (part == PART_IDS) io->blocks[table] = blocks;
    mem_free(&path);
}

/* Blocks of a table hold the same rows in all of its parts. */
static void find_arrivals(SparseIo *io)
{
    size_t count = (size_t)io->count + 1;
    io->arrival = mem_new(count * sizeof *io->arrival);
    io->arrivals = mem_new(count * sizeof *io->arrivals);
    for (int i = 0, first = 0; i < io->count; ++i) {
        if (io->part[i] == PART_IDS && io->block[i] == 0) first = io->arrival_count;
        io->arrival[i] = first + io->block[i];
        if (io->part[i] == PART_IDS) ++io->arrival_count;
    }
}

/* All parts of a table are cut alike. */
static Status check_blocks(const SparseIo *io, const char *path)
{
    for (int i = 0; i < io->count; ++i) {
        int ids = i;
        while (ids > 0 && (io->part[ids] != PART_IDS || io->block[ids] != io->block[i])) --ids;
        bool whole = io->blocks[io->table[i]] > io->block[i] && io->block[ids] == io->block[i];
        if (whole && io->tensor[ids].shape.dim[0] == io->tensor[i].shape.dim[0]) continue;
        return fail(ERR_DATA,
                    "%s: %s has other blocks of rows than the table's ids: altered or damaged; use "
                    "an older checkpoint",
                    path, io->tensor[i].path);
    }
    return OK;
}

Status sparse_io_loading(Trainer *t, const char *path, bool params_only, SparseIo **out)
{
    CheckpointList list;
    *out = NULL;
    if (t->graph->table_count == 0) return OK;
    TRY(checkpoint_list_blocks(t->world, path, &list));
    SparseIo *io = *out = begin(t);
    for (int k = 0; k < t->graph->table_count; ++k)
        for (int part = PART_IDS; part < (params_only ? 0 : state_of(t, k).slots); ++part)
            add_part(io, &list, k, part);
    checkpoint_list_fini(&list);
    TRY(check_blocks(io, path));
    find_arrivals(io);
    if (t->tables) tables_clear(t->tables);
    return OK;
}

bool sparse_io_wants(const SparseIo *io, int i)
{
    const Trainer *t = io->trainer;
    int table = io->table[i];
    for (int s = first_shard(io, table, io->block[i]); s < first_shard(io, table, io->block[i] + 1);
         ++s)
        if (tables_owns(t->tables, table, s)) return true;
    return false;
}

/* The rows of a block's ids that are this rank's. */
static void take_ids(SparseIo *io, int i, Arrival *a, const uint64_t *id)
{
    Trainer *t = io->trainer;
    int table = io->table[i];
    uint64_t hash = hash_text(t->graph->table[table].name);
    a->count = io->tensor[i].shape.dim[0];
    a->row = mem_new((size_t)(a->count + 1) * sizeof *a->row);
    for (int64_t k = 0; k < a->count; ++k) {
        if (!tables_owns(t->tables, table, row_shard(row_mix(hash, id[k])))) continue;
        Status st = tables_put(t->tables, table, &id[k], 1, &a->row[k]);
        if (st != OK) die_as(st, "table %s: %s", t->graph->table[table].name, fail_message());
    }
    a->known = true;
}

static void take_part(SparseIo *io, int i, const Arrival *a, const float *plain)
{
    const Trainer *t = io->trainer;
    int table = io->table[i], skip = 0, width = part_floats(t, table, io->part[i]);
    for (int p = PART_ROWS; p < io->part[i]; ++p) skip += part_floats(t, table, p);
    for (int64_t k = 0; k < a->count; ++k)
        if (a->row[k]) memcpy(a->row[k] + skip, plain + k * width, (size_t)width * sizeof *plain);
}

/* Parts may come in any order. */
void sparse_io_set(SparseIo *io, int i, const float *plain)
{
    Arrival *a = &io->arrivals[io->arrival[i]];
    int part = io->part[i];
    if (part == PART_IDS) {
        take_ids(io, i, a, (const uint64_t *)(const void *)plain);
        for (int k = 0; k < io->count; ++k)
            if (io->arrival[k] == io->arrival[i] && io->part[k] != PART_IDS &&
                a->waiting[io->part[k] + 1])
                take_part(io, k, a, a->waiting[io->part[k] + 1]);
        for (int p = 0; p < OPTIM_SLOTS + 2; ++p) mem_free(&a->waiting[p]);
    } else if (a->known) {
        take_part(io, i, a, plain);
    } else {
        a->waiting[part + 1] = mem_new(tensor_bytes(io, i) + 1);
        memcpy(a->waiting[part + 1], plain, tensor_bytes(io, i));
    }
}
