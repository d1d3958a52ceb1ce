/* What travels between the stages of a replica: values and gradients over the boundaries of chunks, and, once a step, the
 * gradients of parameters that are tied across stages. A pipe for each boundary and direction, in one order on all ranks. */
#include "executor.h"

#include <string.h>

enum { PIPE_ALIGN = 64, TIE_PIECE_BYTES = 1 << 20, TIE_DEPTH = 2 };

/* ---- set-up ---- */

typedef struct Pipes {
    ChannelSpec *spec; /* owned */
    int count;
} Pipes;

static void pipe_add(Pipes *pipes, int from, int to, int depth, size_t bytes)
{
    pipes->spec = mem_resize(pipes->spec, (size_t)(pipes->count + 1) * sizeof *pipes->spec);
    pipes->spec[pipes->count++] =
        (ChannelSpec){.from = from, .to = to, .depth = depth, .bytes = bytes};
}

static int stage_of(const Plan *plan, int node)
{
    int chunk = 0;
    while (node >= plan->first[chunk + 1]) ++chunk;
    return schedule_stage(plan->schedule, chunk);
}

/* The two pipes over the boundary in front of `chunk`: up, then down. */
static void add_boundary(const Plan *plan, Pipes *pipes, int chunk)
{
    int below = schedule_stage(plan->schedule, chunk - 1);
    int above = schedule_stage(plan->schedule, chunk);
    Message values, gradients;
    boundary_values(&values, plan->graph, plan->first[chunk]);
    boundary_gradients(&gradients, plan->graph, plan->first[chunk]);
    pipe_add(pipes, below, above, plan->channel_depth, values.bytes);
    pipe_add(pipes, above, below, plan->channel_depth, gradients.bytes);
    mem_free(&values.tensor);
    mem_free(&gradients.tensor);
}

/* Is the parameter tied to one of another stage? */
static bool crosses(const Plan *plan, int param)
{
    const Param *all = plan->graph->param;
    int owner = all[param].tied;
    return owner >= 0 && stage_of(plan, all[owner].node) != stage_of(plan, all[param].node);
}

/* Has an earlier parameter on another stage than its owner's the same owner? Sums go between two stages only. */
static bool third_stage(const Plan *plan, int param)
{
    const Param *all = plan->graph->param;
    for (int i = 0; i < param; ++i)
        if (all[i].tied == all[param].tied && crosses(plan, i)) return true;
    return false;
}

/* The two pipes of a parameter that is tied across stages: from its owner, then to it. */
static Status add_tie(const Plan *plan, Pipes *pipes, int param)
{
    const Param *tied = &plan->graph->param[param], *own = &plan->graph->param[tied->tied];
    int a = stage_of(plan, own->node), b = stage_of(plan, tied->node);
    if (third_stage(plan, param))
        return fail(
            ERR_CONFIG,
            "%s: a second parameter on another stage shares %s: cut the model (grid.cuts) so "
            "that all but one of them lie on its stage",
            tied->name, own->name);
    size_t bytes = (size_t)tied->elements * sizeof(float);
    if (bytes > TIE_PIECE_BYTES) bytes = TIE_PIECE_BYTES;
    bytes = (bytes + PIPE_ALIGN - 1) / PIPE_ALIGN * PIPE_ALIGN;
    pipe_add(pipes, a, b, TIE_DEPTH, bytes);
    pipe_add(pipes, b, a, TIE_DEPTH, bytes);
    return OK;
}

/* All pipes of a replica: those of the boundaries, then those of the ties. */
static Status list_pipes(const Plan *plan, Pipes *pipes)
{
    int chunks = plan->shape.pp * plan->chunk_count;
    if (plan->shape.pp == 1) return OK;
    for (int chunk = 1; chunk < chunks; ++chunk)
        if (schedule_crosses(plan->schedule, chunk - 1)) add_boundary(plan, pipes, chunk);
    for (int i = 0; i < plan->graph->param_count; ++i)
        if (crosses(plan, i)) TRY(add_tie(plan, pipes, i));
    return OK;
}

