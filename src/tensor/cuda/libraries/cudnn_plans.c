/* The list of a backend's plans of cuDNN. Operations with the same graph share a plan: cuDNN needs
 * milliseconds to make a plan, and seconds if it compiles kernels for it. */
#include "cudnn_graph.h"

#include <string.h>

struct SharedPlan {
    /* the graph, which is the key of this entry; its two tables are owned */
    DnnGraph graph;
    DnnPlan plan;
    /* true: cuDNN has a plan; false: `why` gives the reason */
    bool works;
    char why[256];
    /* next entry of CudaState.plans; owned */
    SharedPlan *next;
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
    bool same =
        a->tensors == b->tensors && a->nodes == b->nodes && a->full_precision == b->full_precision;
    for (int i = 1; same && i < a->tensors; ++i) same = same_tensor(&a->tensor[i], &b->tensor[i]);
    for (int i = 0; same && i < a->nodes; ++i) same = same_node(&a->node[i], &b->node[i]);
    return same;
}

static void *new_copy(const void *from, size_t bytes)
{
    return memcpy(mem_new(bytes), from, bytes);
}

static SharedPlan *add_plan(CudaState *state, const DnnGraph *graph)
{
    SharedPlan *shared = mem_new(sizeof *shared);
    shared->graph = *graph;
    shared->graph.tensor = new_copy(graph->tensor, (size_t)graph->tensors * sizeof *graph->tensor);
    shared->graph.node = new_copy(graph->node, (size_t)graph->nodes * sizeof *graph->node);
    shared->works = dnn_plan(&shared->plan, graph, cudnn_target(state), shared->why);
    shared->next = state->plans;
    return state->plans = shared;
}

const DnnPlan *dnn_shared_plan(CudaState *state, const DnnGraph *graph, char why[256])
{
    SharedPlan *shared = state->plans;
    while (shared && !same_graph(&shared->graph, graph)) shared = shared->next;
    if (!shared) shared = add_plan(state, graph);
    if (!shared->works) memcpy(why, shared->why, sizeof shared->why);
    return shared->works ? &shared->plan : NULL;
}

void dnn_free_plans(CudaState *state)
{
    while (state->plans) {
        SharedPlan *shared = state->plans;
        state->plans = shared->next;
        dnn_fini(&shared->plan);
        mem_free(&shared->graph.tensor);
        mem_free(&shared->graph.node);
        mem_free(&shared);
    }
}
