/* Prints the table of layers, then counts, tables, ties and kernels, for `weft plan`. */
#include "build.h"

#include <string.h>

enum { CELL_BYTES = 64 };

/* Writes the node's kind and the operations that were fused into it, "batch_norm+add+relu", to
 * `out`. */
static char *kind_text(const Node *node, char *out)
{
    const char *act = node_info(node)->fuse != FUSE_ACT ? act_name(node->spec.act) : "";
    snprintf(out, CELL_BYTES, "%s%s%s%s", node->kind ? node->kind->name : "reorder",
             node->spec.residual ? "+add" : "", *act ? "+" : "", act);
    return out;
}

/* Writes the layout of the node's output, such as "blocks of 16", to `out`; "-" if the graph is not
 * planned. */
static char *layout_text(const Node *node, char *out)
{
    Desc y = node->spec.y;
    Shape image = y.flat ? y.image : y.shape;
    if (!node->op)
        snprintf(out, CELL_BYTES, "-");
    else if (desc_is_plain(y))
        snprintf(out, CELL_BYTES, "plain");
    else if (image.ndim != 4)
        snprintf(out, CELL_BYTES, "rows of %lld", (long long)desc_row_stride(y));
    else if (y.block >= image.dim[1])
        snprintf(out, CELL_BYTES, "%schannels last", y.flat ? "flat, " : "");
    else
        snprintf(out, CELL_BYTES, "%sblocks of %d", y.flat ? "flat, " : "", y.block);
    return out;
}

/* Writes a number with commas, "11,689,512", to `out`. */
static char *with_commas(int64_t n, char *out)
{
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)n), o = 0;
    for (size_t i = 0; i < length; ++i) {
        if (i && (length - i) % 3 == 0) out[o++] = ',';
        out[o++] = digits[i];
    }
    out[o] = '\0';
    return out;
}

/* Writes the number of values in the node's parameters or tables to `out`. Adds "tied" if a
 * parameter is tied to an earlier one (its values are not counted), "grows" if a table gets a row
 * for each new id, and "frozen" if nothing of the node is trained. */
static char *trained_text(const Graph *graph, const Node *node, char *out)
{
    int64_t n = 0;
    bool tied = false;
    for (int i = 0; i < node->spec.w_count; ++i) {
        const Param *p = &graph->param[node->param[i]];
        tied = tied || p->tied_param >= 0;
        if (!p->info.is_statistic && p->tied_param < 0) n += shape_count(p->shape);
    }
    bool grows = false;
    for (int i = 0; node_info(node)->reads == READS_IDS && i < graph->table_count; ++i) {
        const SparseTable *t = &graph->table[i];
        if (&graph->node[t->node] != node) continue;
        n += (int64_t)t->rows * t->width;
        grows = grows || t->rows == 0;
    }
    *out = '\0';
    if (n) with_commas(n, out);
    if (grows) strcat(out, "grows");
    if (tied) strcat(out, n ? ", tied" : "tied");
    if (n && !node_is_trained(graph, node)) strcat(out, " frozen");
    return out;
}

/* Returns the width of the column "parameters". */
static int params_width(const Graph *graph)
{
    /* FROZEN has room for the word " frozen" */
    enum { PLAIN = 12, FROZEN = 18 };
    bool frozen = graph_trained_elements(graph) < graph_param_elements(graph) ||
                  graph_table_value_count(graph, true) > 0;
    return frozen ? FROZEN : PLAIN;
}

static void print_node(const Graph *graph, const Node *node, int name_width, int count_width,
                       const char *mark, FILE *out)
{
    char kind[CELL_BYTES], shape[CELL_BYTES], layout[CELL_BYTES], count[CELL_BYTES],
        flops[CELL_BYTES] = "";
    double macs = node_macs(node) / (double)graph->input.shape.dim[0];
    if (macs > 0) snprintf(flops, sizeof flops, "%.2f", 2e-6 * macs);
    fprintf(out, "%-*s  %-20s  %-16s  %-19s  %*s  %10s%s%s\n", name_width, node->name,
            kind_text(node, kind), shape_text(node->spec.y.shape, shape), layout_text(node, layout),
            count_width, trained_text(graph, node, count), flops, mark ? "  " : "",
            mark ? mark : "");
}

