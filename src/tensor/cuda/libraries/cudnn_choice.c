/* Chooses cuDNN's engine for a graph: the recorded engine; if none is recorded, the fastest by time
 * if cuda_times_algorithms returns true; otherwise cuDNN's first choice. Engines are recorded and
 * timed only if the backend has a record of algorithms. If the recorded engine fails, its key is
 * marked (algorithm_record_reject), and cuDNN's first choice is used. */
#include "cudnn_graph.h"
#include "timing.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* largest number of plans that are timed for a graph; few, because cuDNN needs seconds to
     * compile some plans */
    CANDIDATES_MAX = 6,
    KEY_TEXT = 240,
};
/* limit for the workspace of a candidate, in bytes; if the first candidate needs more, its
 * workspace is the limit */
static const size_t WORKSPACE_MAX = (size_t)256 << 20;

/* ---- a graph's key ---- */

static uint64_t hash_node(const DnnNode *n, uint64_t hash)
{
    const int64_t number[] = {(int64_t)hash, n->kind,   n->mode,  n->y,   n->in[0],
                              n->in[1],      n->in[2],  n->axis,  n->add, n->stride[0],
                              n->stride[1],  n->pad[0], n->pad[1]};
    return hash_bytes(number, sizeof number);
}

static uint64_t hash_tensor(const DnnTensor *t, uint64_t hash)
{
    const int64_t number[] = {(int64_t)hash, t->type,      t->place,    t->dim[0],
                              t->dim[1],     t->dim[2],    t->dim[3],   t->stride[0],
                              t->stride[1],  t->stride[2], t->stride[3]};
    return hash_bytes(number, sizeof number);
}

static const char *type_name(cudnnDataType_t type)
{
    return type == CUDNN_DATA_BFLOAT16 ? "bf16" : type == CUDNN_DATA_HALF ? "fp16" : "fp32";
}

/* Writes the numbers of the tensors that the graph's operations use, without virtual tensors, to
 * `uid` in ascending order, at most TIMED_BUFFERS. Returns their number. */
static int list_tensors(const DnnGraph *graph, int64_t uid[TIMED_BUFFERS])
{
    int count = 0;
    for (int t = 1; t < graph->tensors; ++t) {
        bool used = false;
        for (int n = 0; n < graph->nodes; ++n) {
            const DnnNode *node = &graph->node[n];
            used = used || node->y == t;
            for (int i = 0; i < 3; ++i) used = used || node->in[i] == t;
        }
        if (used && graph->tensor[t].place != DNN_VIRTUAL && count < TIMED_BUFFERS)
            uid[count++] = t;
    }
    return count;
}

/* Writes to `key` the key that the graph has in the record of algorithms: the first operation, its
 * type, the sizes of its inputs and of its output, the number of operations, and a hash of the
 * complete graph:
 *     cudnn conv bf16 32x64x56x56 64x64x3x3 32x64x56x56 1 of 1f0a... */
static void graph_key(char key[KEY_TEXT], const DnnGraph *graph)
{
    static const char *const kind[] = {
        [DNN_POINTWISE] = "pointwise",    [DNN_MATMUL] = "matmul", [DNN_REDUCE] = "reduce",
        [DNN_RESHAPE] = "reshape",        [DNN_CONV] = "conv",     [DNN_CONV_DATA] = "conv_data",
        [DNN_CONV_WEIGHT] = "conv_weight"};
    const DnnNode *first = &graph->node[0];
    const int tensor[] = {first->in[0], first->in[1], first->y};
    uint64_t hash = graph->full_precision;
    for (int i = 1; i < graph->tensors; ++i) hash = hash_tensor(&graph->tensor[i], hash);
    for (int i = 0; i < graph->nodes; ++i) hash = hash_node(&graph->node[i], hash);
    int at = snprintf(key, KEY_TEXT, "cudnn %s %s", kind[first->kind],
                      type_name(graph->tensor[first->in[0]].type));
    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; ++i) {
        const int64_t *d = graph->tensor[tensor[i]].dim;
        at += snprintf(key + at, (size_t)(KEY_TEXT - at),
                       " %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, d[0], d[1], d[2], d[3]);
    }
    snprintf(key + at, (size_t)(KEY_TEXT - at), " %d of %016" PRIx64, graph->nodes, hash);
}

/* ---- timing ---- */

static size_t tensor_bytes(const DnnTensor *t)
{
    int64_t last = 0;
    for (int d = 0; d < 4; ++d) last += (t->dim[d] - 1) * t->stride[d];
    size_t size = t->type == CUDNN_DATA_BFLOAT16 || t->type == CUDNN_DATA_HALF ? 2 : 4;
    return (size_t)(last + 1) * size;
}

