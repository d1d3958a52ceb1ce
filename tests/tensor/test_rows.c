/* The tables of backends are complete, and a table that lacks a function, or contradicts a property
 * of the backend or of an operation, is refused by name. Each refused table is a copy of a good one
 * with one fault. */
#include "harness.h"
#include "tensor.h"
#include "tensor/op_list.h"

/* Checks that a copy of a backend's table is refused if its slot is 0. */
#define BACKEND_LACKS(good, slot)                                                                  \
    do {                                                                                           \
        BackendTable row = good;                                                                   \
        row.slot = 0;                                                                              \
        CHECK_FAILS(backend_check(&row), ERR_BUG, "." #slot " is not given");                      \
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "backend "));                                \
    } while (0)

/* The same for a slot of the backend's flat table. */
#define FLAT_LACKS(good, slot)                                                                     \
    do {                                                                                           \
        BackendTable row = good;                                                                   \
        FlatTable flat = *row.flat;                                                                \
        flat.slot = 0;                                                                             \
        row.flat = &flat;                                                                          \
        CHECK_FAILS(backend_check(&row), ERR_BUG, "." #slot " is not given");                      \
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "flat table of backend "));                  \
    } while (0)

/* The slots that every backend has. */
#define EVERY_BACKEND_LACKS(good)                                                                  \
    do {                                                                                           \
        BACKEND_LACKS(good, name);                                                                 \
        BACKEND_LACKS(good, open);                                                                 \
        BACKEND_LACKS(good, bf16);                                                                 \
        BACKEND_LACKS(good, f16);                                                                  \
        BACKEND_LACKS(good, tf32);                                                                 \
        BACKEND_LACKS(good, dense_gelu);                                                           \
        BACKEND_LACKS(good, batch_norm_silu);                                                      \
        BACKEND_LACKS(good, dense_residual);                                                       \
        BACKEND_LACKS(good, close);                                                                \
        BACKEND_LACKS(good, alloc);                                                                \
        BACKEND_LACKS(good, release);                                                              \
        BACKEND_LACKS(good, stream);                                                               \
        BACKEND_LACKS(good, copy);                                                                 \
        BACKEND_LACKS(good, sync);                                                                 \
        BACKEND_LACKS(good, event_new);                                                            \
        BACKEND_LACKS(good, event_record);                                                         \
        BACKEND_LACKS(good, event_wait);                                                           \
        BACKEND_LACKS(good, event_free);                                                           \
        BACKEND_LACKS(good, timer_new);                                                            \
        BACKEND_LACKS(good, event_s);                                                              \
        BACKEND_LACKS(good, flat);                                                                 \
        FLAT_LACKS(good, fill);                                                                    \
        FLAT_LACKS(good, add);                                                                     \
        FLAT_LACKS(good, add_bf16);                                                                \
        FLAT_LACKS(good, find_not_finite);                                                         \
        FLAT_LACKS(good, scale_add);                                                               \
        FLAT_LACKS(good, squares);                                                                 \
        FLAT_LACKS(good, chunk_squares);                                                           \
        FLAT_LACKS(good, exact_squares);                                                           \
        FLAT_LACKS(good, exact_chunk_squares);                                                     \
        FLAT_LACKS(good, join_squares);                                                            \
        FLAT_LACKS(good, sgd);                                                                     \
        FLAT_LACKS(good, adam);                                                                    \
        FLAT_LACKS(good, adam_direction);                                                          \
        FLAT_LACKS(good, average);                                                                 \
        FLAT_LACKS(good, swap);                                                                    \
        FLAT_LACKS(good, put);                                                                     \
        FLAT_LACKS(good, loss_sums);                                                               \
        FLAT_LACKS(good, range_sums);                                                              \
    } while (0)

static void cpu(void)
{
    CHECK_OK(tensor_check());
    EVERY_BACKEND_LACKS(backend_cpu);
    FLAT_LACKS(backend_cpu, find_and_copy);
    FLAT_LACKS(backend_cpu, run_elements);
    FLAT_LACKS(backend_cpu, matrix_product);
    BackendTable table = backend_cpu;
    table.host_memory = false;
    CHECK_FAILS(backend_check(&table), ERR_BUG, "backend cpu: .memory is not given");
    table = backend_cpu, table.bf16 = UNSUPPORTED;
    CHECK_FAILS(backend_check(&table), ERR_BUG,
                "flat table of backend cpu: .add_bf16 is given, but must not be");
    table = backend_cpu, table.absent = true;
    CHECK_FAILS(backend_check(&table), ERR_BUG, "backend cpu: .close is given, but must not be");
}

