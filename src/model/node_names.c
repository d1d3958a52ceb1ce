/* Finds nodes by name with a hash table, because each new name must differ from the names of all
 * earlier nodes, of which there may be thousands. */
#include "build.h"

#include <string.h>

/* Returns the slot of the first node with this name, or the empty slot where it belongs. */
static int find_slot(const NodeNames *names, const Node *node, const char *name)
{
    int at = (int)(hash_text(name) & (uint64_t)(names->slots - 1));
    while (names->slot[at] && strcmp(node[names->slot[at] - 1].name, name) != 0)
        at = (at + 1) & (names->slots - 1);
    return at;
}

int names_find(const NodeNames *names, const Node *node, const char *name)
{
    int found = names->slots ? names->slot[find_slot(names, node, name)] : 0;
    return found ? found - 1 : GRAPH_FAILED;
}

static void grow(NodeNames *names, const Node *node)
{
    const NodeNames old = *names;
    names->slots = old.slots ? 2 * old.slots : 64;
    names->slot = mem_new((size_t)names->slots * sizeof *names->slot);
    for (int i = 0; i < old.slots; ++i)
        if (old.slot[i])
            names->slot[find_slot(names, node, node[old.slot[i] - 1].name)] = old.slot[i];
    mem_free(&(int *){old.slot});
}

void names_add(NodeNames *names, const Node *node, int index)
{
    if (2 * (names->count + 1) > names->slots) grow(names, node);
    int at = find_slot(names, node, node[index].name);
    if (names->slot[at]) return;
    names->slot[at] = index + 1;
    ++names->count;
}

void names_fini(NodeNames *names)
{
    mem_free(&names->slot);
    *names = (NodeNames){0};
}

void graph_index_names(Graph *graph)
{
    names_fini(&graph->names);
    for (int i = 0; i < graph->node_count; ++i) names_add(&graph->names, graph->node, i);
}
