/* What crosses a boundary between chunks: forward, every output that a node behind the boundary
 * reads, a skip connection over several boundaries included; backward, the gradients of those for
 * which somebody wants one. Both sides of a boundary come to the same message by themselves. */
#include "plan.h"

enum { MESSAGE_ALIGN = 64 };

static void message_add(Message *message, const Graph *graph, int node)
{
    size_t bytes = desc_bytes(graph->node[node].op->spec.y);
    message->tensor =
        mem_resize(message->tensor, (size_t)(message->count + 1) * sizeof *message->tensor);
    message->tensor[message->count++] =
        (BoundaryTensor){.node = node, .offset = OFFSET_NONE, .at = message->bytes, .bytes = bytes};
    message->bytes += (bytes + MESSAGE_ALIGN - 1) / MESSAGE_ALIGN * MESSAGE_ALIGN;
}

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
