/* Sends and receives messages between stages, through one channel for each boundary and direction
 * (plan/links.c). Also copies tensors between two chunks of this stage, and adds up the gradients
 * of tied parameters. */
#include "boundary_links.h"

/* ---- set-up ---- */

/* Returns the ChunkLinks of chunk number `chunk` of the model, or NULL if it is not on this
 * stage. */
static ChunkLinks *chunk_here(const BoundaryLinks *l, int chunk)
{
    const Plan *plan = l->context->plan;
    for (int c = 0; c < plan->chunk_count; ++c)
        if (plan->chunk[c].chunk == chunk) return &l->chunk[c];
    return NULL;
}

/* Sets the channels of the boundary before a chunk. up: channel of activations; down: channel of
 * gradients. */
static void bind_boundary(const BoundaryLinks *l, int chunk, int up, int down)
{
    ChunkLinks *from = chunk_here(l, chunk - 1), *to = chunk_here(l, chunk);
    if (from) {
        from->activations_out = up;
        from->gradients_in = down;
    }
    if (to) {
        to->activations_in = up;
        to->gradients_out = down;
    }
}

/* Adds a parameter that is tied across stages. from_owner: channel from the owner's stage;
 * from_owner + 1 is the channel to it. */
static void bind_tie(BoundaryLinks *l, const GradSync *sync, const Links *links, int param,
                     int from_owner)
{
    const Plan *plan = l->context->plan;
    const ChannelSpec *spec = &links->spec[from_owner];
    if (plan->stage != spec->from && plan->stage != spec->to) return;
    bool owner = plan->stage == spec->from;
    int64_t begin, count;
    int mine = owner ? plan->graph->param[param].tied_param : param;
    plan_shard(plan, mine, l->context->grid->dp_rank, &begin, &count);
    l->tie = mem_resize(l->tie, (size_t)(l->tie_count + 1) * sizeof *l->tie);
    l->tie[l->tie_count++] = (TieLink){.sum = grad_sum(sync, plan->gradient_offset[mine] + begin),
                                       .elements = count,
                                       .out = owner ? from_owner : from_owner + 1,
                                       .in = owner ? from_owner + 1 : from_owner,
                                       .piece = (int64_t)(spec->bytes / sizeof(float))};
}

static void bind_links(BoundaryLinks *l, const GradSync *sync, const Links *links)
{
    const Plan *plan = l->context->plan;
    int chunks = plan->shape.pp * plan->chunk_count, next = 0;
    for (int chunk = 1; chunk < chunks; ++chunk) {
        if (!schedule_crosses(plan->schedule, chunk - 1)) continue;
        bind_boundary(l, chunk, next, next + 1);
        next += 2;
    }
    for (int i = 0; i < plan->graph->param_count; ++i) {
        if (!plan_ties_stages(plan, i)) continue;
        bind_tie(l, sync, links, i, next);
        next += 2;
    }
}

/* Removes the moves of channels for empty messages. Messages of gradients are empty if no layer
 * before the boundary is trained. */
static void drop_empty(Moves *moves, const Links *links)
{
    int count = 0;
    for (int i = 0; i < moves->count; ++i)
        if (links->spec[moves->move[i].channel].bytes > 0) moves->move[count++] = moves->move[i];
    moves->count = count;
}

/* Plans when messages move, if the channels need that. The channels of boundaries are the first in
 * links, numbered as in Move.channel. */
static Status plan_moves(BoundaryLinks *l, const Links *links, const Schedule *evaluation)
{
    const Plan *plan = l->context->plan;
    if (!channels_on_device(l->channels)) return OK;
    TRY(schedule_moves(&l->moves, plan->schedule, plan->channel_depth, plan->stage));
    drop_empty(&l->moves, links);
    return schedule_moves(&l->evaluation_moves, evaluation, plan->channel_depth, plan->stage);
}

Status boundary_links_init(BoundaryLinks *l, Context *context, const GradSync *sync,
                           const Schedule *evaluation)
{
    const Plan *plan = context->plan;
    Links links;
    *l = (BoundaryLinks){.context = context,
                         .chunk = mem_new((size_t)plan->chunk_count * sizeof *l->chunk)};
    for (int c = 0; c < plan->chunk_count; ++c) l->chunk[c] = (ChunkLinks){-1, -1, -1, -1};
    if (plan->shape.pp == 1) return OK;
    Status st = links_init(&links, plan);
    if (st == OK) bind_links(l, sync, &links);
    if (st == OK)
        st = channels_new(&l->channels, &context->grid->pp_world, links.spec, links.count,
                          context->options.transport);
    if (st == OK) st = plan_moves(l, &links, evaluation);
    links_fini(&links);
    context->progress.stages = l->channels;
    return status_agree(context->grid->world, st);
}

void boundary_links_fini(BoundaryLinks *l)
{
    if (l->channels) channels_free(&l->channels);
    mem_free(&l->chunk);
    mem_free(&l->moves.move);
    mem_free(&l->evaluation_moves.move);
    mem_free(&l->tie);
}

/* ---- a step ---- */

void links_move(const BoundaryLinks *l, const Moves *moves, int *next, int task)
{
    enum { AT_ONCE = 16 };
    int channel[AT_ONCE], count = 0;
    for (; *next < moves->count && moves->move[*next].task == task; ++*next) {
        channel[count++] = moves->move[*next].channel;
        if (count == AT_ONCE) {
            channels_move(l->channels, channel, count);
            count = 0;
        }
    }
    if (count > 0) channels_move(l->channels, channel, count);
}

