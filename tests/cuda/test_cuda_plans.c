/* Tests that the real cuDNN plans the graphs of attention and convolutions, for models of GPUs that
 * this machine lacks. cuDNN finds a deterministic engine for each graph, compiles the kernel and
 * reports the workspace. The kernels do not run, since that needs a GPU. */
#include "harness.h"
#include "tensor/op_list.h"
#include "tensor/cuda/attention/cudnn_attention.h"

/* Opens cuDNN for a model of GPU that this machine lacks. If this cuDNN does not support that,
 * prints the reason and returns false. */
static bool ready(CudaState *state, const char *model)
{
    *state = (CudaState){.device = -1};
    CU_ASSERT_EQUAL_FATAL(gpu_model_find(&state->gpu_model, model), OK);
    if (cudnn_open(state) != OK) {
        printf("  skipped: %s\n", fail_message());
        return false;
    }
    if (cudnn.get_version() >= CUDNN_ATTENTION_OLDEST) return true;
    printf("  skipped: cuDNN %zu is older than %d\n", cudnn.get_version(), CUDNN_ATTENTION_OLDEST);
    cudnn_close(state);
    return false;
}

static void check_plans(const char *model, AttentionShape shape)
{
    CudaState state;
    CudnnAttention f;
    if (!ready(&state, model)) return;
    shape.samples = cudnn_attention_group(shape);
    bool served = cudnn_attention_init(&f, shape, cudnn_target(&state));
    CU_ASSERT_TRUE(served);
    printf("  %s: %s, %lld samples x %lld positions, %lld heads of %lld%s: ", model,
           shape.fp16 ? "fp16" : "bf16", (long long)shape.samples, (long long)shape.length,
           (long long)shape.heads, (long long)shape.width, shape.rotated ? ", rotated" : "");
    if (served) {
        printf("workspaces %zu and %zu bytes\n", f.forward.workspace_bytes,
               f.backward.workspace_bytes);
        CU_ASSERT_TRUE(cudnn_attention_workspace_bytes(&f) <=
                       cudnn_attention_expected_workspace_bytes(shape));
    } else {
        printf("%s\n", f.reason);
    }
    cudnn_attention_fini(&f);
    cudnn_close(&state);
}

static void test_shapes(void)
{
    static const AttentionShape shapes[] = {
        /* shapes of gpt2-124m */
        {32, 1024, 12, 64, false, false}, {32, 1024, 12, 64, true, false},
        {64, 1024, 12, 64, false, false}, {1, 1024, 25, 64, false, false},
        {3, 1000, 12, 64, false, false},  {8, 17, 3, 8, true, false},
        {8, 24, 2, 16, false, false},     {4, 333, 6, 32, false, false},
        {2, 2048, 16, 128, true, false},  {2, 4096, 16, 96, false, false},
        {1, 1, 1, 64, false, false},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        AttentionShape shape = shapes[i];
        check_plans("h200", shape);
        shape.fp16 = true;
        if (i % 3 == 0) check_plans("h200", shape);
    }
}

static void test_models(void)
{
    check_plans("h100", (AttentionShape){32, 1024, 12, 64, false, false});
    check_plans("a100", (AttentionShape){32, 1024, 12, 64, false, false});
}

static void test_widths(void)
{
    CudaState state;
    CudnnAttention f;
    if (!ready(&state, "h200")) return;
    CU_ASSERT_FALSE(cudnn_attention_init(&f, (AttentionShape){2, 64, 2, 12, false, false},
                                         cudnn_target(&state)));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.reason, "heads of 12 columns"));
    cudnn_attention_fini(&f);
    cudnn_close(&state);
}

/* A convolution of a model of the zoo, planned as in a run. */
typedef struct ConvCase {
    int64_t samples, channels, side, outputs;
    int kernel, stride, groups;
} ConvCase;

