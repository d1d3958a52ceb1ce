/* Moves blocks of rows between tables and checkpoints. The number of blocks of a table is the
 * smallest power of two with which blocks have at most BLOCK_ROWS rows on average, but at most
 * ROW_SHARDS. Each block therefore consists of whole shards, and the file is the same on every
 * grid. One or several owners have the rows of a block; the rank that writes the block collects
 * them.
 *
 *     /tables/NAME/ids    (N)            block after block, each sorted by (shard, id)
 *     /tables/NAME/rows   (N, width)
 *     /optim/SLOT/tables/NAME   (N, floats of the slot)
 */
#include "sparse_io.h"

#include "../mode/sparse.h"
#include "tensors.h"

#include <string.h>

/* limit of the average number of rows in a block */
enum { BLOCK_ROWS = 1 << 16 };
/* Parts of a table: ids, rows, and the slots of optimizer state, which have the numbers from 0 on.
 * Each part is an array of the file. */
enum { PART_IDS = -2, PART_ROWS = -1 };

/* A block that is being loaded. */
typedef struct Arrival {
    /* number of parts that have arrived */
    int parts;
    /* ids of the rows; owned */
    uint64_t *id;
    /* rows with their state, in the order of id; owned */
    float *row;
} Arrival;

struct SparseIo {
    /* borrowed */
    Trainer *trainer;
    /* number of tensors */
    int count;
    /* description of each tensor, [count]; owned */
    CheckpointTensor *tensor;
    /* table of each tensor, [count]; owned */
    int *table;
    /* part of each tensor: PART_IDS, PART_ROWS, or a slot of state; [count]; owned */
    int *part;
    /* number of each tensor's block within its table, [count]; owned */
    int *block;
    /* for loading, index in `arrivals` of each tensor, [count]; owned */
    int *arrival;
    /* number of blocks of each table; owned */
    int *blocks;
    /* for loading, index of the tensor with the ids of each table's first block; owned */
    int *ids_tensor;
    /* for saving, number of rows of each shard, [table][shard]; owned */
    int64_t *shard_rows;
    /* for saving, buffer for a whole block; owned */
    void *whole;
    /* for loading; true: optimizer state is left out */
    bool params_only;
    /* for loading: blocks of all tables; owned */
    Arrival *arrivals;
    /* number of entries of `arrivals` */
    int arrival_count;
};

/* Returns the number of floats that a part has for each row; an id has the size of two floats. */
static int part_floats(const Trainer *t, int table, int part)
{
    if (part == PART_IDS) return 2;
    return part == PART_ROWS ? t->graph->table[table].width : sparse_state(t, table).floats[part];
}

/* Returns the path of a part in the file, without a block number. Owner: the caller. */
static char *part_path(const Trainer *t, int table, int part)
{
    const char *name = t->graph->table[table].name;
    if (part >= 0)
        return mem_format("/optim/%s/tables/%s", sparse_state(t, table).name[part], name);
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
    io->blocks = mem_new(tables * sizeof *io->blocks);
    io->ids_tensor = mem_new(tables * sizeof *io->ids_tensor);
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
        mem_free(&io->arrivals[a].id);
        mem_free(&io->arrivals[a].row);
    }
    mem_free(&io->arrivals);
    mem_free(&io->arrival);
    mem_free(&io->tensor);
    mem_free(&io->table);
    mem_free(&io->part);
    mem_free(&io->block);
    mem_free(&io->blocks);
    mem_free(&io->ids_tensor);
    mem_free(&io->shard_rows);
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

static int first_rank(const Trainer *t, int table)
{
    return tensors_stage(t, t->graph->table[table].node) * t->shape.dp;
}

/* Counts the rows of each shard on the stage that has the table, broadcasts the numbers, and sets
 * the number of blocks. */
static void count_rows(SparseIo *io, int table)
{
    Trainer *t = io->trainer;
    int64_t *shard = io->shard_rows + (size_t)table * ROW_SHARDS, sum = 0;
    if (tables_is_used(t->tables, table)) tables_count(t->tables, table, shard);
    world_bcast(t->world, shard, ROW_SHARDS * sizeof *shard, first_rank(t, table));
    for (int s = 0; s < ROW_SHARDS; ++s) sum += shard[s];
    io->blocks[table] = 1;
    while (sum > (int64_t)io->blocks[table] * BLOCK_ROWS && io->blocks[table] < ROW_SHARDS)
        io->blocks[table] *= 2;
}

