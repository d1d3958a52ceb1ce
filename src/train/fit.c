/* Does the plan fit in the memory that a rank may use? */
#include "fit.h"

#include <unistd.h>

/* This rank's share of the host's memory, bytes. */
static double memory_of_host(const Trainer *t)
{
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    return machine / t->world->node_size;
}

/* Bytes of batches, slices and messages on their way to a device can be neither moved nor swapped out. */
static Status memory_fits_host(const Trainer *t, double bytes)
{
    char wanted[16], have[16];
    double limit = memory_of_host(t);
    if (bytes <= limit) return OK;
    return config_fail_key(t->config, "data.prefetch",
                           "the micro-batches that a rank's loader keeps for its GPU, and slices "
                           "and messages that go by way of host memory, take %s of it, and its "
                           "share is %s: "
                           "fewer of them, or a smaller train.micro_batch would do",
                           text_bytes(bytes, wanted), text_bytes(limit, have));
}

/* Bytes that a rank may use: what config says, or its share of the machine's, or what is free on its device. */
static double memory_limit(const Trainer *t)
{
    double limit = memory_of_host(t), taken, asked = t->config->train.memory;
    const Backend *backend = t->backend;
    if (backend->table->memory) backend->table->memory(t->backend, &taken, &limit);
    return asked > 0 && (asked < limit || !backend->table->memory) ? asked : limit;
}

/* What the stage that needs most needs, and what of that does not depend on the micro-batch. */
typedef struct Need {
    double bytes, fixed, host; /* host: of any stage, beside its device */
} Need;
/* A device's free memory is what is left beside its libraries' (b.program); a host's is all that a rank may have. */
static void need_of(const Trainer *t, const Plan *plan, Need *need)
{
    TrainBytes b = train_bytes(t, plan);
    double beside = t->backend->table->memory ? (double)b.program : 0;
    double bytes = (double)b.all - beside;
    if (bytes > need->bytes) {
        need->bytes = bytes;
        need->fixed = (double)(b.params + b.gradients + b.state + b.cache + b.program) - beside;
    }
    if ((double)b.host > need->host) need->host = (double)b.host;
}

static Status largest_stage(const Trainer *t, Need *need)
{
    *need = (Need){0};
    for (int stage = 0; stage < t->shape.pp; ++stage) {
        Plan *plan = NULL;
        TRY(train_plan_stage(t, stage, &plan));
        need_of(t, plan, need);
        plan_free(&plan);
    }
    return OK;
}

static Status refuse_memory(const Trainer *t, Need need, double limit)
{
    char wanted[16], have[16], fit[64] = "";
    const Config *c = t->config;
    const BackendTable *table = t->backend->table;
    const char *where =
        table->memory && limit != c->train.memory ? table->memory_text(t->backend) : "";
    int64_t most =
        (int64_t)((double)t->micro_batch * (limit - need.fixed) / (need.bytes - need.fixed));
    if (most > 0)
        snprintf(fit, sizeof fit, "train.micro_batch of at most about %lld, ", (long long)most);
    return config_fail_key(
        c, "train.memory",
        "a rank needs %s, and may use %s%s%s%s: %s%smore stages (grid.pp)%s would do",
        text_bytes(need.bytes, wanted), text_bytes(limit, have), *where ? " (" : "", where,
        *where ? ")" : "", fit, t->recompute ? "" : "grid.recompute=block, ",
        table->memory ? " or a GPU that nobody else fills" : " or fewer ranks on a node");
}

Status memory_fit(Trainer *t)
{
    int wish = t->config->grid.recompute;
    double limit = memory_limit(t);
    Need need;
    t->recompute = wish == RECOMPUTE_BLOCK;
    TRY(largest_stage(t, &need));
    if (wish == RECOMPUTE_AUTO && need.bytes > limit) {
        t->recompute = true;
        TRY(largest_stage(t, &need));
    }
    return need.bytes > limit ? refuse_memory(t, need, limit) : memory_fits_host(t, need.host);
}
