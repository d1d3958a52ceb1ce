/* Cuts a planned graph into contiguous chunks for the stages of a pipeline. With grid.cuts the
 * chunks begin at the layers that it names. Otherwise dynamic programming over the possible
 * boundaries makes the costliest chunk as cheap as possible; in a rollout, each step is cut like
 * the first step, if possible. The data never crosses a boundary, and the loss stays with the last
 * layer that it reads. The cut is a pure function of the graph, so every rank finds the same
 * cut. */
#include "build.h"

#include <string.h>

/* Speeds of a CPU core. Only their ratio matters for a cut, and it is about the same for a GPU. */
static const double FLOPS_PER_S = 50e9, BYTES_PER_S = 10e9;

typedef struct Cutter {
    /* borrowed */
    const Graph *graph;
    /* borrowed */
    const Config *config;
    /* number of chunks to make */
    int chunks;
    /* number of pieces of the graph if it is cut at every possible boundary */
    int pieces;
    /* node before which each possible boundary lies, [pieces + 1]: piece i is nodes boundary[i] to
     * boundary[i + 1] - 1; owned */
    int *boundary;
    /* cost of all nodes before each possible boundary, in seconds, [pieces + 1]; owned */
    double *cost;
    /* bytes that would cross each possible boundary, [pieces + 1]; owned */
    int64_t *bytes;
} Cutter;

/* The best cut of the nodes before some boundary into some number of chunks, none of which costs
 * more than a limit. */
typedef struct PartialCut {
    /* bytes over all boundaries, or -1 if there is no such cut */
    int64_t bytes;
    /* sum of the squares of the chunks' costs: the smaller, the more even is the cut */
    double spread;
    /* the last boundary, an index into Cutter.boundary */
    int from;
} PartialCut;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the seconds that the slower of computation and memory needs (roofline model). */
static double roofline_s(double flops, double bytes)
{
    return larger(flops / FLOPS_PER_S, bytes / BYTES_PER_S);
}

/* Forward reads x and w and writes y. Backward reads dy, the kept tensors and w, and writes dx and
 * dw; it costs nothing if the node is not trained and writes no dx. A node whose output is its
 * input's memory costs nothing at all. */
double node_cost(const Node *node)
{
    const Op *op = node->op;
    const OpSpec *s = &node->spec;
    double y = (double)desc_bytes(s->y), forward = y, backward = op->needs_y ? 2 * y : y;
    if (op->y_is_x) return 0;
    for (int k = 0; k < s->x_count; ++k) {
        double x = (double)desc_bytes(s->x[k]);
        forward += x;
        backward += (op->needs_x[k] ? x : 0) + (s->need_dx[k] && !op->dx_is_dy[k] ? x : 0);
    }
    for (int k = 0; k < s->w_count; ++k) {
        double w = (double)op->w_elements[k] * (double)sizeof(float);
        forward += w;
        backward += s->frozen ? w : 2 * w;
    }
    bool trains = op_has_values(s) && !s->frozen;
    for (int k = 0; k < s->x_count; ++k) trains = trains || (s->need_dx[k] && !op->dx_is_dy[k]);
    return roofline_s(op->flops_forward, forward) +
           (trains ? roofline_s(op->flops_backward, backward) : 0);
}

/* Sets closed[i] to true if there can be no boundary before node i, and crossing_bytes[i] to the
 * bytes that would cross a boundary there. Both have node_count + 1 entries. */
