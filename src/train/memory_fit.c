/* Checks that the plan fits into the memory that a rank may use; with grid.recompute=auto, turns
 * recomputation on if the plan does not fit without it. Also sets the limit for rows of sparse
 * tables, and whether checkpoints are written from a copy. */
#include "memory_fit.h"
#include "state/save_copy.h"
#include "mode/sparse.h"

#include <math.h>
#include <sys/resource.h>

/* Host memory that this rank may use. */
typedef struct HostShare {
    double bytes;
    /* for messages: the reason of the limit, as " (...)"; "" if the limit is the machine's
     * memory */
    char why[640];
} HostShare;

/* Lowers the share to the process's limit on `resource`, an RLIMIT constant, if that is smaller.
 * what: describes the limit for messages. */
static void limit_by(HostShare *share, int resource, const char *what)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    if ((double)limit.rlim_cur >= share->bytes) return;
    share->bytes = (double)limit.rlim_cur;
    snprintf(share->why, sizeof share->why, " (%s)", what);
}

/* Divides the memory of the machine, or that of the control group of a batch system or container,
 * among the ranks of the node. Then applies the limits of the process (ulimit). */
static HostShare share_of_host(const Trainer *t)
{
    MemoryLimit limit = memory_limit("");
    int ranks = t->world->node_size;
    char all[16];
    HostShare share = {.bytes = limit.bytes / ranks};
    if (*limit.group && ranks > 1)
        snprintf(share.why, sizeof share.why, " (%d ranks share %s, the control group's %s)", ranks,
                 text_bytes(limit.bytes, all), limit.group);
    else if (*limit.group)
        snprintf(share.why, sizeof share.why, " (the control group's %s)", limit.group);
    limit_by(&share, RLIMIT_AS, "the limit on a process's addresses, ulimit -v");
    limit_by(&share, RLIMIT_DATA, "the limit on a process's data, ulimit -d");
    return share;
}

/* Checks that a rank with a GPU may use `bytes` of host memory for batches, slices and messages. */
static Status check_host_memory(const Trainer *t, double bytes)
{
    char wanted[16], have[16];
    HostShare share = share_of_host(t);
    if (bytes <= share.bytes) return OK;
    return config_fail_key(t->config, "data.prefetch",
                           "a rank with a GPU needs %s of host memory for its loader's "
                           "micro-batches, slices and messages, but its share is %s%s: set "
                           "data.prefetch or train.micro_batch lower",
                           text_bytes(bytes, wanted), text_bytes(share.bytes, have), share.why);
}

/* Returns the bytes that a rank may use: the free memory of its device or, without a device, its
 * share of the machine's memory. train.memory replaces the share, and lowers the limit of a device
 * but does not raise it. */
static double memory_of_rank(const Trainer *t)
{
    double limit = share_of_host(t).bytes, used, asked = t->config->train.memory;
    const Backend *backend = t->backend;
    if (backend->table->memory) backend->table->memory(t->backend, &used, &limit);
    return asked > 0 && (asked < limit || !backend->table->memory) ? asked : limit;
}

/* Memory that a rank needs, in bytes. `bytes`, `fixed`, `rows` and `reserved` are those of the
 * stage with the largest `bytes`; each other member is its own maximum over the stages. */
typedef struct Need {
    /* device memory of a rank with a device, else host memory */
    double bytes;
    /* part of `bytes` that does not depend on the micro-batch */
    double fixed;
    /* host memory of a rank with a device; 0 without one */
    double host;
    /* part of `bytes` for the rows of sparse tables */
    double rows;
    /* part of `bytes` that is kept free on a device */
    double reserved;
    /* `bytes` with the copy from which checkpoints are written */
    double bytes_with_copy;
    /* `host` with this copy */
    double host_with_copy;
} Need;
/* Raises *need to the needs of this plan. With a device the limit is its free memory, which no
 * longer includes what the backend has allocated (b.program), so b.program is not counted. Without
 * a device the limit includes all memory of the process, so it is counted. */
static void raise_need(const Trainer *t, const Plan *plan, Need *need)
{
    TrainBytes b = train_bytes(t, plan);
    double outside_limit = t->backend->table->memory ? (double)b.program : 0;
    double bytes = (double)b.all + (double)b.reserved - outside_limit;
    if (bytes > need->bytes) {
        need->bytes = bytes;
        need->rows = (double)sparse_row_bytes(t, plan);
        need->reserved = (double)b.reserved;
        need->fixed = (double)(b.params + b.gradients + b.state + b.average + b.cache + b.program +
                               b.tables + b.reserved) -
                      outside_limit;
    }
    double copy = (double)save_copy_bytes(t, plan);
    bool device = t->backend->table->memory != NULL;
    need->host = fmax(need->host, (double)b.host);
    need->host_with_copy = fmax(need->host_with_copy, (double)b.host + (device ? copy : 0));
    need->bytes_with_copy = fmax(need->bytes_with_copy, bytes + (device ? 0 : copy));
}

static Status largest_stage(const Trainer *t, Need *need)
{
    *need = (Need){0};
    for (int stage = 0; stage < t->shape.pp; ++stage) {
        Plan *plan = NULL;
        TRY(train_plan_stage(t, stage, &plan));
        raise_need(t, plan, need);
        plan_free(&plan);
    }
    return OK;
}

static Status refuse_memory(const Trainer *t, Need need, double limit)
{
    char wanted[16], have[16], fit[64] = "", where[640] = "", kept[16], reserve[128] = "";
    const Config *c = t->config;
    const BackendTable *table = t->backend->table;
    if (limit != c->train.memory && table->memory)
        snprintf(where, sizeof where, " (%s)", table->memory_text(t->backend));
    else if (limit != c->train.memory)
        snprintf(where, sizeof where, "%s", share_of_host(t).why);
    if (need.reserved > 0)
        snprintf(reserve, sizeof reserve, " (%s of it for %s)", text_bytes(need.reserved, kept),
                 train_reserved_for(t));
    int64_t most =
        (int64_t)((double)t->micro_batch * (limit - need.fixed) / (need.bytes - need.fixed));
    if (most > 0)
        snprintf(fit, sizeof fit, "train.micro_batch of at most about %lld, ", (long long)most);
    return config_fail_key(
        c, "train.memory",
        "a rank needs %s%s, but may use only %s%s: use %s%smore stages (grid.pp)%s",
        text_bytes(need.bytes, wanted), reserve, text_bytes(limit, have), where, fit,
        t->recompute ? "" : "grid.recompute=block, ",
        table->memory ? " or a GPU that no other process uses" : " or fewer ranks on a node");
}

Status memory_fit(Trainer *t)
{
    int mode = t->config->grid.recompute;
    double limit = memory_of_rank(t);
    Need need;
    t->recompute = mode == RECOMPUTE_BLOCK;
    TRY(largest_stage(t, &need));
    if (mode == RECOMPUTE_AUTO && need.bytes > limit) {
        t->recompute = true;
        TRY(largest_stage(t, &need));
    }
    if (need.bytes > limit) return refuse_memory(t, need, limit);
    TRY(check_host_memory(t, need.host));
    t->table_limit = t->servers > 0 ? sparse_server_limit(t->config, share_of_host(t).bytes)
                                    : limit - need.bytes + need.rows;
    t->saves_in_background = t->config->checkpoint.background && t->graph->table_count == 0 &&
                             need.bytes_with_copy <= limit &&
                             need.host_with_copy <= share_of_host(t).bytes;
    return OK;
}