/* Prints the kernels that operations chose. Successive operations with the same choice are one
 * line. */
static void print_kernels(const Graph *graph, FILE *out)
{
    const char *last = "";
    for (int i = 0; i < graph->node_count; ++i) {
        const Op *op = graph->node[i].op;
        if (!op || !op->kernels || strcmp(op->kernels, last) == 0) continue;
        last = op->kernels;
        fprintf(out, "%s by %s\n", op->table->name, last);
    }
}

/* Prints the tables. The tables of one bag are one line, because they have the same number of
 * rows. */
static void print_tables(const Graph *graph, FILE *out)
{
    char rows[CELL_BYTES];
    for (int i = 0; i < graph->table_count; ++i) {
        const SparseTable *t = &graph->table[i];
        const OpSpec *s = &graph->node[t->node].spec;
        if (t->field > 0) continue;
        bool table_per_field = t->field == 0 && s->bag_fields > 1;
        fprintf(out, "table%s %s", table_per_field ? "s" : "", t->name);
        if (table_per_field) fprintf(out, " to .%d", s->bag_fields - 1);
        if (t->rows)
            fprintf(out, ": %s rows x %d%s", with_commas((int64_t)t->rows, rows), t->width,
                    t->hashed ? ", ids hashed" : "");
        else
            fprintf(out, ": one row per id x %d", t->width);
        fprintf(out, ", fields %d to %d of the data%s\n", s->bag_first,
                s->bag_first + s->bag_fields - 1, table_per_field ? ", a table each" : "");
    }
}

/* Prints the number of trained parameters, how many of them are in tables, and the number of frozen
 * parameters. */
static void print_counts(const Graph *graph, FILE *out)
{
    char count[CELL_BYTES], part[CELL_BYTES];
    int64_t tables = graph_table_value_count(graph, false),
            frozen_tables = graph_table_value_count(graph, true);
    int64_t trained = graph_trained_elements(graph);
    int64_t frozen = graph_param_elements(graph) - trained + frozen_tables;
    bool grows = false;
    for (int i = 0; i < graph->table_count; ++i) grows = grows || graph->table[i].rows == 0;
    fprintf(out, "%s trained parameters", with_commas(trained + tables, count));
    if (tables) fprintf(out, ", %s of them in tables", with_commas(tables, part));
    if (grows) fprintf(out, ", and a table row for each new id");
    if (frozen) fprintf(out, ", frozen: %s", with_commas(frozen, part));
}

/* Prints each OpInfo.macs_note of the graph's operations once. */
static void print_macs_notes(const Graph *graph, FILE *out)
{
    for (int i = 0; i < graph->node_count; ++i) {
        const char *note = node_info(&graph->node[i])->macs_note;
        int same = 0;
        while (same < i && node_info(&graph->node[same])->macs_note != note) ++same;
        if (note && same == i) fprintf(out, ", %s", note);
    }
}

void graph_print(const Graph *graph, FILE *out)
{
    graph_print_marked(graph, NULL, NULL, out);
}

void graph_print_marked(const Graph *graph, const char *title, const char *const *mark, FILE *out)
{
    int width = (int)strlen("layer"), count_width = params_width(graph);
    for (int i = 0; i < graph->node_count; ++i)
        if ((int)strlen(graph->node[i].name) > width) width = (int)strlen(graph->node[i].name);
    fprintf(out, "%-*s  %-20s  %-16s  %-19s  %*s  %10s%s%s\n", width, "layer", "kind", "output",
            "layout", count_width, "parameters", "MFLOP", mark ? "  " : "", mark ? title : "");
    for (int i = 0; i < graph->node_count; ++i)
        print_node(graph, &graph->node[i], width, count_width, mark ? mark[i] : NULL, out);
    print_counts(graph, out);
    fprintf(out, "; %.2f MFLOP forward for one sample (convolutions and dense layers",
            2e-6 * graph_sample_macs(graph));
    print_macs_notes(graph, out);
    fprintf(out, ")\n");
    print_tables(graph, out);
    for (int i = 0; i < graph->param_count; ++i)
        if (graph->param[i].tied_param >= 0)
            fprintf(out, "%s is tied to %s: they share one value\n", graph->param[i].name,
                    graph->param[graph->param[i].tied_param].name);
    print_kernels(graph, out);
}