static void find_boundaries(const Graph *g, bool *closed, int64_t *crossing_bytes)
{
    size_t n = (size_t)g->node_count + 1;
    int *last = mem_new(n * sizeof *last);
    /* data[i + 1]: node i's output is the data's memory; data[0]: the data itself */
    bool *data = mem_new(n * sizeof *data);
    /* last node that reads an output so far that must not cross a boundary */
    int reach = 0;
    data[0] = true;
    for (int i = 0; i < g->node_count; ++i)
        for (int k = 0; k < g->node[i].spec.x_count; ++k)
            if (g->node[i].in[k] != NODE_INPUT) last[g->node[i].in[k]] = i;
    graph_close_act_boundaries(g, closed);
    for (int i = 0; i < g->node_count; ++i) {
        data[i + 1] = g->node[i].op->y_is_x && data[g->node[i].in[0] - NODE_INPUT];
        bool stays = data[i + 1] || i >= g->logits_node;
        if (stays && last[i] > reach) reach = last[i];
        if (i + 1 <= reach) closed[i + 1] = true;
        if (stays || last[i] <= i) continue;
        crossing_bytes[i + 1] += (int64_t)desc_bytes(g->node[i].spec.y);
        crossing_bytes[last[i] + 1] -= (int64_t)desc_bytes(g->node[i].spec.y);
    }
    for (int i = 1; i <= g->node_count; ++i) crossing_bytes[i] += crossing_bytes[i - 1];
    mem_free(&last);
    mem_free(&data);
}

/* Fills the arrays of a cutter whose graph is set. */
static void cutter_init(Cutter *c)
{
    const Graph *g = c->graph;
    size_t n = (size_t)g->node_count + 1;
    bool *closed = mem_new(n * sizeof *closed);
    int64_t *crossing_bytes = mem_new(n * sizeof *crossing_bytes);
    c->boundary = mem_new(n * sizeof *c->boundary);
    c->cost = mem_new(n * sizeof *c->cost);
    c->bytes = mem_new(n * sizeof *c->bytes);
    find_boundaries(g, closed, crossing_bytes);
    double cost = 0;
    for (int i = 0; i <= g->node_count; ++i) {
        if (!closed[i]) {
            c->boundary[c->pieces] = i;
            c->cost[c->pieces] = cost;
            c->bytes[c->pieces++] = crossing_bytes[i];
        }
        if (i < g->node_count) cost += node_cost(&g->node[i]);
    }
    /* the loop also counted the end of the graph */
    --c->pieces;
    mem_free(&closed);
    mem_free(&crossing_bytes);
}

static void cutter_fini(Cutter *c)
{
    mem_free(&c->boundary);
    mem_free(&c->cost);
    mem_free(&c->bytes);
}

/* Returns the cost of a chunk that consists of pieces `from` to `to` - 1. */
static double chunk_cost(const Cutter *c, int from, int to)
{
    return c->cost[to] - c->cost[from];
}

/* Returns the lowest possible cost of the costliest chunk if the nodes before boundary[to] are cut
 * into `chunks` chunks. before[i]: the same for the nodes before boundary[i] and one chunk less.
 * Let i be the last boundary. As i rises, before[i] rises and the cost of the last chunk falls. So
 * the best i is the first one at which before[i] is at least the cost of the last chunk, or the one
 * before it. */
static double best_bottleneck(const Cutter *c, const double *before, int chunks, int to)
{
    int low = chunks - 1, high = to - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (before[middle] >= chunk_cost(c, middle, to))
            high = middle;
        else
            low = middle + 1;
    }
    double best = larger(before[low], chunk_cost(c, low, to));
    if (low == chunks - 1) return best;
    double other = larger(before[low - 1], chunk_cost(c, low - 1, to));
    return other < best ? other : best;
}

/* Returns the lowest possible cost of the costliest chunk. */
static double bottleneck(const Cutter *c)
{
    size_t n = (size_t)c->pieces + 1;
    double *before = mem_new(n * sizeof *before), *now = mem_new(n * sizeof *now);
    for (int to = 1; to <= c->pieces; ++to) now[to] = chunk_cost(c, 0, to);
    for (int chunks = 2; chunks <= c->chunks; ++chunks) {
        double *swap = before;
        before = now;
        now = swap;
        for (int to = chunks; to <= c->pieces; ++to)
            now[to] = best_bottleneck(c, before, chunks, to);
    }
    double best = now[c->pieces];
    mem_free(&before);
    mem_free(&now);
    return best;
}

static bool is_better(PartialCut a, PartialCut b)
{
    if (b.bytes < 0 || a.bytes != b.bytes) return b.bytes < 0 || a.bytes < b.bytes;
    return a.spread < b.spread;
}

