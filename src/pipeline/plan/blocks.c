/* Chooses which activations are recomputed instead of kept (Chen et al. 2016). A block begins at
 * the start of a chunk or at the end of another block, and ends at a place that only one tensor
 * crosses. It is chosen only if its tensors are several times as large as the tensor that crosses
 * its end: then only that tensor is kept, and the block is computed twice. The end of the model is
 * never chosen, because backward needs its activations at once. The choice depends only on the
 * sizes of tensors in bytes; these depend on the number format and the layout, too. */
#include "plan.h"

/* least total size of a block's tensors, divided by the size of the tensor that crosses its end */
enum { BLOCK_RATIO_LEAST = 4 };

/* Sets block[i] for each node i of a chunk, `first` to `last` - 1, to the number of the node's
 * block in the chunk, or -1. single[i]: bytes of the only tensor that crosses the boundary before
 * node i; 0: there is no such tensor (boundary_singles). */
static void find_blocks(const Graph *graph, int first, int last, const size_t *single, int *block)
{
    int begin = first, number = 0;
    size_t inside = 0;
    for (int i = first; i < last; ++i) {
        const Op *op = graph->node[i].op;
        block[i] = -1;
        inside += desc_bytes(op->spec.y) + op->saved_bytes;
        size_t crosses = i + 1 < graph->loss_node ? single[i + 1] : 0;
        if (crosses == 0 || inside < BLOCK_RATIO_LEAST * crosses) continue;
        for (int k = begin; k <= i; ++k) block[k] = number;
        ++number;
        begin = i + 1;
        inside = 0;
    }
}

int *graph_blocks(const Graph *graph, const int *first, int chunks)
{
    int *block = mem_new((size_t)graph->node_count * sizeof *block);
    size_t *single = boundary_singles(graph);
    for (int c = 0; c < chunks; ++c) find_blocks(graph, first[c], first[c + 1], single, block);
    mem_free(&single);
    return block;
}
