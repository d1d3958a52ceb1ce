/* Compares plan and executor with the plain interpreter (plain.h), which gives every tensor its own
 * memory. Both must give the same bits, on the CPU backend and on the backend that poisons memory
 * before it is written, because reused memory, aliases and in-place operations must not change
 * results. */
#include "plain.h"

#include "child.h"
#include "pipeline/plan/plan.h"
#include "pipeline/run/slice_exchange.h"

static const char *const models[] = {
    "model: {name: resnet18, width: 16, stem: small}\n",
    "model: {name: resnet50, width: 16, stem: imagenet}\n",
    "model: {name: mobilenet_v2, width: 16, stem: imagenet}\n",
    "model: {name: lenet}\n",
    "model: {name: mlp, hidden: [20, 30]}\n",
    "model: {layers: [conv2d: {channels: 20, kernel: 3, pad: 1}, gelu: {name: a}, conv2d: "
    "{channels: 20, kernel: 1}, "
    "silu: {name: b}, add: {input: [a, b]}, relu6: {name: c}, avg_pool: {kernel: 2, name: d}, "
    "max_pool: {kernel: 2, name: c2, input: [c]}, "
    "concat: {name: e, input: [d, c2]}, global_pool, flatten, layer_norm, dropout: {p: 0.4}, "
    "dense: {width: 9}]}\n",
    "model: {layers: [relu: {name: a}, flatten: {name: f}, dense: {width: 12, name: h}, add: "
    "{name: s, input: [h, h]}, "
    "dense: {width: 9}]}\n",
};

/* a model that reads tokens, so that Case.side is 0 */
static const char *const tokens_model =
    "model: {name: gpt2, layers: 2, width: 16, heads: 2, context: "
    "8, dropout: 0.1}\n";

enum { SIDE = 16 };

static const struct {
    int schedule, micro_batches;
} hows[] = {{SCHEDULE_GPIPE, 4}, {SCHEDULE_1F1B, 3}, {SCHEDULE_ZERO_BUBBLE, 4}};

/* Runs all models, each in another way. shift: index in `hows` of the way for the first model. */
static void run_models(const BackendTable *table, size_t shift)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i, ++shift)
        check_model(models[i], table, SIDE, hows[shift % 3].schedule,
                    hows[shift % 3].micro_batches);
    for (int h = 0; h < 3; ++h)
        check_model(tokens_model, table, 0, hows[h].schedule, hows[h].micro_batches);
}

static void test_cpu(void)
{
    run_models(&backend_cpu, 0);
}

static void test_poison(void)
{
    run_models(&backend_poison, 2);
}

/* The gradient of a sum is used in place as the gradient of both inputs. */
static void test_residual(void)
{
    Fixture f;
    Case how = {.model = "model: {name: gpt2, layers: 2, width: 16, heads: 2, context: 8}\n",
                .table = &backend_cpu,
                .shape = {.stages = 1, .chunks_per_stage = 1, .micro_batches = 2},
                .schedule = SCHEDULE_1F1B};
    bool open = fixture_open(&f, &how);
    CU_ASSERT_TRUE(open);
    for (int i = 0; open && i < f.plan->chunk[0].pass[PASS_BACKWARD].count; ++i)
        CU_ASSERT_NOT_EQUAL(f.plan->chunk[0].pass[PASS_BACKWARD].action[i].kind, ACTION_COPY);
    fixture_close(&f);
}

static size_t activations(int schedule, int micro_batches, size_t *all)
{
    Fixture f;
    Case how = {.model = models[0],
                .table = &backend_cpu,
                .side = SIDE,
                .shape = {.stages = 1, .chunks_per_stage = 1, .micro_batches = micro_batches},
                .schedule = schedule};
    size_t bytes = 0;
    *all = 0;
    if (fixture_open(&f, &how)) {
        bytes = f.plan->activation_bytes;
        for (int i = 0; i < f.graph->node_count; ++i)
            *all += 2 * desc_bytes(f.graph->node[i].op->spec.y);
    }
    fixture_close(&f);
    return bytes;
}

/* Because memory is reused, activations need far less memory than all tensors together. Each
 * micro-batch in flight has its own slot. With one micro-batch in flight, the memory does not
 * depend on the number of micro-batches. */