static int64_t rows_of(const SparseIo *io, int table, int block)
{
    const int64_t *shard = io->shard_rows + (size_t)table * ROW_SHARDS;
    int64_t rows = 0;
    for (int s = first_shard(io, table, block); s < first_shard(io, table, block + 1); ++s)
        rows += shard[s];
    return rows;
}

SparseIo *sparse_io_saving(Trainer *t)
{
    if (t->graph->table_count == 0) return NULL;
    SparseIo *io = begin(t);
    size_t most = 1;
    for (int k = 0; k < t->graph->table_count; ++k) {
        count_rows(io, k);
        for (int part = PART_IDS; part < sparse_state(t, k).slots; ++part) {
            char *path = part_path(t, k, part);
            for (int b = 0; b < io->blocks[k]; ++b) {
                Shape shape = shape_of(2, rows_of(io, k, b), part_floats(t, k, part), 1, 1);
                char *name = mem_format("%s%c%04d", path, CHECKPOINT_BLOCK, b);
                add(io, (CheckpointTensor){.path = name, .shape = shape}, k, part, b);
                size_t bytes = (size_t)shape_count(shape) * sizeof(float);
                if (bytes > most) most = bytes;
            }
            mem_free(&path);
        }
    }
    io->whole = mem_new(most);
    return io;
}

/* Returns the offset of the part within a row and its state, in floats. */
static int part_first(const Trainer *t, int table, int part)
{
    int floats = 0;
    for (int p = PART_ROWS; p < part; ++p) floats += part_floats(t, table, p);
    return floats;
}

void sparse_io_collect(SparseIo *io, int i, int writer)
{
    const Trainer *t = io->trainer;
    int table = io->table[i], part = io->part[i];
    if (!tables_is_used(t->tables, table)) return;
    TablePart block = {.table = table,
                       .first = first_shard(io, table, io->block[i]),
                       .end = first_shard(io, table, io->block[i] + 1)};
    if (part != PART_IDS) block.float_first = part_first(t, table, part);
    if (part != PART_IDS) block.float_count = part_floats(t, table, part);
    tables_collect(t->tables, block, writer - first_rank(t, table), io->whole);
}

const float *sparse_io_get(const SparseIo *io, int i)
{
    (void)i;
    return io->whole;
}

/* ---- loading ---- */

static Status fail_blocks(const char *file, const char *path)
{
    return fail(ERR_DATA,
                "%s: %s has other blocks of rows than the table's ids: altered or damaged; use an "
                "older checkpoint",
                file, path);
}

/* Adds a tensor for each block that the file has of this part. If the file has none, adds one
 * tensor, which the loader then reports as missing. ERR_DATA: the part has another number of blocks
 * than the ids. */
static Status add_part(SparseIo *io, const CheckpointList *list, int table, int part,
                       const char *file)
{
    const Trainer *t = io->trainer;
    char *path = part_path(t, table, part);
    size_t chars = strlen(path);
    int blocks = 0, before = io->count;
    for (int i = 0; i < list->count; ++i) {
        const CheckpointTensor *stored = &list->tensor[i];
        if (strncmp(stored->path, path, chars) != 0 || stored->path[chars] != CHECKPOINT_BLOCK)
            continue;
        Shape shape = shape_of(2, stored->shape.dim[0], part_floats(t, table, part), 1, 1);
        add(io, (CheckpointTensor){.path = mem_text(stored->path), .shape = shape}, table, part,
            blocks++);
    }
    if (blocks == 0) {
        char *name = mem_format("%s%c%04d", path, CHECKPOINT_BLOCK, blocks++);
        int64_t rows = part == PART_IDS ? 1 : io->tensor[io->ids_tensor[table]].shape.dim[0];
        Shape shape = shape_of(2, rows, part_floats(t, table, part), 1, 1);
        add(io, (CheckpointTensor){.path = name, .shape = shape}, table, part, 0);
    } else if (part != PART_IDS && blocks != io->blocks[table]) {
        Status status = fail_blocks(file, path);
        mem_free(&path);
        return status;
    }
    if (part == PART_IDS) {
        io->blocks[table] = blocks;
        io->ids_tensor[table] = before;
    }
    mem_free(&path);
    return OK;
}