static void check_conv(const char *model, DType precision, ConvCase c, bool biased, Act act)
{
    Backend *backend;
    Op *op;
    Desc preferred[SPEC_INPUTS];
    BackendOptions options = {.threads = 1, .precision = precision, .dry_run = true, .gpu = model};
    int pad = c.kernel / 2;
    int64_t side = (c.side + 2 * pad - c.kernel) / c.stride + 1;
    OpSpec s = {.kind = OP_CONV2D,
                .kernel = {c.kernel, c.kernel},
                .stride = {c.stride, c.stride},
                .pad = {pad, pad},
                .groups = c.groups,
                .x_count = 1,
                .w_count = 1 + biased,
                .act = act,
                .need_dx = {true},
                .x_shared = true};
    s.w[0] = shape_of(4, c.outputs, c.channels / c.groups, c.kernel, c.kernel);
    s.w[1] = shape_of(1, c.outputs, 1, 1, 1);
    s.x[0] = desc_plain(shape_of(4, c.samples, c.channels, c.side, c.side), precision);
    s.x[0].block = (int)c.channels;
    s.y = desc_plain(shape_of(4, c.samples, c.outputs, side, side), precision);
    CU_ASSERT_EQUAL_FATAL(backend_open(&backend, &backend_cuda, options), OK);
    Status st = op_new(&op, backend, &s, preferred);
    CU_ASSERT_EQUAL(st, OK);
    if (st != OK) printf("  %s: %s\n", model, fail_message());
    if (st == OK && biased) CU_ASSERT_PTR_NULL(op->kernels);
    op_free(&op);
    backend_close(&backend);
}

static void test_convs(void)
{
    static const ConvCase cases[] = {
        {256, 3, 224, 64, 7, 2, 1},   {256, 64, 56, 64, 1, 1, 1},   {256, 64, 56, 64, 3, 1, 1},
        {256, 64, 56, 256, 1, 1, 1},  {256, 256, 56, 128, 1, 1, 1}, {256, 128, 56, 128, 3, 2, 1},
        {256, 256, 56, 512, 1, 2, 1}, {256, 512, 7, 512, 3, 1, 1},  {256, 2048, 7, 512, 1, 1, 1},
        {64, 32, 112, 32, 3, 1, 32},  {64, 96, 112, 96, 3, 2, 96},  {64, 960, 7, 160, 1, 1, 1},
        {64, 1, 28, 6, 5, 1, 1},      {64, 1, 28, 32, 3, 1, 1},     {64, 32, 14, 64, 3, 1, 1},
        {64, 6, 14, 16, 5, 1, 1},     {2, 6, 9, 8, 3, 2, 2},        {2, 5, 9, 7, 3, 1, 1},
        {32, 3, 32, 64, 3, 1, 1},     {1, 1, 3, 1, 3, 1, 1},
    };
    CudaState state;
    if (!ready(&state, "h200")) return;
    cudnn_close(&state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        check_conv("h200", DTYPE_BF16, cases[i], false, ACT_NONE);
        check_conv("h200", DTYPE_F32, cases[i], false, ACT_NONE);
        check_conv("a100", DTYPE_BF16, cases[i], false, ACT_NONE);
        if (cases[i].groups > 1) continue;
        check_conv("h200", DTYPE_F32, cases[i], true, ACT_NONE);
        check_conv("h200", DTYPE_F32, cases[i], true, ACT_RELU);
        check_conv("a100", DTYPE_F32, cases[i], true, ACT_RELU);
    }
}

/* A convolution of resnet50: 3x3 on 56 x 56 pixels. */
static const DnnTensor conv_tensors[] = {
    {0},
    {CUDNN_DATA_BFLOAT16, DNN_MEMORY, {64, 64, 56, 56}, {200704, 1, 3584, 64}},
    {CUDNN_DATA_BFLOAT16, DNN_MEMORY, {64, 64, 3, 3}, {576, 1, 192, 64}},
    {CUDNN_DATA_BFLOAT16, DNN_MEMORY, {64, 64, 56, 56}, {200704, 1, 3584, 64}},
};
static const DnnNode conv_node = {
    .kind = DNN_CONV, .y = 3, .in = {1, 2}, .stride = {1, 1}, .pad = {1, 1}};
static const DnnGraph conv_graph = {
    .tensor = conv_tensors, .tensors = 4, .node = &conv_node, .nodes = 1};

/* Checks that there are several engines with different texts, and that each is found again by its
 * text. */