Status messages_memory(Plan *plan, bool joined)
{
    Pipes pipes = {0};
    Status st = list_pipes(plan, &pipes);
    size_t received = 0, sent = 0;
    for (int i = 0; i < pipes.count; ++i) {
        const ChannelSpec *spec = &pipes.spec[i];
        size_t places = (size_t)spec->depth * spec->bytes;
        if (spec->to == plan->stage) received += places;
        if (spec->from == plan->stage) sent += places;
    }
    mem_free(&pipes.spec);
    if (joined || plan_in_host_memory(plan)) {
        plan->message_bytes += received;
        plan->sent_bytes = sent;
    } else {
        plan->staged_bytes += received + sent;
    }
    return st;
}

static ChunkRun *chunk_here(Executor *e, int chunk)
{
    const Schedule *s = e->plan->schedule;
    bool here = schedule_stage(s, chunk) == e->plan->stage;
    return here ? &e->chunk[schedule_local(s, chunk)] : NULL;
}

static void bind_boundary(Executor *e, int chunk, int up, int down)
{
    ChunkRun *from = chunk_here(e, chunk - 1), *to = chunk_here(e, chunk);
    if (from) {
        from->values_out = up;
        from->gradients_in = down;
    }
    if (to) {
        to->values_in = up;
        to->gradients_out = down;
    }
}

static void bind_tie(Executor *e, const Pipes *pipes, int param, int from_owner, int to_owner)
{
    const Plan *plan = e->plan;
    const ChannelSpec *spec = &pipes->spec[from_owner];
    if (plan->stage != spec->from && plan->stage != spec->to) return;
    bool owner = plan->stage == spec->from;
    int64_t begin, count;
    int mine = owner ? plan->graph->param[param].tied : param;
    plan_share(plan, mine, e->grid->dp_rank, &begin, &count);
    e->tie = mem_resize(e->tie, (size_t)(e->tie_count + 1) * sizeof *e->tie);
    e->tie[e->tie_count++] =
        (TieLink){.offset = plan_sum_at(plan, plan->gradient_at[mine] + begin, e->grid->dp_rank),
                  .elements = count,
                  .out = owner ? from_owner : to_owner,
                  .in = owner ? to_owner : from_owner,
                  .piece = (int64_t)(spec->bytes / sizeof(float))};
}

/* In the list's order. */
static void bind_pipes(Executor *e, const Pipes *pipes)
{
    const Plan *plan = e->plan;
    int chunks = plan->shape.pp * plan->chunk_count, next = 0;
    for (int chunk = 1; chunk < chunks; ++chunk) {
        if (!schedule_crosses(plan->schedule, chunk - 1)) continue;
        bind_boundary(e, chunk, next, next + 1);
        next += 2;
    }
    for (int i = 0; i < plan->graph->param_count; ++i) {
        if (!crosses(plan, i)) continue;
        bind_tie(e, pipes, i, next, next + 1);
        next += 2;
    }
}

/* A boundary's pipes were added in the order that Move.channel has. */
static Status plan_moves(Executor *e)
{
    const Plan *plan = e->plan;
    if (!channels_on_device(e->channels)) return OK;
    TRY(schedule_moves(&e->moves, plan->schedule, plan->channel_depth, plan->stage));
    return schedule_moves(&e->evaluation_moves, e->evaluation, plan->channel_depth, plan->stage);
}

Status messages_new(Executor *e)
{
    Pipes pipes = {0};
    if (e->plan->shape.pp == 1) return OK;
    Status st = list_pipes(e->plan, &pipes);
    if (st == OK) bind_pipes(e, &pipes);
    if (st == OK)
        st = channels_new(&e->channels, &e->grid->pp_world, pipes.spec, pipes.count,
                          e->options.transport);
    mem_free(&pipes.spec);
    if (st == OK) st = plan_moves(e);
    return status_agree(e->grid->world, st);
}

void messages_free(Executor *e)
{
    if (e->channels) channels_free(&e->channels);
    mem_free(&e->moves.move);
    mem_free(&e->evaluation_moves.move);
    mem_free(&e->tie);
}

/* ---- a step ---- */

static void wait_a_little(Executor *e, Channels *channels, double start)
{
    if (channels_on_device(channels)) die("a message is waited for that nobody has moved");
    comm_progress(e->comm);
    if (e->channels) channels_progress(e->channels);
    group_progress(e);
    channels_wait(channels, clock_s() - start);
}

char *pipe_place(Executor *e, Channels *channels, int channel)
{
    double start = clock_s();
    char *at;
    while (!(at = channel_place(channels, channel))) wait_a_little(e, channels, start);
    return at;
}

