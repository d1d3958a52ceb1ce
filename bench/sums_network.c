/* Makes the messages of each algorithm, and simulates them by discrete events. There are two kinds
 * of events: a port begins to send a message, and a step ends. */
#include "sums_network.h"
#include "parallel.h"
#include "../src/parallel/order/halving.h"

#include <math.h>

/* WINDOW: most pieces by which a sender may be ahead of a receiver. IN_FLIGHT: most pieces of a
 * rank in flight */
enum { WINDOW = 64, IN_FLIGHT = SUM_PIECES_IN_FLIGHT };

int sums_pieces_most = 64;
const char *const way_names[WAYS] = {"all to all", "halving", "ring", "recursive doubling",
                                     "Rabenseifner"};

/* ---- message patterns ---- */

/* receiving rank, and size in slices; a slice is 1 / ranks of a piece */
typedef struct Message {
    int to, slices;
} Message;

/* A rank's part in one step of a piece. */
typedef struct Step {
    /* index of its first message in Pattern.message, and number of its messages */
    int64_t first;
    int sends;
    /* number of messages that the step waits for */
    int receives;
} Step;

/* The messages of ranks 0 to simulated - 1. These are the ranks of the first leaf switch, or all
 * ranks. */
typedef struct Pattern {
    /* all ranks; simulated ranks; steps of a rank for a piece; most pieces of a rank in flight */
    int ranks, simulated, steps, in_flight;
    /* `steps` steps of each rank, and all messages; owned */
    Step *step;
    Message *message;
    int64_t messages, capacity;
} Pattern;

static Step *step_of(const Pattern *p, int rank, int step)
{
    return &p->step[(int64_t)rank * p->steps + step];
}

static void add_message(Pattern *p, Step *step, int to, int slices)
{
    if (p->messages == p->capacity) {
        p->capacity = 2 * p->capacity + 1024;
        p->message = mem_resize(p->message, (size_t)p->capacity * sizeof *p->message);
    }
    if (step->sends++ == 0) step->first = p->messages;
    p->message[p->messages++] = (Message){to, slices};
}

/* Both phases, reduce-scatter and all-gather, send the same messages. */
static void plan_all(Pattern *p, int rank)
{
    Step *collect = step_of(p, rank, 0);
    for (int i = 1; i < p->ranks; ++i) add_message(p, collect, (rank + i) % p->ranks, 1);
    collect->receives = p->ranks - 1;
    *step_of(p, rank, 1) = *collect;
}

/* Two ranks exchange messages in the round of the highest bit in which their ranks differ. */
static void plan_halving(Pattern *p, int rank)
{
    Halving *h = halving_new(rank, p->ranks);
    for (int i = 0; i < h->rounds; ++i) {
        const HalvingRound *round = &h->round[i];
        const HalvingMessage *received = &round->received;
        bool receives = received->end > received->begin;
        if (!receives && round->sends == 0) continue;
        int peer = receives ? received->peer : round->sent->peer;
        int level = 31 - __builtin_clz((unsigned)(rank ^ peer));
        Step *collect = step_of(p, rank, level), *spread = step_of(p, rank, p->steps - 1 - level);
        for (int k = 0; k < round->sends; ++k)
            add_message(p, collect, round->sent[k].peer, round->sent[k].end - round->sent[k].begin);
        if (receives) add_message(p, spread, received->peer, received->end - received->begin);
        collect->receives = receives;
        spread->receives = round->sends;
    }
    halving_free(&h);
}

static void plan_ring(Pattern *p, int rank)
{
    Step *first = step_of(p, rank, 0);
    add_message(p, first, (rank + 1) % p->ranks, 1);
    first->receives = 1;
    for (int i = 1; i < p->steps; ++i) *step_of(p, rank, i) = *first;
}

/* ranks: a power of two */
static void plan_doubling(Pattern *p, int rank)
{
    for (int i = 0; i < p->steps; ++i) {
        Step *step = step_of(p, rank, i);
        add_message(p, step, rank ^ 1 << i, p->ranks);
        step->receives = 1;
    }
}

static const struct WayRow {
    void (*plan)(Pattern *, int rank);
    /* true: a sum is divided into pieces, as in training; false: it is one piece */
    bool pieces;
} ways[WAYS] = {{.plan = plan_all, .pieces = true},
                {.plan = plan_halving, .pieces = true},
                {.plan = plan_ring},
                {.plan = plan_doubling},
                {.plan = plan_halving}};

static int steps_of(Way way, int ranks)
{
    int rounds = halving_rounds(ranks);
    return way == ALL ? 2 : way == RING ? 2 * (ranks - 1) : way == DOUBLING ? rounds : 2 * rounds;
}