static void check_engines(CudaState *state)
{
    enum { MOST = 6 };
    DnnCandidate candidate[MOST];
    DnnPlan all, one;
    char why[256] = "";
    int count = dnn_candidates(&all, &conv_graph, cudnn_target(state), candidate, MOST);
    CU_ASSERT(count > 1);
    for (int i = 0; i < count; ++i) {
        printf("  %s, workspace %zu bytes\n", candidate[i].engine, candidate[i].workspace_bytes);
        for (int k = 0; k < i; ++k)
            CU_ASSERT_STRING_NOT_EQUAL(candidate[i].engine, candidate[k].engine);
        bool made = dnn_make(&one, &conv_graph, cudnn_target(state), candidate[i].engine, why);
        CU_ASSERT_TRUE(made);
        if (!made) printf("  %s\n", why);
        CU_ASSERT_EQUAL(one.workspace_bytes, candidate[i].workspace_bytes);
        dnn_fini(&one);
    }
    CU_ASSERT_FALSE(dnn_make(&one, &conv_graph, cudnn_target(state), "engine 9999", why));
    dnn_fini(&one);
    dnn_fini(&all);
}

/* Checks that the first choice is recorded, and that another engine is used if the record names
 * it. */
static void check_record(CudaState *state, AlgorithmRecord *record)
{
    const char *key, *engine;
    char why[256] = "", second[DNN_ENGINE_TEXT];
    DnnCandidate candidate[2];
    DnnPlan plan;
    CU_ASSERT_TRUE(dnn_plan(&plan, &conv_graph, cudnn_target(state), why));
    CU_ASSERT_EQUAL_FATAL(algorithm_record_count(record), 1);
    algorithm_record_entry(record, 0, &key, &engine);
    CU_ASSERT_STRING_EQUAL(engine, plan.engine);
    dnn_fini(&plan);
    CU_ASSERT_EQUAL(dnn_candidates(&plan, &conv_graph, cudnn_target(state), candidate, 2), 2);
    memcpy(second, candidate[1].engine, sizeof second);
    dnn_fini(&plan);
    algorithm_record_set(record, key, second);
    CU_ASSERT_TRUE(dnn_plan(&plan, &conv_graph, cudnn_target(state), why));
    CU_ASSERT_STRING_EQUAL(plan.engine, second);
    CU_ASSERT_PTR_NULL(algorithm_record_rejected(record));
    dnn_fini(&plan);
    algorithm_record_set(record, key, "engine 9999");
    CU_ASSERT_TRUE(dnn_plan(&plan, &conv_graph, cudnn_target(state), why));
    CU_ASSERT_STRING_EQUAL(algorithm_record_rejected(record), key);
    dnn_fini(&plan);
}

static void test_engines(void)
{
    CudaState state;
    AlgorithmRecord *record = algorithm_record_new("H200", "cuDNN");
    const BackendOptions options = {.record = record};
    if (ready(&state, "h200")) {
        check_engines(&state);
        state.options = &options;
        check_record(&state, record);
        cudnn_close(&state);
    }
    algorithm_record_free(&record);
}

/* The size of a group divides the number of samples, and every group begins at a multiple of 16
 * bytes. Its workspace is within the limit if any such size allows that. */
static void test_groups(void)
{
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){32, 1024, 12, 64, false, false}), 32);
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){64, 1024, 12, 64, false, false}), 32);
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){60, 1024, 12, 64, false, false}), 30);
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){37, 2048, 12, 64, false, false}), 1);
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){2, 65536, 12, 64, false, false}), 1);
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){6, 9999, 3, 64, false, false}),
                    /* Smaller groups would not begin at a multiple of 16 bytes. */
                    6);
    /* One sample needs a workspace of 610 MB, and groups of fewer than 4 samples would not begin at
     * a multiple of 16 bytes. */
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){8, 9999, 3, 64, false, false}), 4);
    CU_ASSERT_EQUAL(cudnn_attention_group((AttentionShape){2, 9999, 3, 64, false, false}), 2);
}

TEST_MAIN("cuda plans", {"attention's graphs have plans on an H200", test_shapes},
          {"and for other GPU models", test_models}, {"widths that have none", test_widths},
          {"groups of samples", test_groups}, {"engines by their text", test_engines},
          {"the zoo's convolutions have plans", test_convs})