/* The candidates of a graph, and the buffers with which they are timed. All pointers are
 * borrowed. */
typedef struct Trial {
    const CudaState *state;
    const DnnCandidate *candidate;
    /* number of tensors */
    int count;
    /* number of each tensor in the graph, [count] */
    int64_t uid[TIMED_BUFFERS];
    /* address of each tensor, [count] */
    void *at[TIMED_BUFFERS];
    void *workspace;
} Trial;

static bool try_candidate(void *user, int i)
{
    Trial *trial = user;
    return dnn_execute(trial->candidate[i].plan, trial->state->dnn, trial->count, trial->uid,
                       trial->at, trial->workspace) == CUDNN_STATUS_SUCCESS;
}

/* Removes candidates whose workspace is too large, and returns how many remain. Sets *workspace to
 * the largest workspace of a remaining candidate, in bytes. */
static int drop_large_workspaces(DnnCandidate *candidate, int count, size_t *workspace)
{
    int left = 0;
    size_t limit = count > 0 ? candidate[0].workspace_bytes : 0;
    if (limit < WORKSPACE_MAX) limit = WORKSPACE_MAX;
    *workspace = 0;
    for (int i = 0; i < count; ++i) {
        if (candidate[i].workspace_bytes > limit) continue;
        if (candidate[i].workspace_bytes > *workspace) *workspace = candidate[i].workspace_bytes;
        candidate[left++] = candidate[i];
    }
    return left;
}

/* Returns the index of the fastest candidate. Returns 0, cuDNN's first choice, if there are fewer
 * than two candidates, if the graph has too many tensors, or if the GPU has too little memory to
 * time them. */
static int time_candidates(CudaState *state, const DnnGraph *graph, const DnnCandidate *candidate,
                           int count, size_t workspace)
{
    static float one = 1;
    size_t bytes[TIMED_BUFFERS];
    TimedMemory memory;
    Trial trial = {.state = state, .candidate = candidate};
    trial.count = list_tensors(graph, trial.uid);
    if (count < 2 || trial.count >= TIMED_BUFFERS) return 0;
    for (int i = 0; i < trial.count; ++i) {
        const DnnTensor *t = &graph->tensor[trial.uid[i]];
        bytes[i] = t->place == DNN_VALUE ? 0 : tensor_bytes(t);
    }
    bytes[trial.count] = workspace;
    if (!timed_memory_init(&memory, state, bytes, trial.count + 1)) {
        log_warn("train.cuda_tune: the GPU lacks the memory to time cuDNN's engines for an "
                 "operation: cuDNN's first choice is used");
        return 0;
    }
    for (int i = 0; i < trial.count; ++i)
        trial.at[i] =
            graph->tensor[trial.uid[i]].place == DNN_VALUE ? (void *)&one : memory.buffer[i];
    trial.workspace = memory.buffer[trial.count];
    int fastest = find_fastest(state, count, try_candidate, &trial);
    timed_memory_fini(&memory);
    return fastest;
}

/* Writes the text of the fastest engine to `engine`. Returns false if cuDNN has no candidate. */
static bool find_fastest_engine(const DnnGraph *graph, DnnTarget target,
                                char engine[DNN_ENGINE_TEXT])
{
    DnnPlan all;
    DnnCandidate *candidate = mem_new(CANDIDATES_MAX * sizeof *candidate);
    size_t workspace;
    int count = dnn_candidates(&all, graph, target, candidate, CANDIDATES_MAX);
    count = drop_large_workspaces(candidate, count, &workspace);
    if (count > 0) {
        int fastest = time_candidates(target.state, graph, candidate, count, workspace);
        snprintf(engine, DNN_ENGINE_TEXT, "%s", candidate[fastest].engine);
    }
    dnn_fini(&all);
    mem_free(&candidate);
    return count > 0;
}

bool dnn_plan(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, char why[256])
{
    char key[KEY_TEXT], engine[DNN_ENGINE_TEXT];
    AlgorithmRecord *record = target.state ? cuda_algorithm_record(target.state) : NULL;
    if (!record) return dnn_make(plan, graph, target, NULL, why);
    graph_key(key, graph);
    const char *recorded = algorithm_record_find(record, key);
    if (recorded) {
        if (dnn_make(plan, graph, target, recorded, why)) return true;
        algorithm_record_reject(record, key);
        dnn_fini(plan);
    }
    bool timed = !recorded && cuda_times_algorithms(target.state) &&
                 find_fastest_engine(graph, target, engine);
    bool made = dnn_make(plan, graph, target, timed ? engine : NULL, why);
    if (made && !recorded) algorithm_record_set(record, key, plan->engine);
    return made;
}
