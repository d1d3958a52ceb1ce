/* Lists the channels between the stages of a replica, as a pure function of the plan, and adds
 * their memory to the plan. run/boundary_links.c opens them. */
#include "plan.h"

/* Constants of the channels of tied gradients. TIE_PIECE_BYTES: largest number of bytes of a
 * message. LINK_ALIGN: the bytes of a message are a multiple of it. TIE_DEPTH: slots of a
 * channel. */
enum { LINK_ALIGN = 64, TIE_PIECE_BYTES = 1 << 20, TIE_DEPTH = 2 };

static void link_add(Links *links, int from, int to, int depth, size_t bytes)
{
    links->spec = mem_resize(links->spec, (size_t)(links->count + 1) * sizeof *links->spec);
    links->spec[links->count++] =
        (ChannelSpec){.from = from, .to = to, .depth = depth, .bytes = bytes};
}

static int stage_of(const Plan *plan, int node)
{
    int chunk = 0;
    while (node >= plan->chunk_begin[chunk + 1]) ++chunk;
    return schedule_stage(plan->schedule, chunk);
}

static void add_boundary(const Plan *plan, Links *links, int chunk)
{
    int below = schedule_stage(plan->schedule, chunk - 1);
    int above = schedule_stage(plan->schedule, chunk);
    Message activations, gradients;
    boundary_activations(&activations, plan->graph, plan->chunk_begin[chunk]);
    boundary_gradients(&gradients, plan->graph, plan->chunk_begin[chunk]);
    link_add(links, below, above, plan->channel_depth, activations.bytes);
    link_add(links, above, below, plan->channel_depth, gradients.bytes);
    mem_free(&activations.tensor);
    mem_free(&gradients.tensor);
}

bool plan_ties_stages(const Plan *plan, int param)
{
    const Param *all = plan->graph->param;
    int owner = all[param].tied_param;
    return owner >= 0 && !all[param].frozen &&
           stage_of(plan, all[owner].node) != stage_of(plan, all[param].node);
}

/* Returns true if an earlier parameter is tied to the same owner (the parameter to which this one
 * is tied) and is not on the owner's stage either. This is not supported: links_sum_ties adds the
 * owner's gradient to that of one parameter on another stage. */
static bool owner_is_tied_already(const Plan *plan, int param)
{
    const Param *all = plan->graph->param;
    for (int i = 0; i < param; ++i)
        if (all[i].tied_param == all[param].tied_param && plan_ties_stages(plan, i)) return true;
    return false;
}

static Status add_tie(const Plan *plan, Links *links, int param)
{
    const Param *tied = &plan->graph->param[param], *target = &plan->graph->param[tied->tied_param];
    int a = stage_of(plan, target->node), b = stage_of(plan, tied->node);
    if (owner_is_tied_already(plan, param))
        return fail(
            ERR_CONFIG,
            "%s: a second parameter on another stage is tied to %s: cut the model (grid.cuts) "
            "so that at most one parameter tied to it is on another stage%s",
            tied->name, target->name,
            plan->graph->steps > 1 ? "; with train.rollout set grid.pipeline_schedule to "
                                     "interleaved and grid.chunks to the number of steps"
                                   : "");
    size_t bytes = (size_t)tied->elements * sizeof(float);
    if (bytes > TIE_PIECE_BYTES) bytes = TIE_PIECE_BYTES;
    bytes = (bytes + LINK_ALIGN - 1) / LINK_ALIGN * LINK_ALIGN;
    link_add(links, a, b, TIE_DEPTH, bytes);
    link_add(links, b, a, TIE_DEPTH, bytes);
    return OK;
}

Status links_init(Links *links, const Plan *plan)
{
    int chunks = plan->shape.pp * plan->chunk_count;
    *links = (Links){0};
    if (plan->shape.pp == 1) return OK;
    for (int chunk = 1; chunk < chunks; ++chunk)
        if (schedule_crosses(plan->schedule, chunk - 1)) add_boundary(plan, links, chunk);
    for (int i = 0; i < plan->graph->param_count; ++i)
        if (plan_ties_stages(plan, i)) TRY(add_tie(plan, links, i));
    return OK;
}

void links_fini(Links *links)
{
    mem_free(&links->spec);
}

Status links_memory(Plan *plan, bool gpus_joined)
{
    Links links;
    Status st = links_init(&links, plan);
    size_t received = 0, sent = 0;
    for (int i = 0; i < links.count; ++i) {
        const ChannelSpec *spec = &links.spec[i];
        size_t places = (size_t)spec->depth * spec->bytes;
        if (spec->to == plan->stage) received += places;
        if (spec->from == plan->stage) sent += places;
    }
    links_fini(&links);
    if (gpus_joined || plan_in_host_memory(plan)) {
        plan->message_bytes += received;
        plan->send_slot_bytes += sent;
    } else {
        plan->staged_bytes += received + sent;
    }
    return st;
}