/* Returns the best cut of the nodes before boundary[to] with one more chunk than the cuts in
 * before[low] to before[high], and no chunk that costs more than `limit`. */
static PartialCut extend(const Cutter *c, const PartialCut *before, int low, int high, int to,
                         double limit)
{
    PartialCut best = {.bytes = -1};
    for (int i = to - 1 < high ? to - 1 : high; i >= low; --i) {
        double cost = chunk_cost(c, i, to);
        if (cost > limit) break;
        if (before[i].bytes < 0) continue;
        PartialCut cut = {before[i].bytes + c->bytes[i], before[i].spread + cost * cost, i};
        if (is_better(cut, best)) best = cut;
    }
    return best;
}

/* Sets low[k] and high[k] to the lowest and the highest boundary at which chunk k (counted from 1)
 * can end if no chunk costs more than `limit`. */
static void find_ends(const Cutter *c, double limit, int *low, int *high)
{
    low[c->chunks] = c->pieces;
    for (int chunk = c->chunks; chunk > 0; --chunk) {
        int i = low[chunk] - 1;
        while (i > 0 && chunk_cost(c, i - 1, low[chunk]) <= limit) --i;
        low[chunk - 1] = i > chunk - 1 ? i : chunk - 1;
    }
    high[0] = 0;
    for (int chunk = 1; chunk <= c->chunks; ++chunk) {
        int to = high[chunk - 1] + 1, to_max = c->pieces - (c->chunks - chunk);
        while (to < to_max && chunk_cost(c, high[chunk - 1], to + 1) <= limit) ++to;
        high[chunk] = to;
    }
}

/* Cuts c->graph so that the costliest chunk is as cheap as possible. If several cuts do this,
 * chooses the one with the fewest bytes over its boundaries; if several have equally few bytes, the
 * most even. */
static void cut_by_cost(const Cutter *c, int *first)
{
    size_t row = (size_t)c->pieces + 1, ends = (size_t)c->chunks + 1;
    double limit = bottleneck(c);
    /* cut[k * row + to]: the best cut of the nodes before boundary[to] into k chunks */
    PartialCut *cut = mem_new(ends * row * sizeof *cut);
    int *low = mem_new(ends * sizeof *low), *high = mem_new(ends * sizeof *high);
    find_ends(c, limit, low, high);
    for (int chunk = 1; chunk <= c->chunks; ++chunk)
        for (int to = low[chunk]; to <= high[chunk]; ++to)
            cut[(size_t)chunk * row + (size_t)to] = extend(
                c, cut + (size_t)(chunk - 1) * row, low[chunk - 1], high[chunk - 1], to, limit);
    int at = c->pieces;
    first[c->chunks] = c->graph->node_count;
    for (int chunk = c->chunks; chunk > 0; --chunk) {
        at = cut[(size_t)chunk * row + (size_t)at].from;
        first[chunk - 1] = c->boundary[at];
    }
    mem_free(&cut);
    mem_free(&low);
    mem_free(&high);
}

/* ---- by steps of a rollout ---- */

/* Returns the index of a node in c->boundary; -1: the node cannot begin a chunk or does not
 * exist. */
static int piece_of(const Cutter *c, int node)
{
    for (int i = 0; i < c->pieces; ++i)
        if (c->boundary[i] == node) return i;
    return -1;
}

/* Cuts the first step of a rollout by cost, and every other step before the same layers. With
 * interleaved chunks each stage then has the same layers of all steps, which share their
 * parameters. Returns false if a step cannot be cut like the first step; the array `first` may then
 * have changed. */
static bool cut_by_steps(const Cutter *c, int *first)
{
    const Graph *g = c->graph;
    Cutter one = *c;
    char begins[GRAPH_PREFIX + 8];
    one.chunks = c->chunks / g->steps;
    snprintf(begins, sizeof begins, "step%d.state", 2);
    one.pieces = piece_of(c, graph_find(g, begins));
    if (one.pieces < one.chunks) return false;
    cut_by_cost(&one, first);
    for (int step = 2; step <= g->steps; ++step)
        for (int i = 0; i < one.chunks; ++i) {
            const char *layer = i == 0 ? "state" : g->node[first[i]].name;
            char *name = mem_format("step%d.%s", step, layer);
            const int node = graph_find(g, name);
            mem_free(&name);
            if (piece_of(c, node) < 0) return false;
            first[(step - 1) * one.chunks + i] = node;
        }
    first[c->chunks] = g->node_count;
    return true;
}