static void test_memory(void)
{
    size_t all, one = activations(SCHEDULE_1F1B, 1, &all);
    CU_ASSERT(one > 0 && one < all * 7 / 10);
    CU_ASSERT_EQUAL(activations(SCHEDULE_1F1B, 8, &all), one);
    size_t many = activations(SCHEDULE_GPIPE, 8, &all);
    CU_ASSERT(many > 2 * one && many < 8 * one);
}

/* Returns the size in bytes of a micro-batch's slot on the last of two stages, which begins with
 * the second dense layer. late: true: the stage's list has other work between the computation of a
 * message and its send. */
static size_t slot_bytes(bool late)
{
    Fixture f = {.how = {.model = "model: {name: mlp, hidden: [300, 20, 20]}\n",
                         .table = &backend_cpu,
                         .side = SIDE,
                         .shape = {.stages = 2, .chunks_per_stage = 1, .micro_batches = 4},
                         .schedule = SCHEDULE_GPIPE}};
    CHECK_OK(open_graph(&f));
    CHECK_OK(make_schedule(&f));
    if (late) disorder(f.schedule, 0);
    f.first = mem_new(3 * sizeof *f.first);
    f.first[2] = f.graph->node_count;
    for (int i = 0, dense = 0; dense < 2; ++i)
        if (f.graph->node[i].spec.w_count > 0 && ++dense == 2) f.first[1] = i;
    PlanOptions options = {.shape = {1, 2, 1},
                           .stage = 1,
                           .schedule = f.schedule,
                           .channel_depth = 2,
                           .chunk_begin = f.first,
                           .bucket_bytes = 4096};
    CHECK_OK(plan_new(&f.plan, f.graph, &options));
    CU_ASSERT_EQUAL(messages_may_wait(f.schedule, 1), late);
    size_t bytes = f.plan->chunk[0].kept_bytes;
    fixture_close(&f);
    return bytes;
}

/* A gradient that is sent as soon as it is computed needs no memory in the slot. */
static void test_messages(void)
{
    size_t gradient = 300 * sizeof(float) * MICRO, at_once = slot_bytes(false);
    CU_ASSERT(at_once >= gradient);
    CU_ASSERT(at_once < 2 * gradient);
    CU_ASSERT(slot_bytes(true) > at_once + gradient / 2);
}

/* Counts elements of gradients and statistics that are not -0, in a step without samples. */
static int64_t count_not_minus_zero(Fixture *f)
{
    int64_t seen = 0;
    BatchSource source = source_of(f, f->plan->batches_in_use);
    for (int m = 0; m < f->how.shape.micro_batches; ++m) f->batch[m].rows = 0;
    StepBatch of = {.scale = SCALE};
    CHECK_OK(executor_forward_backward(f->executor, &source, &of, NULL));
    executor_reduce(f->executor);
    for (int i = 0; i < f->graph->param_count; ++i) {
        const float *sum = executor_grads(f->executor) + f->plan->gradient_offset[i];
        for (int64_t e = 0; e < f->graph->param[i].elements; ++e)
            seen += sum[e] != 0 || !signbit(sum[e]);
    }
    return seen;
}

/* If no micro-batch has samples, all sums are -0. They must not be 0: adding -0 changes no number,
 * but adding 0 changes -0. */
static void test_empty(void)
{
    for (int h = 0; h < 3; ++h) {
        Fixture f;
        Case how = {
            .model = models[0],
            .table = &backend_cpu,
            .side = SIDE,
            .shape = {.stages = 1, .chunks_per_stage = 1, .micro_batches = hows[h].micro_batches},
            .schedule = hows[h].schedule};
        if (fixture_open(&f, &how)) CU_ASSERT_EQUAL(count_not_minus_zero(&f), 0);
        fixture_close(&f);
    }
}

static uint64_t hash_of_step(Fixture *f)
{
    BatchSource source = source_of(f, f->plan->batches_in_use);
    StepBatch of = {.scale = SCALE, .micro_batches = f->how.shape.micro_batches};
    CHECK_OK(executor_forward_backward(f->executor, &source, &of, NULL));
    executor_reduce(f->executor);
    return executor_step_hash(f->executor);
}

