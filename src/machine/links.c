/* Computes the times of messages and sums between the ranks of a grid, on a node and between
 * nodes. */
#include "private.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Checks that the machine's file has the time of messages on a node. ERR_CONFIG. */
static Status message_known(const Machine *m, const ForecastInput *input)
{
    if (m->has_message) return OK;
    return fail(ERR_CONFIG,
                "%s: has no time of messages on a node: add the key `message`, or measure it with "
                "weft bench machine -n 2 --save %s",
                input->path, input->path);
}

Status network_known(const Machine *m, const ForecastInput *input)
{
    if (m->has_network) return OK;
    return fail(ERR_CONFIG, "%s: has no time of messages between nodes: add the key `network`",
                input->path);
}

Status message_between_stages(const Machine *m, const ForecastInput *input, int from, int to,
                              double bytes, MessageCost *cost)
{
    const GridShape shape = input->plan[0]->shape;
    int crossing = 0;
    for (int r = 0; r < shape.dp * shape.tp; ++r)
        crossing += node_of(m, shape, from, r) != node_of(m, shape, to, r);
    if (crossing == 0) {
        TRY(message_known(m, input));
        /* a message in shared memory is copied twice: by its sender and by its receiver */
        *cost = (MessageCost){.copy = bytes * m->message_link.s_per_byte / 2,
                              .wire = m->message_link.latency_s};
        return OK;
    }
    TRY(network_known(m, input));
    int sharers = least(crossing, m->ranks);
    *cost = (MessageCost){.wire = m->network_link.latency_s +
                                  sharers * bytes * m->network_link.s_per_byte};
    return OK;
}

Status link_in_tensor_group(const Machine *m, const ForecastInput *input, Link *link)
{
    bool inside = m->nodes == 1 || m->ranks % input->plan[0]->shape.tp == 0;
    TRY(inside ? message_known(m, input) : network_known(m, input));
    *link = inside ? m->message_link : m->network_link;
    if (!inside) link->s_per_byte *= m->ranks;
    return OK;
}

/* Returns the number of neighbouring replicas that form a group on a node that has the replicas
 * `first` to `first` + count - 1. It is the largest power of two that divides both `first` and
 * `count`: the lowest bit that is set in either number. */
static int group_width(int first, int count)
{
    int both = first | count;
    return both & -both;
}

SumPlaces sum_places(const Machine *m, GridShape shape, int stage)
{
    SumPlaces places = {shape.dp, 0};
    if (node_of(m, shape, stage, 0) == node_of(m, shape, stage, shape.dp * shape.tp - 1))
        return places;
    for (int first = 0, next; first < shape.dp; first = next) {
        int node = node_of(m, shape, stage, first * shape.tp);
        for (next = first + 1; next < shape.dp; ++next)
            if (node_of(m, shape, stage, next * shape.tp) != node) break;
        places.width = least(places.width, group_width(first, next - first));
        int ranks = least((next - first) * shape.tp, m->ranks);
        if (ranks > places.sharers) places.sharers = ranks;
    }
    return places;
}

Status sum_on_node(const Machine *m, const ForecastInput *input, int ranks, double bytes,
                   double *seconds)
{
    *seconds = 0;
    if (ranks == 1) return OK;
    for (int i = 0; i < m->sum_count; ++i) {
        const SumTime *time = &m->sum_time[i];
        if (time->ranks != ranks) continue;
        *seconds = time->link.latency_s + bytes * time->link.s_per_byte;
        return OK;
    }
    if (!m->has_rates || !m->has_message)
        return fail(ERR_CONFIG,
                    "%s: has no time of sums over %d ranks: add the keys `rates` and `message`, or "
                    "measure it with weft bench machine -n %d --save %s",
                    input->path, ranks, ranks, input->path);
    /* the sum is made in a ring */
    *seconds = 2.0 * (ranks - 1) *
               (m->message_link.latency_s + bytes / ranks * m->message_link.s_per_byte);
    return OK;
}

SumCost sum_between_nodes(const Machine *m, const ForecastInput *input, const Plan *plan,
                          SumPlaces places, double elements, bool collect, bool spread)
{
    Link link = m->network_link;
    link.s_per_byte *= places.sharers;
    const SumShape shape = {.ranks = plan->shape.dp,
                            .width = places.width,
                            .arena_elements = plan->micro_grad_elements,
                            .elements = (int64_t)elements,
                            .collect = collect,
                            .spread = spread,
                            .is_push = collect && plan_shards_gradients(plan)};
    return sum_cost(&shape, sum_algorithm(&shape, input->sums), link);
}