const char *pipe_message(Executor *e, Channels *channels, int channel)
{
    double start = clock_s();
    const char *at;
    while (!(at = channel_message(channels, channel))) wait_a_little(e, channels, start);
    return at;
}

static void copy(Executor *e, void *to, const void *from, size_t bytes)
{
    e->backend->table->copy(e->stream, to, from, bytes);
}

/* Places in host memory are the channel's at once; those of a GPU once its stream comes to them. */
static void finish_copies(Executor *e)
{
    bool queued = e->backend->table->host_memory || channels_on_device(e->channels);
    if (!queued) e->backend->table->sync(e->stream);
}

void messages_move(Executor *e, const Moves *moves, int *next, int task)
{
    enum { AT_ONCE = 16 };
    int channel[AT_ONCE], count = 0;
    for (; *next < moves->count && moves->move[*next].task == task; ++*next) {
        channel[count++] = moves->move[*next].channel;
        if (count == AT_ONCE) {
            channels_move(e->channels, channel, count);
            count = 0;
        }
    }
    if (count > 0) channels_move(e->channels, channel, count);
}

void message_send(Executor *e, const ChunkRun *chunk, const Slot *slot, const Message *message,
                  int channel)
{
    Phase outer = phase_enter(PHASE_MESSAGES);
    char *to = pipe_place(e, e->channels, channel);
    for (int i = 0; i < message->count && !slot->empty; ++i) {
        const BoundaryTensor *c = &message->tensor[i];
        copy(e, to + c->at, executor_place(e, chunk, slot, c->place), c->bytes);
    }
    finish_copies(e);
    channel_send(e->channels, channel);
    phase_enter(outer);
}

void message_receive(Executor *e, const ChunkRun *chunk, const Slot *slot, const Message *message,
                     int channel)
{
    Phase outer = phase_enter(PHASE_MESSAGES);
    const char *from = pipe_message(e, e->channels, channel);
    for (int i = 0; i < message->count; ++i) {
        const BoundaryTensor *c = &message->tensor[i];
        copy(e, executor_place(e, chunk, slot, c->place), from + c->at, c->bytes);
    }
    finish_copies(e);
    channel_return(e->channels, channel);
    phase_enter(outer);
}

void message_copy(Executor *e, MessageEnd from, MessageEnd to)
{
    for (int i = 0; i < from.message->count && !from.slot->empty; ++i) {
        const BoundaryTensor *source = &from.message->tensor[i];
        if (to.message->tensor[i].place >= PLACE_BEFORE) continue;
        copy(e, executor_place(e, to.chunk, to.slot, to.message->tensor[i].place),
             executor_place(e, from.chunk, from.slot, source->place), source->bytes);
    }
}

/* ---- tied parameters ---- */

/* Both stages add the same two numbers, so both hold the same sum. */
static void tie_exchange(Executor *e, const TieLink *tie)
{
    float *mine = e->level[0] + tie->offset;
    for (int64_t at = 0; at < tie->elements; at += tie->piece) {
        int64_t n = tie->elements - at < tie->piece ? tie->elements - at : tie->piece;
        size_t bytes = (size_t)n * sizeof(float);
        copy(e, pipe_place(e, e->channels, tie->out), mine + at, bytes);
        finish_copies(e);
        channel_send(e->channels, tie->out);
        channels_move(e->channels, (int[]){tie->out, tie->in}, 2);
        const float *theirs = (const float *)pipe_message(e, e->channels, tie->in);
        e->backend->table->flat->add(e->stream, mine + at, mine + at, theirs, n);
        finish_copies(e);
        channel_return(e->channels, tie->in);
    }
}

void ties_sum(Executor *e)
{
    const Plan *plan = e->plan;
    const Graph *g = plan->graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->tied < 0 || plan->gradient_at[i] == plan->value_at[i]) continue;
        int64_t first, count;
        int rank = e->grid->dp_rank;
        plan_share(plan, i, rank, &first, &count);
        float *own = e->level[0] + plan_sum_at(plan, plan->gradient_at[p->tied] + first, rank);
        const float *other = e->level[0] + plan_sum_at(plan, plan->gradient_at[i] + first, rank);
        e->backend->table->flat->add(e->stream, own, own, other, count);
    }
    for (int i = 0; i < e->tie_count; ++i) tie_exchange(e, &e->tie[i]);
}
