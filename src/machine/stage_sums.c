/* Simulates in a replay the sums over a stage's replicas, if the replicas are on several nodes. */
#include "replay.h"

/* The stage whose sums are computed. */
typedef struct StageInput {
    const Machine *machine;
    const ForecastInput *input;
    Level level;
    const Plan *plan;
    SumPlaces places;
} StageInput;

/* ---- buckets ---- */

/* Sets part[b] to the fraction of a pass after which bucket b is complete. The pass is the one that
 * computes gradients of weights. */
static Status bucket_parts(const StageInput *s, const ChunkPlan *chunk, double *part)
{
    bool split = s->input->schedule->split;
    const ChunkInput c = {s->machine, s->input, s->plan, chunk, s->level, NULL};
    double time = 0, *all = &time;
    for (Pass p = split ? PASS_WEIGHT : PASS_BACKWARD; p < PASSES; ++p)
        for (int i = 0; i < chunk->pass[p].count; ++i) {
            const Action *a = &chunk->pass[p].action[i];
            TRY(add_action(&c, a, all, all));
            if (a->kind == ACTION_BUCKET) part[a->index] = time;
        }
    for (int b = 0; b < chunk->buckets.count; ++b) part[b] = time > 0 ? part[b] / time : 1;
    return OK;
}

/* Returns true if gradients leave the rank after this task. Sharded gradients leave after each
 * micro-batch, other gradients after the last one. */
static bool task_leaves(const ForecastInput *input, const Plan *plan, const Task *task)
{
    TaskKind filling = input->schedule->split ? TASK_BACKWARD_WEIGHT : TASK_BACKWARD;
    bool last = task->micro == input->schedule->shape.micro_batches - 1;
    return task->kind == filling && (last || plan_shards_gradients(plan));
}

int stage_sums_buckets(const StageSums *sums, const ForecastInput *input, int stage,
                       const Task *task)
{
    const Plan *plan = input->plan[stage];
    if (sums->count == 0 || !task_leaves(input, plan, task)) return 0;
    return plan->chunk[schedule_index_on_stage(input->schedule, task->chunk)].buckets.count;
}

/* ---- costs ---- */

/* Computes rounds, bytes and times of the sum of a bucket (sum_cost in parallel/sums.h). */
static Status sum_of_bucket(const StageInput *s, double elements, StageSum *sum)
{
    const SumCost cost = sum_between_nodes(s->machine, s->input, s->plan, s->places, elements, true,
                                           s->plan->zero == 0);
    double wire_s = cost.bytes * s->places.sharers * s->machine->network_link.s_per_byte;
    sum->rounds = cost.rounds;
    sum->round_bytes = cost.bytes / cost.rounds;
    sum->latency_s = (cost.seconds - wire_s) / cost.rounds;
    return sum_on_node(s->machine, s->input, s->places.width, elements * sizeof(float),
                       &sum->on_node_s);
}

/* Fills the list of sums in the order of the stage's tasks. */
static Status list_sums(const StageInput *s, int stage, int ranks, StageSums *sums)
{
    const Schedule *schedule = s->input->schedule;
    for (int i = 0; i < schedule->count[stage]; ++i) {
        const Task *task = &schedule->task[stage][i];
        const ChunkPlan *chunk = &s->plan->chunk[schedule_index_on_stage(schedule, task->chunk)];
        if (!task_leaves(s->input, s->plan, task)) continue;
        sums->sum = mem_resize(sums->sum, (size_t)(sums->count + chunk->buckets.count + 1) *
                                              sizeof *sums->sum);
        for (int b = 0; b < chunk->buckets.count; ++b) {
            StageSum *sum = &sums->sum[sums->count++];
            *sum = (StageSum){.ranks_left = ranks};
            TRY(sum_of_bucket(s, (double)chunk->buckets.elements[b], sum));
        }
    }
    return OK;
}

Status stage_sums_init(StageSums *sums, const Machine *machine, const ForecastInput *input,
                       Level level, int stage, int ranks)
{
    const Plan *plan = input->plan[stage];
    const StageInput s = {machine, input, level, plan, sum_places(machine, plan->shape, stage)};
    *sums = (StageSums){.first_node = node_of(machine, plan->shape, stage, 0),
                        .last_node = node_of(machine, plan->shape, stage, ranks - 1),
                        .node_ranks = ranks < s.places.sharers ? ranks : s.places.sharers,
                        .chunks = plan->chunk_count};
    sums->part = mem_new((size_t)plan->chunk_count * sizeof *sums->part);
    if (s.places.sharers == 0 || plan->shape.dp == 1) return OK;
    for (int c = 0; c < plan->chunk_count; ++c) {
        size_t buckets = (size_t)plan->chunk[c].buckets.count + 1;
        sums->part[c] = mem_new(buckets * sizeof *sums->part[c]);
        TRY(bucket_parts(&s, &plan->chunk[c], sums->part[c]));
    }
    return list_sums(&s, stage, ranks, sums);
}

void stage_sums_fini(StageSums *sums)
{
    for (int c = 0; sums->part && c < sums->chunks; ++c) mem_free(&sums->part[c]);
    mem_free(&sums->part);
    mem_free(&sums->sum);
}

double stage_sums_events(const StageSums *sums)
{
    const double senders = (sums->last_node - sums->first_node + 1.0) * sums->node_ranks;
    double events = 0;
    for (int i = 0; i < sums->count; ++i)
        events += sums->sum[i].rounds * senders * (network_parts(sums->sum[i].round_bytes) + 1);
    return events;
}

/* ---- a replay ---- */

/* Sends the parcels of a round. Each node receives as much as it sends. more_s: seconds that are
 * added to the round's latency. */
static void send_round(StageSums *sums, Network *network, Events *events, double now, int stage,
                       double more_s)
{
    const StageSum *sum = &sums->sum[sums->next];
    sums->parcels_left = (sums->last_node - sums->first_node + 1) * sums->node_ranks;
    for (int i = 0; i < sums->parcels_left; ++i) {
        int node = sums->first_node + i / sums->node_ranks;
        network_send(network, events, now,
                     (Parcel){.from = node,
                              .to = node,
                              .bytes = sum->round_bytes,
                              .latency_s = sum->latency_s + more_s,
                              .message = -1,
                              .stage = stage});
    }
}

/* Begins the sum sums->next if there is one and all ranks have completed their parts of it. */
static void begin_next(StageSums *sums, Network *network, Events *events, double now, int stage)
{
    if (sums->next == sums->count || sums->sum[sums->next].ranks_left > 0) return;
    sums->rounds_left = sums->sum[sums->next].rounds;
    send_round(sums, network, events, now, stage, sums->sum[sums->next].on_node_s);
}

void stage_sums_complete(StageSums *sums, Network *network, Events *events, double now, int stage,
                         int number)
{
    --sums->sum[number].ranks_left;
    if (number == sums->next) begin_next(sums, network, events, now, stage);
}

void stage_sums_arrived(StageSums *sums, Network *network, Events *events, double now, int stage)
{
    if (--sums->parcels_left > 0) return;
    if (--sums->rounds_left > 0) {
        send_round(sums, network, events, now, stage, 0);
        return;
    }
    sums->end_s = now;
    ++sums->next;
    begin_next(sums, network, events, now, stage);
}
