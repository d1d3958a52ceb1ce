/* List of the cuDNN plans of one backend, shared by operations with the same graph. cuDNN takes
 * milliseconds to make a plan, and seconds where it compiles one. */
#include "cudnn_graph.h"

#include <string.h>

struct KeptPlan {
    /* key of this entry; its two tables are owned */
    DnnGraph graph;
    DnnPlan plan;
    bool works;
    /* reason why cuDNN has no plan; set where `works` is false */
    char why[256];
    KeptPlan *next;
};

static bool same_tensor(const DnnTensor *a, const DnnTensor *b)
{
    return a->type == b->type && a->place == b->place &&
           memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

static bool same_node(const DnnNode *a, const DnnNode *b)
{
    return a->kind == b->kind && a->mode == b->mode && a->y == b->y && a->axis == b->axis &&
           a->add == b->add && memcmp(a->in, b->in, sizeof a->in) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           memcmp(a->pad, b->pad, sizeof a->pad) == 0;
}

static bool same_graph(const DnnGraph *a, const DnnGraph *b)
{
    bool same = a->tensors == b->tensors && a->nodes == b->nodes && a->whole == b->whole;
    for (int i = 1; same && i < a->tensors; ++i) same = same_tensor(&a->tensor[i], &b->tensor[i]);
    for (int i = 0; same && i < a->nodes; ++i) same = same_node(&a->node[i], &b->node[i]);
    return same;
}

static void *copied(const void *from, size_t bytes)
{
    return memcpy(mem_new(bytes), from, bytes);
}

static KeptPlan *make(CudaState *state, const DnnGraph *graph)
{
    KeptPlan *kept = mem_new(sizeof *kept);
    kept->graph = *graph;
    kept->graph.tensor = copied(graph->tensor, (size_t)graph->tensors * sizeof *graph->tensor);
    kept->graph.node = copied(graph->node, (size_t)graph->nodes * sizeof *graph->node);
    kept->works = dnn_plan(&kept->plan, graph, cudnn_target(state), kept->why);
    kept->next = state->kept;
    return state->kept = kept;
}

const DnnPlan *dnn_kept(CudaState *state, const DnnGraph *graph, char why[256])
{
    KeptPlan *kept = state->kept;
    while (kept && !same_graph(&kept->graph, graph)) kept = kept->next;
    if (!kept) kept = make(state, graph);
    if (!kept->works) memcpy(why, kept->why, sizeof kept->why);
    return kept->works ? &kept->plan : NULL;
}

void dnn_close(CudaState *state)
{
    while (state->kept) {
        KeptPlan *kept = state->kept;
        state->kept = kept->next;
        dnn_fini(&kept->plan);
        mem_free(&kept->graph.tensor);
        mem_free(&kept->graph.node);
        mem_free(&kept);
    }
}