/* The hash of a step depends on its gradients. */
static void test_hash(void)
{
    Fixture f;
    Case how = {.model = models[4],
                .table = &backend_cpu,
                .side = SIDE,
                .shape = {.stages = 1, .chunks_per_stage = 1, .micro_batches = 2},
                .schedule = SCHEDULE_1F1B};
    if (fixture_open(&f, &how)) {
        CU_ASSERT_EQUAL(hash_of_step(&f), 0);
        executor_hash_steps(f.executor, true);
        uint64_t hash = hash_of_step(&f);
        CU_ASSERT_NOT_EQUAL(hash, 0);
        CU_ASSERT_EQUAL(hash_of_step(&f), hash);
        f.batch[1].labels[0] ^= 1;
        CU_ASSERT_NOT_EQUAL(hash_of_step(&f), hash);
    }
    fixture_close(&f);
}

/* Lends one micro-batch, and fails at the second. */
static Status next_fails(void *user, const MicroBatch **batch, double *wait_s)
{
    if (((Fixture *)user)->taken > 0) return fail(ERR_DATA, "the data are damaged");
    return source_next(user, batch, wait_s);
}

/* If data cannot be read, the step fails with the message of the source. */
static void test_unreadable(void)
{
    Fixture f;
    Case how = {.model = models[4],
                .table = &backend_cpu,
                .side = SIDE,
                .shape = {.stages = 1, .chunks_per_stage = 1, .micro_batches = 2},
                .schedule = SCHEDULE_1F1B};
    if (fixture_open(&f, &how)) {
        BatchSource source = source_of(&f, f.plan->batches_in_use);
        StepBatch of = {.scale = SCALE, .micro_batches = 2};
        source.next = next_fails;
        CHECK_FAILS(executor_forward_backward(f.executor, &source, &of, NULL), ERR_DATA,
                    "the data are damaged");
    }
    fixture_close(&f);
}

/* Exchange of two ranks that only writes the whole result. */
static void gather_zeros(const Exchange *x, Slices s, const void *mine, void *whole)
{
    (void)x;
    (void)mine;
    memset(whole, 0, (size_t)s.ranges * slices_range_bytes(&s, 1, 0));
}

static void reduce_zeros(const Exchange *x, Slices s, const void *whole, void *mine)
{
    (void)whole;
    memset(mine, 0, (size_t)s.ranges * slices_range_bytes(&s, x->size, x->rank));
}

enum { STAGED_FLOATS = 8 };

/* Exchanges a tensor of `items` floats through a staged exchange that was planned for
 * STAGED_FLOATS. */
static void exchange_staged(int64_t items, bool gathers)
{
    const Exchange host = {.size = 2, .all_gather = gather_zeros, .reduce_scatter = reduce_zeros};
    const Slices s = {.ranges = 1, .items = items, .item_elements = 1, .type = DTYPE_F32};
    float mine[4 * STAGED_FLOATS] = {0}, whole[4 * STAGED_FLOATS] = {0};
    Context c = {.plan = NULL};
    CHECK_OK(backend_open(&c.backend, &backend_cpu, (BackendOptions){.threads = 1}));
    c.stream = c.backend->table->stream(c.backend);
    StagedExchange *staged = staged_exchange_new(&c, &host, STAGED_FLOATS * sizeof(float));
    const Exchange *x = staged_exchange_interface(staged);
    if (gathers)
        x->all_gather(x, s, mine, whole);
    else
        x->reduce_scatter(x, s, whole, mine);
    staged_exchange_free(&staged);
    backend_close(&c.backend);
}

static void gather_too_large(void)
{
    exchange_staged(STAGED_FLOATS + 2, true);
}

static void reduce_too_large(void)
{
    exchange_staged(STAGED_FLOATS + 2, false);
}

/* A tensor that does not fit into the buffers of an exchange through host memory ends the process,
 * also if this rank's slice would fit. */
static void test_staged(void)
{
    static void (*const large[])(void) = {gather_too_large, reduce_too_large};
    char text[1000];
    for (int i = 0; i < 2; ++i) {
        exchange_staged(STAGED_FLOATS, i == 0);
        int status = in_child(large[i], text, sizeof text);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_BUG);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "was planned for smaller tensors"));
    }
}

TEST_MAIN("executor", {"same bits as a plain interpreter", test_cpu},
          {"poisoned memory", test_poison}, {"memory is shared", test_memory},
          {"messages at once", test_messages}, {"empty micro-batches add nothing", test_empty},
          {"a residual's gradient is not copied", test_residual}, {"hash of a step", test_hash},
          {"data that cannot be read", test_unreadable},
          {"exchanges that are too large", test_staged})