static bool is_power_of_2(int n)
{
    return (n & (n - 1)) == 0;
}

/* Returns true if all leaf switches carry the same messages at the same time. */
static bool switches_are_equal(Way way, int ranks, int group)
{
    bool symmetric = way == ALL || way == RING;
    return ranks % group == 0 && (symmetric || (is_power_of_2(ranks) && is_power_of_2(group)));
}

static Pattern pattern_new(Way way, int ranks, int simulated, int64_t elements)
{
    Pattern p = {.ranks = ranks,
                 .simulated = simulated,
                 .steps = steps_of(way, ranks),
                 .in_flight = ways[way].pieces ? sum_pieces_in_flight(1, elements) : 1};
    p.step = mem_new((size_t)p.simulated * (size_t)p.steps * sizeof *p.step);
    for (int r = 0; r < p.simulated; ++r) ways[way].plan(&p, r);
    return p;
}

static void pattern_free(Pattern *p)
{
    mem_free(&p->step);
    mem_free(&p->message);
}

/* ---- simulation ---- */

/* Messages next .. end - 1 of a slot's step, which wait for the port of their rank since time
 * `at`. */
typedef struct Batch {
    int64_t next, end;
    double at;
    int slot;
} Batch;

/* A piece in flight. */
typedef struct Slot {
    int piece, step;
    /* busy: the slot has a piece; sent: the messages of its step have been sent, the last one at
     * sent_s */
    bool busy, sent;
    double sent_s;
} Slot;

typedef struct Rank {
    /* time at which the port has sent its latest message, and time at which the rank has prepared
     * the next message */
    double port_free_s, prepared_s;
    /* ring buffer of `queued` batches from `first` on; a slot has at most one batch */
    Batch queue[IN_FLIGHT];
    int first, queued, next_piece;
    Slot slot[IN_FLIGHT];
} Rank;

/* Messages that have arrived for a step of a piece: their number, and the time of the last one. */
typedef struct Arrived {
    double last_s;
    int piece, count;
} Arrived;

/* A rank's port begins to send its next message (slot -1), or the step of a slot ends. */
typedef struct Event {
    double at;
    int rank, slot;
} Event;

typedef struct Sim {
    const Pattern *pattern;
    const Net *net;
    double bytes, piece_bytes, end_s;
    int pieces;
    /* state of each rank; owned, like the other arrays */
    Rank *rank;
    /* times at which the uplink and the downlink of each leaf switch, and the receiving port of
     * each rank, are free */
    double *up, *down, *in;
    /* the messages that have arrived, for each rank, piece of the window and step */
    Arrived *arrived;
    /* heap ordered by `before`; owned */
    Event *event;
    int events, capacity;
} Sim;

/* Returns true if event a comes before event b. At equal times, ends of steps come before sends,
 * and the sends of the ranks have the same order at every leaf switch. */
static bool before(const Sim *s, const Event *a, const Event *b)
{
    if (a->at != b->at) return a->at < b->at;
    if ((a->slot < 0) != (b->slot < 0)) return a->slot >= 0;
    int group = s->net->group, x = a->rank % group, y = b->rank % group;
    if (x != y) return x < y;
    return a->rank != b->rank ? a->rank < b->rank : a->slot < b->slot;
}

static void event_push(Sim *s, Event event)
{
    if (s->events == s->capacity) {
        s->capacity = 2 * s->capacity + 64;
        s->event = mem_resize(s->event, (size_t)s->capacity * sizeof *s->event);
    }
    int at = s->events++;
    for (; at > 0 && before(s, &event, &s->event[(at - 1) / 2]); at = (at - 1) / 2)
        s->event[at] = s->event[(at - 1) / 2];
    s->event[at] = event;
}

static Event event_pop(Sim *s)
{
    Event first = s->event[0], last = s->event[--s->events];
    int at = 0;
    for (int child = 1; child < s->events; child = 2 * at + 1) {
        if (child + 1 < s->events && before(s, &s->event[child + 1], &s->event[child])) ++child;
        if (!before(s, &s->event[child], &last)) break;
        s->event[at] = s->event[child];
        at = child;
    }
    s->event[at] = last;
    return first;
}

static Arrived *arrived_of(const Sim *s, int rank, int piece, int step)
{
    int64_t window = s->pattern->in_flight == 1 ? 1 : WINDOW;
    return &s->arrived[((int64_t)rank * window + piece % window) * s->pattern->steps + step];
}

