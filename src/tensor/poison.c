/* The poison backend, for tests. It is the CPU backend, but fills outputs, gradients, `saved`,
 * cache and workspace with NaN before an operation writes them, padding included. If an operation
 * fails to write an element, or reads one that has not been written, its result has NaN. The fill
 * is bytes of 0xff: NaN in float and double, -1 in integers. y or a dx is not filled if it shares
 * its memory with another tensor of the call. A dx to which the operation adds is not filled
 * either. Weights and cache are NULL in calls that must not read them. */
#include "tensor.h"
#include "tensor/op_list.h"
#include "cpu/cpu.h"

#include <string.h>

static void poison(void *p, size_t bytes)
{
    if (p && bytes > 0) memset(p, 0xff, bytes);
}

/* Returns the CPU backend's functions of the operation. */
static const OpTable *cpu_table(const Op *op)
{
    return backend_cpu.op[op->spec.kind];
}

static Status poison_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    return cpu_table(op)->plan(op, preferred);
}

static void poison_refresh(Op *op, const OpRun *run)
{
    if (!cpu_table(op)->refresh) return;
    poison(run->cache, op->cache_bytes);
    poison(run->workspace, op->workspace_bytes);
    cpu_table(op)->refresh(op, run);
}

static void poison_forward(Op *op, const OpRun *run)
{
    if (run->y != run->x[0]) poison(run->y, desc_bytes(op->spec.y));
    poison(run->saved, op->saved_bytes);
    poison(run->workspace, op->workspace_bytes);
    cpu_table(op)->forward(op, run);
}

/* Returns a copy of *run without weights and cache, which backward_begin and backward_weight must
 * not read. */
static OpRun without_weights(const OpRun *run)
{
    OpRun bare = *run;
    for (int i = 0; i < SPEC_PARAMS; ++i) bare.w[i] = NULL;
    bare.cache = NULL;
    return bare;
}

static void poison_backward_begin(Op *op, const OpRun *run)
{
    if (!cpu_table(op)->backward_begin) return;
    poison(run->workspace, op->workspace_bytes);
    OpRun bare = without_weights(run);
    cpu_table(op)->backward_begin(op, &bare);
}

static void poison_backward_data(Op *op, const OpRun *run)
{
    if (!cpu_table(op)->backward_data) return;
    for (int i = 0; i < op->spec.x_count; ++i)
        if (!op->dx_is_dy[i] && run->dx[i] != run->dy && run->dx[i] != run->x[i] &&
            !(i == 0 && run->dx_add))
            poison(run->dx[i], desc_bytes(op->spec.x[i]));
    poison(run->workspace, op->workspace_bytes);
    cpu_table(op)->backward_data(op, run);
}

static void poison_backward_weight(Op *op, const OpRun *run)
{
    if (!cpu_table(op)->backward_weight) return;
    for (int i = 0; i < op->spec.w_count; ++i)
        poison(run->dw[i], (size_t)op->w_elements[i] * sizeof(float));
    if (op_info(op->spec.kind)->reads == READS_IDS && run->bag) {
        const BagInput *bag = &run->bag[op->spec.bag];
        poison(bag->grad, (size_t)(bag->rows * op->spec.row_width) * sizeof(float));
    }
    poison(run->workspace, op->workspace_bytes);
    OpRun bare = without_weights(run);
    cpu_table(op)->backward_weight(op, &bare);
}

static void poison_pack(Op *op, int i, const float *plain, float *stored)
{
    poison(stored, (size_t)op->w_elements[i] * sizeof(float));
    if (cpu_table(op)->pack)
        cpu_table(op)->pack(op, i, plain, stored);
    else
        memcpy(stored, plain, (size_t)shape_count(op->spec.w[i]) * sizeof(float));
}

static void poison_unpack(Op *op, int i, const float *stored, float *plain)
{
    poison(plain, (size_t)shape_count(op->spec.w[i]) * sizeof(float));
    if (cpu_table(op)->unpack)
        cpu_table(op)->unpack(op, i, stored, plain);
    else
        memcpy(plain, stored, (size_t)shape_count(op->spec.w[i]) * sizeof(float));
}

static void poison_free(Op *op)
{
    if (cpu_table(op)->free) cpu_table(op)->free(op);
}

static const OpTable poison_op = {
    .name = "poison",
    .plan = poison_plan,
    .refresh = poison_refresh,
    .forward = poison_forward,
    .backward_begin = poison_backward_begin,
    .backward_data = poison_backward_data,
    .backward_weight = poison_backward_weight,
    .pack = poison_pack,
    .unpack = poison_unpack,
    .free = poison_free,
};

static Status poison_open(Backend *b, BackendOptions options)
{
    return backend_cpu.open(b, options);
}
static void poison_close(Backend *b)
{
    backend_cpu.close(b);
}

static void *poison_alloc(Backend *b, size_t bytes)
{
    return backend_cpu.alloc(b, bytes);
}
static void poison_release(Backend *b, void *p, size_t bytes)
{
    backend_cpu.release(b, p, bytes);
}
static Stream *poison_stream(Backend *b)
{
    return backend_cpu.stream(b);
}
static void poison_copy(Stream *s, void *to, const void *from, size_t bytes)
{
    backend_cpu.copy(s, to, from, bytes);
}
static void poison_sync(Stream *s)
{
    backend_cpu.sync(s);
}
static Event *poison_event_new(Backend *b)
{
    return backend_cpu.event_new(b);
}
static void poison_event_record(Event *e, Stream *s)
{
    backend_cpu.event_record(e, s);
}
static void poison_event_wait(Event *e, Stream *s)
{
    backend_cpu.event_wait(e, s);
}
static void poison_event_free(Event **e)
{
    backend_cpu.event_free(e);
}
static double poison_event_s(Event *from, Event *to)
{
    return backend_cpu.event_s(from, to);
}

#define ENTRY(OP, name, where) [OP_##OP] = &poison_op,
const BackendTable backend_poison = {
    .name = "poison",
    .host_memory = true,
    .bf16 = SUPPORTED,
    .f16 = UNSUPPORTED,
    .tf32 = UNSUPPORTED,
    .dense_gelu = UNSUPPORTED,
    .batch_norm_silu = SUPPORTED,
    .dense_residual = UNSUPPORTED,
    .open = poison_open,
    .close = poison_close,
    .alloc = poison_alloc,
    .release = poison_release,
    .stream = poison_stream,
    .copy = poison_copy,
    .sync = poison_sync,
    .event_new = poison_event_new,
    .event_record = poison_event_record,
    .event_wait = poison_event_wait,
    .event_free = poison_event_free,
    .timer_new = poison_event_new,
    .event_s = poison_event_s,
    .flat = &cpu_flat,
    .op = {OPERATIONS(ENTRY)},
};
