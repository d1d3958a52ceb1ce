/* Finds the tensors that cross a boundary between chunks. Forward: every output that a node after
 * the boundary reads, including skip connections over several boundaries. Backward: the gradients
 * of those outputs that need a gradient. Both sides of a boundary compute the same message without
 * communication. */
#include "plan.h"

enum { MESSAGE_ALIGN = 64 };

static size_t padded(size_t bytes)
{
    return (bytes + MESSAGE_ALIGN - 1) / MESSAGE_ALIGN * MESSAGE_ALIGN;
}

static void message_add(Message *message, const Graph *graph, int node)
{
    size_t bytes = desc_bytes(graph->node[node].op->spec.y);
    message->tensor =
        mem_resize(message->tensor, (size_t)(message->count + 1) * sizeof *message->tensor);
    message->tensor[message->count++] =
        (BoundaryTensor){.node = node, .offset = OFFSET_NONE, .at = message->bytes, .bytes = bytes};
    message->bytes += padded(bytes);
}

/* Fills *message with the outputs of nodes before `boundary` that later nodes read. gradients =
 * true: only with the outputs for which a later node computes a gradient. */
static void cross(Message *message, const Graph *graph, int boundary, bool gradients)
{
    bool *crosses = mem_new((size_t)(boundary + 1) * sizeof *crosses);
    *message = (Message){0};
    for (int i = boundary; i < graph->node_count; ++i) {
        const Node *node = &graph->node[i];
        for (int k = 0; k < node->spec.x_count; ++k)
            if (node->in[k] >= 0 && node->in[k] < boundary && (!gradients || node->spec.need_dx[k]))
                crosses[node->in[k]] = true;
    }
    for (int v = 0; v < boundary; ++v)
        if (crosses[v]) message_add(message, graph, v);
    mem_free(&crosses);
}

void boundary_activations(Message *message, const Graph *graph, int boundary)
{
    cross(message, graph, boundary, false);
}

void boundary_gradients(Message *message, const Graph *graph, int boundary)
{
    cross(message, graph, boundary, true);
}

size_t *boundary_singles(const Graph *graph)
{
    size_t n = (size_t)graph->node_count + 1, *bytes = mem_new(n * sizeof *bytes);
    int *count = mem_new(n * sizeof *count), *last = mem_new(n * sizeof *last);
    bool *closed = mem_new(n * sizeof *closed);
    for (int i = 0; i < graph->node_count; ++i)
        for (int k = 0; k < graph->node[i].spec.x_count; ++k)
            if (graph->node[i].in[k] >= 0) last[graph->node[i].in[k]] = i;
    /* until the running sums below, count[i] and bytes[i] are the changes from boundary i - 1 to
     * boundary i */
    for (int i = 0; i < graph->node_count; ++i) {
        if (last[i] == 0) continue;
        size_t more = padded(desc_bytes(graph->node[i].op->spec.y));
        ++count[i + 1];
        --count[last[i] + 1];
        bytes[i + 1] += more;
        bytes[last[i] + 1] -= more;
    }
    graph_close_act_boundaries(graph, closed);
    for (size_t i = 1; i < n; ++i) {
        count[i] += count[i - 1];
        bytes[i] += bytes[i - 1];
    }
    for (size_t i = 0; i < n; ++i)
        if (count[i] != 1 || closed[i]) bytes[i] = 0;
    mem_free(&count);
    mem_free(&last);
    mem_free(&closed);
    return bytes;
}
