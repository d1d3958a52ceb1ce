/* Measures the memory-bound operations of a model, and its optimizer. Each is compared with a copy
 * of the same number of bytes in the same process. */
#include "bench_op.h"

#include <string.h>

/* bytes that the copy in the heading reads and writes; too many for a cache */
static const double LARGE_COPY_BYTES = 512e6;

/* A group of equal operations of the graph. */
typedef struct Kernel {
    /* the first operation of the group; borrowed */
    Op *op;
    /* number of operations in the group */
    int occurrences;
} Kernel;

/* Returns whether an operation is memory-bound: it has no matrix products, needs no other rank, and
 * its output is not a view of another tensor's memory. */
static bool is_memory_bound(const Op *op)
{
    const OpInfo *info = op_info(op->spec.kind);
    return !info->macs && !op_waits_for_ranks(&op->spec) && !op->y_is_x &&
           op->spec.slice.ranks == 0;
}

/* Returns whether two operations do the same work on tensors of the same shapes. */
static bool are_equal(const OpSpec *a, const OpSpec *b)
{
    bool same = a->kind == b->kind && a->act == b->act && a->residual == b->residual &&
                a->pool == b->pool && a->scale == b->scale && a->x_count == b->x_count &&
                desc_equal(a->y, b->y) && memcmp(a->kernel, b->kernel, sizeof a->kernel) == 0 &&
                memcmp(a->stride, b->stride, sizeof a->stride) == 0;
    for (int i = 0; same && i < a->x_count; ++i)
        same = desc_equal(a->x[i], b->x[i]) && a->need_dx[i] == b->need_dx[i];
    return same;
}

/* Returns the groups of equal memory-bound operations, [*count]. The caller owns them. */
static Kernel *group_operations(const Graph *graph, int *count)
{
    Kernel *kernel = mem_new((size_t)graph->node_count * sizeof *kernel);
    *count = 0;
    for (int i = 0; i < graph->node_count; ++i) {
        Op *op = graph->node[i].op;
        int k = 0;
        if (!is_memory_bound(op)) continue;
        while (k < *count && !are_equal(&kernel[k].op->spec, &op->spec)) ++k;
        if (k == *count) kernel[(*count)++].op = op;
        ++kernel[k].occurrences;
    }
    return kernel;
}

/* ---- optimizer ---- */

static void update(void *user)
{
    trainer_update_once(user, 1e-6);
}

/* Measures the optimizer, which reads and writes parameters and state, reads gradients, and writes
 * the copies that operations read in 16-bit types. Returns the number of lines filled, 0 or 1.
 * Nothing is measured if this rank updates nothing, or if a rule needs norms or whole tensors,
 * because such rules communicate with other ranks. */
static int measure_optimizer(Trainer *t, BenchLine *line)
{
    Backend *backend = trainer_backend(t);
    const Optim *o = trainer_optim(t);
    int64_t elements = 0;
    double bytes = 0;
    if (o->norm_count > 0 || o->needs_whole_tensors) return 0;
    for (int i = 0; i < o->range_count; ++i) {
        const OptimPiece *piece = &o->piece[i];
        elements += piece->elements;
        bytes += (3.0 + 2.0 * piece->rule->slots) * sizeof(float) * (double)piece->elements;
        if (piece->copy) bytes += (double)dtype_bytes(o->copy_type) * (double)piece->elements;
    }
    if (elements == 0) return 0;
    *line = (BenchLine){.occurrences = 1, .direction = "update"};
    snprintf(line->label, BENCH_LABEL, "%s", o->table->word.word);
    shape_text(shape_of(1, elements, 1, 1, 1), line->shape);
    line->bytes = bytes;
    line->seconds = bench_seconds(backend, update, t);
    line->copy_rate = bench_copy(backend, line->bytes);
    return 1;
}

static void print_lines(const World *world, const BenchLine *line, int count, bool json)
{
    for (int i = 0; world->rank == 0 && i < count; ++i) bench_line_print(&line[i], json);
}

void bench_model(Trainer *t, bool json)
{
    const World *world = trainer_world(t);
    int count;
    Kernel *kernel = group_operations(trainer_graph(t), &count);
    BenchLine line[2] = {0};
    double copy_rate = bench_copy(trainer_backend(t), LARGE_COPY_BYTES);
    if (!json && world->rank == 0) {
        printf("memory-bound operations, compared with a copy of as many bytes (read and written); "
               "a copy of %.0f MB: %.1f GB/s\n",
               LARGE_COPY_BYTES * 1e-6, copy_rate * 1e-9);
        bench_line_head(false);
    }
    for (int i = 0; i < count; ++i) {
        int lines = bench_op(line, kernel[i].op, kernel[i].op->table->name);
        for (int k = 0; k < lines; ++k) line[k].occurrences = kernel[i].occurrences;
        print_lines(world, line, lines, json);
    }
    print_lines(world, line, measure_optimizer(t, line), json);
    mem_free(&kernel);
}