/* Waits until the copies to or from a channel's slot are done, if the slot is in host memory and
 * the copies were queued on a GPU. */
static void finish_copies(const BoundaryLinks *l)
{
    const Context *c = l->context;
    bool no_wait = c->backend->table->host_memory || channels_on_device(l->channels);
    if (!no_wait) c->backend->table->sync(c->stream);
}

static void send(const BoundaryLinks *l, const SlotMemory *memory, const ChunkRun *chunk,
                 const Slot *slot, const Message *message, int channel)
{
    if (message->count == 0) return;
    char *to = await_slot(&l->context->progress, l->channels, channel);
    for (int i = 0; i < message->count && !slot->empty; ++i) {
        const BoundaryTensor *t = &message->tensor[i];
        context_copy(l->context, to + t->at, slot_address(memory, chunk, slot, t->offset),
                     t->bytes);
    }
    finish_copies(l);
    channel_send(l->channels, channel);
}

static void receive(const BoundaryLinks *l, const SlotMemory *memory, const ChunkRun *chunk,
                    const Slot *slot, const Message *message, int channel)
{
    if (message->count == 0) return;
    const char *from = await_message(&l->context->progress, l->channels, channel);
    for (int i = 0; i < message->count; ++i) {
        const BoundaryTensor *t = &message->tensor[i];
        context_copy(l->context, slot_address(memory, chunk, slot, t->offset), from + t->at,
                     t->bytes);
    }
    finish_copies(l);
    channel_release(l->channels, channel);
}

void links_message(const BoundaryLinks *l, const SlotMemory *memory, const ChunkRun *chunk,
                   const Slot *slot, TaskKind kind)
{
    const ChunkPlan *plan = chunk->plan;
    const ChunkLinks *links = &l->chunk[plan - l->context->plan->chunk];
    Phase outer = phase_enter(PHASE_MESSAGES);
    if (kind == TASK_RECEIVE_FORWARD)
        receive(l, memory, chunk, slot, &plan->activations_in, links->activations_in);
    else if (kind == TASK_SEND_FORWARD)
        send(l, memory, chunk, slot, &plan->activations_out, links->activations_out);
    else if (kind == TASK_RECEIVE_BACKWARD)
        receive(l, memory, chunk, slot, &plan->gradients_in, links->gradients_in);
    else
        send(l, memory, chunk, slot, &plan->gradients_out, links->gradients_out);
    phase_enter(outer);
}

/* Copies the tensors that two chunks of this stage would send each other as a message, except those
 * that the later chunk reads in the earlier one's slot. */
static void copy_message(const SlotMemory *memory, MessageEnd from, const Message *out,
                         MessageEnd to, const Message *in)
{
    for (int i = 0; i < out->count && !from.slot->empty; ++i) {
        int64_t place = in->tensor[i].offset;
        if (place < OFFSET_BEFORE)
            context_copy(memory->context, slot_address(memory, to.chunk, to.slot, place),
                         slot_address(memory, from.chunk, from.slot, out->tensor[i].offset),
                         out->tensor[i].bytes);
    }
}

void links_copy_activations(const SlotMemory *memory, MessageEnd from, MessageEnd to)
{
    copy_message(memory, from, &from.chunk->plan->activations_out, to,
                 &to.chunk->plan->activations_in);
}

void links_copy_gradients(const SlotMemory *memory, MessageEnd from, MessageEnd to)
{
    copy_message(memory, from, &from.chunk->plan->gradients_out, to, &to.chunk->plan->gradients_in);
}

/* ---- tied parameters ---- */

/* Exchanges a tied gradient with the other stage and adds the two. Both stages add the same two
 * numbers, so they get the same sum. */
static void tie_exchange(const BoundaryLinks *l, const TieLink *tie)
{
    const Context *c = l->context;
    for (int64_t at = 0; at < tie->elements; at += tie->piece) {
        int64_t n = tie->elements - at < tie->piece ? tie->elements - at : tie->piece;
        context_copy(c, await_slot(&c->progress, l->channels, tie->out), tie->sum + at,
                     (size_t)n * sizeof(float));
        finish_copies(l);
        channel_send(l->channels, tie->out);
        channels_move(l->channels, (int[]){tie->out, tie->in}, 2);
        const float *theirs =
            (const float *)(const void *)await_message(&c->progress, l->channels, tie->in);
        c->backend->table->flat->add(c->stream, tie->sum + at, tie->sum + at, theirs, n);
        finish_copies(l);
        channel_release(l->channels, tie->in);
    }
}

void links_sum_ties(const BoundaryLinks *l, const GradSync *sync)
{
    const Context *c = l->context;
    const Graph *g = c->plan->graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->tied_param < 0 || p->frozen ||
            c->plan->gradient_offset[i] == c->plan->param_offset[i])
            continue;
        int64_t first, count;
        plan_shard(c->plan, i, c->grid->dp_rank, &first, &count);
        float *sum = grad_sum(sync, c->plan->gradient_offset[p->tied_param] + first);
        const float *other = grad_sum(sync, c->plan->gradient_offset[i] + first);
        c->backend->table->flat->add(c->stream, sum, sum, other, count);
    }
    for (int i = 0; i < l->tie_count; ++i) tie_exchange(l, &l->tie[i]);
}