/* ---- by names ---- */

static Status unknown_layer_fail(const Cutter *c, const char *name)
{
    const Graph *g = c->graph;
    const char **names = mem_new((size_t)g->node_count * sizeof *names);
    for (int i = 0; i < g->node_count; ++i) names[i] = g->node[i].name;
    const char *near = text_nearest(name, names, g->node_count);
    Status status = config_fail_key(
        c->config, "grid.cuts",
        "no layer is named '%s'%s%s%s; `weft plan` lists the names (a layer that is fused into "
        "another is not listed)",
        name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    mem_free(&names);
    return status;
}

/* Makes the layer called `name` the first one of chunk number `chunk`, counted from 0. */
static Status cut_at(const Cutter *c, const char *name, int chunk, int *first)
{
    int node = graph_find(c->graph, name), i = 0;
    if (node == GRAPH_FAILED) return unknown_layer_fail(c, name);
    if (node <= first[chunk - 1])
        return config_fail_key(c->config, "grid.cuts",
                               "'%s' does not come after '%s': list the layers in their order",
                               name, c->graph->node[first[chunk - 1]].name);
    while (c->boundary[i] < node) ++i;
    if (c->boundary[i] != node)
        return config_fail_key(c->config, "grid.cuts", "'%s' cannot begin a chunk: %s", name,
                               node > c->graph->logits_node
                                   ? "the loss stays with the last layer that it reads"
                                   : "it shares memory with the layer before it");
    first[chunk] = node;
    return OK;
}

static Status cut_by_names(const Cutter *c, int *first)
{
    char *text = mem_text(c->config->grid.cuts), *rest = text;
    Status status = OK;
    int chunk = 1;
    first[0] = 0;
    first[c->chunks] = c->graph->node_count;
    for (char *name; status == OK && (name = strsep(&rest, ",")); ++chunk)
        if (chunk < c->chunks) status = cut_at(c, name, chunk, first);
    if (status == OK && chunk != c->chunks)
        status = config_fail_key(c->config, "grid.cuts",
                                 "names %d layer%s, but %d chunks (grid.pp x grid.chunks) need %d",
                                 chunk - 1, chunk == 2 ? "" : "s", c->chunks, c->chunks - 1);
    mem_free(&text);
    return status;
}

static Status check_chunk_count(const Cutter *c)
{
    if (c->chunks <= c->pieces) return OK;
    return config_fail_key(
        c->config, "grid.pp",
        "%d chunks (grid.pp x grid.chunks) are more than the %d layer%s that the "
        "model can be cut into",
        c->chunks, c->pieces, c->pieces == 1 ? "" : "s");
}

Status graph_check_cut(const Graph *graph, const Config *config, int chunks)
{
    Cutter c = {.graph = graph, .config = config, .chunks = chunks};
    cutter_init(&c);
    Status status = check_chunk_count(&c);
    cutter_fini(&c);
    return status;
}

Status graph_partition(const Graph *graph, const Config *config, int chunks, int *first)
{
    if (chunks < 1) return fail(ERR_BUG, "a model cut into %d chunks", chunks);
    for (int i = 0; i < graph->node_count; ++i)
        if (!graph->node[i].op) return fail(ERR_BUG, "graph_partition comes after graph_plan");
    Cutter c = {.graph = graph, .config = config, .chunks = chunks};
    cutter_init(&c);
    Status status = check_chunk_count(&c);
    if (status == OK && config->grid.cuts && *config->grid.cuts)
        status = cut_by_names(&c, first);
    else if (status == OK &&
             (graph->steps <= 1 || chunks % graph->steps || !cut_by_steps(&c, first)))
        cut_by_cost(&c, first);
    cutter_fini(&c);
    return status;
}
