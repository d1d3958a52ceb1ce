/* What crosses a border between chunks: forward, every output that a node behind the border reads, a skip connection over
 * several borders included; backward, the gradients of those for which somebody wants one. Both sides of a border come to
 * the same message by themselves. */
#include "plan_internal.h"

enum { MESSAGE_ALIGN = 64 };

static void message_add(Message *message, const Graph *graph, int node)
{
    size_t bytes = desc_bytes(graph->node[node].op->spec.y);
    message->crossing =
        mem_resize(message->crossing, (size_t)(message->count + 1) * sizeof *message->crossing);
    message->crossing[message->count++] =
        (Crossing){.node = node, .place = PLACE_NONE, .at = message->bytes, .bytes = bytes};
    message->bytes += (bytes + MESSAGE_ALIGN - 1) / MESSAGE_ALIGN * MESSAGE_ALIGN;
}

static void cross(Message *message, const Graph *graph, int border, bool gradients)
{
    bool *crosses = mem_new((size_t)(border + 1) * sizeof *crosses);
    *message = (Message){0};
    for (int i = border; i < graph->node_count; ++i) {
        const Node *node = &graph->node[i];
        for (int k = 0; k < node->spec.x_count; ++k)
            if (node->in[k] >= 0 && node->in[k] < border && (!gradients || node->spec.need_dx[k]))
                crosses[node->in[k]] = true;
    }
    for (int v = 0; v < border; ++v)
        if (crosses[v]) message_add(message, graph, v);
    mem_free(&crosses);
}

void crossing_values(Message *message, const Graph *graph, int border)
{
    cross(message, graph, border, false);
}

void crossing_gradients(Message *message, const Graph *graph, int border)
{
    cross(message, graph, border, true);
}