/* Schedules the end of the slot's step if all its messages have been sent and received. */
static void end_step_if_done(Sim *s, int rank, int slot)
{
    Slot *piece = &s->rank[rank].slot[slot];
    int receives = step_of(s->pattern, rank, piece->step)->receives;
    Arrived *a = arrived_of(s, rank, piece->piece, piece->step);
    if (!piece->sent || (receives > 0 && (a->piece != piece->piece || a->count != receives)))
        return;
    double at = receives > 0 && a->last_s > piece->sent_s ? a->last_s : piece->sent_s;
    a->count = 0;
    event_push(s, (Event){at, rank, slot});
}

/* Counts a message that arrives for a step of a piece at time `at`. */
static void receive(Sim *s, int rank, int piece, int step, double at)
{
    Arrived *a = arrived_of(s, rank, piece, step);
    if (a->count == 0) *a = (Arrived){.piece = piece};
    if (a->piece != piece) die("a message is more than %d pieces ahead", WINDOW);
    if (at > a->last_s) a->last_s = at;
    if (++a->count != step_of(s->pattern, rank, step)->receives) return;
    for (int i = 0; i < s->pattern->in_flight; ++i) {
        const Slot *slot = &s->rank[rank].slot[i];
        if (slot->busy && slot->piece == piece && slot->step == step) end_step_if_done(s, rank, i);
    }
}

/* Schedules the port's next message, for the time at which the port is free and the rank has
 * prepared the message. The rank prepares it while the port sends the previous message, or, with
 * one thread, after that. */
static void schedule_send(Sim *s, int rank)
{
    Rank *r = &s->rank[rank];
    double at = r->queue[r->first].at;
    if (s->net->one_thread && r->port_free_s > at) at = r->port_free_s;
    r->prepared_s = (at > r->prepared_s ? at : r->prepared_s) + s->net->overhead_s;
    event_push(s,
               (Event){r->prepared_s > r->port_free_s ? r->prepared_s : r->port_free_s, rank, -1});
}

/* Begins the step of a slot. Skips steps without messages; after the last step, begins the first
 * step of the next piece. */
static void begin_step(Sim *s, int rank, int slot, double now)
{
    Rank *r = &s->rank[rank];
    Slot *piece = &r->slot[slot];
    const Step *step = NULL;
    while (piece->step < s->pattern->steps) {
        step = step_of(s->pattern, rank, piece->step);
        if (step->sends > 0 || step->receives > 0) break;
        ++piece->step;
    }
    if (piece->step == s->pattern->steps) {
        piece->busy = false;
        if (now > s->end_s) s->end_s = now;
        if (r->next_piece == s->pieces) return;
        *piece = (Slot){.piece = r->next_piece++, .busy = true};
        begin_step(s, rank, slot, now);
        return;
    }
    piece->sent = step->sends == 0;
    piece->sent_s = now;
    if (piece->sent) {
        end_step_if_done(s, rank, slot);
        return;
    }
    r->queue[(r->first + r->queued) % IN_FLIGHT] =
        (Batch){step->first, step->first + step->sends, now, slot};
    if (r->queued++ == 0) schedule_send(s, rank);
}

/* Sends a message over a link, which it reaches at time `at` and occupies for takes_s seconds.
 * *link_free_s: time from which the link is free. Returns the time at which the message begins to
 * pass the link; raises *end_s to the time at which it has passed. */
static double pass_link(double *link_free_s, double at, double takes_s, double *end_s)
{
    double begin_s = at > *link_free_s ? at : *link_free_s;
    *link_free_s = begin_s + takes_s;
    if (*link_free_s > *end_s) *end_s = *link_free_s;
    return begin_s;
}

static void send_next(Sim *s, int rank, double now)
{
    const Net *net = s->net;
    Rank *r = &s->rank[rank];
    Batch *batch = &r->queue[r->first];
    Slot *slot = &r->slot[batch->slot];
    const Message *m = &s->pattern->message[batch->next++];
    double left = s->bytes - slot->piece * s->piece_bytes;
    double piece = left < s->piece_bytes ? left : s->piece_bytes;
    double takes = piece * m->slices / s->pattern->ranks * net->s_per_byte;
    double at = now, end = at + takes;
    int to = m->to % s->pattern->simulated;
    r->port_free_s = end;
    if (rank / net->group != m->to / net->group) {
        double shared = takes * net->over / net->group;
        at = pass_link(&s->up[rank / net->group], at, shared, &end);
        at = pass_link(&s->down[to / net->group], at, shared, &end);
    }
    pass_link(&s->in[to], at, takes, &end);
    int step = slot->step;
    if (batch->next == batch->end) {
        r->first = (r->first + 1) % IN_FLIGHT;
        --r->queued;
        slot->sent = true;
        slot->sent_s = r->port_free_s;
        end_step_if_done(s, rank, (int)(slot - r->slot));
    }
    if (r->queued > 0) schedule_send(s, rank);
    receive(s, to, slot->piece, step, end + net->latency_s);
}

