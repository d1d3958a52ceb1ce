/* Index of nodes by name. A model may have many thousands of nodes, and each new name is compared
 * with all earlier ones. */
#include "build.h"

#include <string.h>

/* Returns the place of the first node with this name, or the empty place where it belongs. */
static int find_place(const NodeNames *names, const Node *node, const char *name)
{
    int at = (int)(hash_text(name) & (uint64_t)(names->places - 1));
    while (names->place[at] && strcmp(node[names->place[at] - 1].name, name) != 0)
        at = (at + 1) & (names->places - 1);
    return at;
}

int names_find(const NodeNames *names, const Node *node, const char *name)
{
    int found = names->places ? names->place[find_place(names, node, name)] : 0;
    return found ? found - 1 : GRAPH_FAILED;
}

static void grow(NodeNames *names, const Node *node)
{
    const NodeNames old = *names;
    names->places = old.places ? 2 * old.places : 64;
    names->place = mem_new((size_t)names->places * sizeof *names->place);
    for (int i = 0; i < old.places; ++i)
        if (old.place[i])
            names->place[find_place(names, node, node[old.place[i] - 1].name)] = old.place[i];
    mem_free(&(int *){old.place});
}

void names_add(NodeNames *names, const Node *node, int index)
{
    if (2 * (names->count + 1) > names->places) grow(names, node);
    int at = find_place(names, node, node[index].name);
    if (names->place[at]) return;
    names->place[at] = index + 1;
    ++names->count;
}

void names_fini(NodeNames *names)
{
    mem_free(&names->place);
    *names = (NodeNames){0};
}

void graph_name_nodes(Graph *graph)
{
    names_fini(&graph->names);
    for (int i = 0; i < graph->node_count; ++i) names_add(&graph->names, graph->node, i);
}