static void cuda(void)
{
    CHECK_OK(backend_check(&backend_cuda));
    BackendTable table = backend_cuda;
    table.open = NULL;
    CHECK_FAILS(backend_check(&table), ERR_BUG, "backend cuda: .open is not given");
    if (backend_cuda.absent) TEST_SKIP("built without CUDA");
    EVERY_BACKEND_LACKS(backend_cuda);
    BACKEND_LACKS(backend_cuda, memory);
    BACKEND_LACKS(backend_cuda, memory_text);
    BACKEND_LACKS(backend_cuda, stream_new);
    BACKEND_LACKS(backend_cuda, stream_free);
    BACKEND_LACKS(backend_cuda, stream_handle);
    BACKEND_LACKS(backend_cuda, copy_rows);
    BACKEND_LACKS(backend_cuda, host_alloc);
    BACKEND_LACKS(backend_cuda, host_release);
    BACKEND_LACKS(backend_cuda, event_sync);
    BACKEND_LACKS(backend_cuda, record_begin);
    BACKEND_LACKS(backend_cuda, record_end);
    BACKEND_LACKS(backend_cuda, replay);
    BACKEND_LACKS(backend_cuda, recording_free);
    FLAT_LACKS(backend_cuda, add_f16);
    FLAT_LACKS(backend_cuda, add_slices);
    FLAT_LACKS(backend_cuda, clip);
}

/* Checks that a backend is refused whose table of an operation is `changed`. */
static void refused_op(OpKind kind, OpTable changed, const char *why)
{
    BackendTable table = backend_cpu;
    table.op[kind] = &changed;
    CHECK_FAILS(backend_check(&table), ERR_BUG, why);
}

static void operations(void)
{
    OpTable table = *backend_cpu.op[OP_RMS_NORM];
    table.name = NULL;
    refused_op(OP_RMS_NORM, table, "operation rms_norm of the cpu backend: .name");
    table = *backend_cpu.op[OP_RMS_NORM], table.plan = NULL;
    refused_op(OP_RMS_NORM, table, "operation rms_norm of the cpu backend: .plan is not given");
    table = *backend_cpu.op[OP_RMS_NORM], table.forward = NULL;
    refused_op(OP_RMS_NORM, table, "operation rms_norm of the cpu backend: .forward is not given");
    table = *backend_cpu.op[OP_DENSE], table.unpack = NULL;
    refused_op(OP_DENSE, table,
               "operation dense of the cpu backend: .pack and .unpack go together");
    /* every operation with parameters or table rows needs their gradients, and every operation
     * whose inputs have gradients of their own needs backward_data */
    int trained = 0, written = 0;
    for (OpKind kind = OP_NONE + 1; kind < OP_KINDS; ++kind) {
        const OpInfo *info = op_info(kind);
        table = *backend_cpu.op[kind], table.backward_weight = NULL;
        char *text = mem_format("operation %s of the cpu backend: .backward_weight is not given, "
                                "but the operation has parameters",
                                info->name);
        if (info->params != PARAMS_NONE) refused_op(kind, table, text), ++trained;
        mem_free(&text);
        table = *backend_cpu.op[kind], table.backward_data = NULL;
        text =
            mem_format("operation %s of the cpu backend: .backward_data is not given", info->name);
        if (info->dx == DX_WRITTEN) refused_op(kind, table, text), ++written;
        mem_free(&text);
    }
    CU_ASSERT(trained >= 11 && written >= 29);
    table = *backend_cpu.op[OP_ADD], table.backward_data = backend_cpu.op[OP_POOL]->backward_data;
    refused_op(OP_ADD, table, "operation add of the cpu backend: .backward_data is given");
}

/* A table to which a plan changes, as dense does for sums in slices. */
static OpTable other_table;
static Status plan_other(Op *op, Desc preferred[SPEC_INPUTS])
{
    (void)preferred;
    op->table = &other_table;
    return OK;
}

static void changed_by_plan(void)
{
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    OpTable table = *backend_cpu.op[OP_RMS_NORM];
    table.plan = plan_other;
    BackendTable changed = backend_cpu;
    changed.op[OP_RMS_NORM] = &table;
    backend->table = &changed;
    const Desc x = desc_plain(shape_of(2, 2, 8, 1, 1), DTYPE_F32);
    const OpSpec spec = {.kind = OP_RMS_NORM,
                         .x_count = 1,
                         .x = {x},
                         .y = x,
                         .w_count = 1,
                         .w = {shape_of(1, 8, 1, 1, 1)}};
    Desc preferred[SPEC_INPUTS];
    Op *op = NULL;
    other_table = (OpTable){.name = "rms_norm",
                            .plan = plan_other,
                            .forward = table.forward,
                            .backward_data = table.backward_data};
    CHECK_FAILS(op_new(&op, backend, &spec, preferred), ERR_BUG,
                "operation rms_norm of the cpu backend: .backward_weight is not given");
    CU_ASSERT_PTR_NULL(op);
    other_table.backward_weight = table.backward_weight;
    CHECK_OK(op_new(&op, backend, &spec, preferred));
    op_free(&op);
    backend->table = &backend_cpu;
    backend_close(&backend);
}

TEST_MAIN("rows of tensor", {"cpu", cpu}, {"cuda", cuda}, {"operations", operations},
          {"changed by plan", changed_by_plan})