/* Returns the time at which the last rank has the whole sum. bytes: size of the sum; piece_bytes:
 * size of a piece. */
static double simulate(const Pattern *pattern, const Net *net, double bytes, double piece_bytes)
{
    size_t ranks = (size_t)pattern->simulated, steps = (size_t)pattern->steps;
    Sim s = {.pattern = pattern,
             .net = net,
             .bytes = bytes,
             .piece_bytes = piece_bytes,
             .pieces = (int)ceil(bytes / piece_bytes - 1e-9)};
    s.rank = mem_new(ranks * sizeof *s.rank);
    s.up = mem_new(3 * ranks * sizeof *s.up);
    s.down = s.up + ranks;
    s.in = s.down + ranks;
    s.arrived = mem_new(ranks * steps * (pattern->in_flight == 1 ? 1 : WINDOW) * sizeof *s.arrived);
    for (int i = 0; i < pattern->in_flight; ++i)
        for (int r = 0; r < pattern->simulated; ++r) {
            s.rank[r].slot[i].step = pattern->steps;
            begin_step(&s, r, i, 0);
        }
    while (s.events > 0) {
        Event event = event_pop(&s);
        if (event.slot < 0) {
            send_next(&s, event.rank, event.at);
        } else {
            ++s.rank[event.rank].slot[event.slot].step;
            begin_step(&s, event.rank, event.slot, event.at);
        }
    }
    for (int r = 0; r < pattern->simulated; ++r)
        for (int i = 0; i < pattern->in_flight; ++i)
            if (s.rank[r].slot[i].busy) die("rank %d waits for ever", r);
    mem_free(&s.rank);
    mem_free(&s.up);
    mem_free(&s.arrived);
    mem_free(&s.event);
    return s.end_s;
}

/* Returns the time of a sum. If it has more than sums_pieces_most pieces, the time is extrapolated
 * from the rate of the second half of the simulated pieces. */
static double long_sum_s(const Pattern *pattern, const Net *net, double bytes, double piece_bytes)
{
    int most = sums_pieces_most;
    if (bytes <= most * piece_bytes) return simulate(pattern, net, bytes, piece_bytes);
    double whole = simulate(pattern, net, most * piece_bytes, piece_bytes);
    double half = simulate(pattern, net, most / 2 * piece_bytes, piece_bytes);
    return whole + (bytes / piece_bytes - most) * (whole - half) / (most - most / 2);
}

/* Counts the messages of one piece, and their slices, on the rank that sends most. */
static void count_sent(const Pattern *p, int *messages, int64_t *slices)
{
    *messages = 0;
    *slices = 0;
    for (int r = 0; r < p->simulated; ++r) {
        int sends = 0;
        int64_t sent = 0;
        for (int i = 0; i < p->steps; ++i) {
            const Step *step = step_of(p, r, i);
            sends += step->sends;
            for (int k = 0; k < step->sends; ++k) sent += p->message[step->first + k].slices;
        }
        if (sends > *messages) *messages = sends;
        if (sent > *slices) *slices = sent;
    }
}

SimulatedSum sum_simulated(Way way, int ranks, double bytes, const Net *net, bool every)
{
    Net grouped = *net;
    if (grouped.group == 0 || grouped.group > ranks) grouped.group = ranks;
    if (way == DOUBLING && !is_power_of_2(ranks)) return (SimulatedSum){.seconds = (double)NAN};
    double piece_bytes = bytes;
    int64_t elements = (int64_t)(bytes / sizeof(float));
    if (ways[way].pieces)
        piece_bytes = (double)sum_piece_elements(ranks, 1, elements) * sizeof(float);
    bool one = !every && switches_are_equal(way, ranks, grouped.group);
    Pattern p = pattern_new(way, ranks, one ? grouped.group : ranks, elements);
    int messages;
    int64_t slices;
    count_sent(&p, &messages, &slices);
    SimulatedSum sum = {.seconds = long_sum_s(&p, &grouped, bytes, piece_bytes),
                        .messages = messages * ceil(bytes / piece_bytes - 1e-9),
                        .bytes = bytes * (double)slices / ranks};
    pattern_free(&p);
    return sum;
}