/* Assigns all parts of one block of rows to the same Arrival. */
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

/* Checks that each block has the same number of rows in all parts. */
static Status check_blocks(const SparseIo *io, const char *path)
{
    for (int i = 0; i < io->count; ++i) {
        int ids = i;
        while (ids > 0 && (io->part[ids] != PART_IDS || io->block[ids] != io->block[i])) --ids;
        bool has_ids = io->blocks[io->table[i]] > io->block[i] && io->block[ids] == io->block[i];
        if (has_ids && io->tensor[ids].shape.dim[0] == io->tensor[i].shape.dim[0]) continue;
        return fail_blocks(path, io->tensor[i].path);
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
    Status status = OK;
    for (int k = 0; k < t->graph->table_count; ++k)
        for (int part = PART_IDS; part < (params_only ? 0 : sparse_state(t, k).slots); ++part)
            if (status == OK) status = add_part(io, &list, k, part, path);
    checkpoint_list_fini(&list);
    TRY(status);
    TRY(check_blocks(io, path));
    find_arrivals(io);
    io->params_only = params_only;
    if (t->tables) tables_clear(t->tables);
    return OK;
}

/* Returns true if this rank sets the tensor: it owns rows of the block or, with servers, it is the
 * worker to which the block is assigned. */
bool sparse_io_wants(const SparseIo *io, int i)
{
    const Trainer *t = io->trainer;
    int table = io->table[i], dp = t->shape.dp;
    if (!tables_is_used(t->tables, table)) return false;
    if (t->servers > 0) return io->block[i] % dp == t->grid.dp_rank;
    for (int s = first_shard(io, table, io->block[i]); s < first_shard(io, table, io->block[i] + 1);
         ++s)
        if (table_owner(s, dp) == t->grid.dp_rank) return true;
    return false;
}

/* Ends the job if an id is not below the table's number of rows, because such a row could never be
 * used. */
static void check_ids(const SparseTable *table, const uint64_t *id, int64_t count)
{
    for (int64_t k = 0; k < count && table->rows > 0; ++k)
        if (id[k] >= table->rows)
            die_as(ERR_DATA,
                   "table %s: the checkpoint has a row for id %llu, but this model has only %llu "
                   "rows: set model.vocab as in the checkpoint",
                   table->name, (unsigned long long)id[k], (unsigned long long)table->rows);
}

/* Stores one part of a block. Parts arrive in any order; when all parts of a block have arrived,
 * its rows are added to the table. */
void sparse_io_set(SparseIo *io, int i, const float *plain)
{
    Trainer *t = io->trainer;
    Arrival *a = &io->arrivals[io->arrival[i]];
    int table = io->table[i], part = io->part[i], floats = tables_floats(t->tables, table);
    int parts = 2 + (io->params_only ? 0 : sparse_state(t, table).slots);
    int64_t count = io->tensor[i].shape.dim[0];
    size_t rows = (size_t)count + 1;
    if (a->parts++ == 0) {
        a->id = mem_new(rows * sizeof *a->id);
        a->row = mem_new(rows * (size_t)floats * sizeof *a->row);
    }
    if (part == PART_IDS) {
        memcpy(a->id, plain, (size_t)count * sizeof *a->id);
        check_ids(&t->graph->table[table], a->id, count);
    } else {
        int width = part_floats(t, table, part), from = part_first(t, table, part);
        for (int64_t k = 0; k < count; ++k)
            memcpy(a->row + k * floats + from, plain + k * width, (size_t)width * sizeof *plain);
    }
    if (a->parts < parts) return;
    tables_put(t->tables, table, a->id, a->row, count);
    mem_free(&a->id);
    mem_free(&a->row);
}

void sparse_io_set_begin(SparseIo *io)
{
    if (io && io->trainer->tables) tables_put_begin(io->trainer->tables);
}

void sparse_io_set_end(SparseIo *io)
{
    if (io && io->trainer->tables) tables_put_end(io->trainer->tables);
}
