/* Checks latency and bandwidth between pairs of nodes, one rank each, and which network card they
 * use. In a round every node is in one pair (a round-robin tournament), so a node exchanges one
 * message at a time, and an even number p of nodes needs p - 1 rounds. With an odd number, the node
 * that is paired with the missing one pauses. Five nodes (5 is missing):
 *     round 0    0-5  1-4  2-3
 *     round 1    1-0  2-5  3-4      ...
 * With more than 64 nodes, each is paired with 63 others, spread evenly over the rounds. The best
 * of several messages counts. */
#include "cards.h"
#include "pairs.h"
#include "private.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { TAG_PAIR = 22, PINGS = 22, LARGE_BYTES = 1 << 20, LARGE_MESSAGES_MAX = 8 };
/* seconds that a node spends on all its pairs */
static const double BUDGET_S = 6;

int pairs_rounds(int size)
{
    int rounds = size + size % 2 - 1;
    return size < 2 ? 0 : rounds < PEERS_MAX ? rounds : PEERS_MAX;
}

int pairs_peer(int size, int round, int rank)
{
    int n = size + size % 2, rounds = pairs_rounds(size), peer;
    /* the round of the whole tournament of n - 1 rounds, of which only `rounds` are played */
    int turn = (int)((int64_t)round * (n - 1) / rounds);
    if (rank == n - 1)
        peer = (int)((int64_t)turn * (n / 2) % (n - 1));
    else
        peer = (turn - rank + n - 1) % (n - 1);
    if (peer == rank) peer = n - 1;
    return peer < size ? peer : -1;
}

/* ---- measuring ---- */

/* Both ends send `bytes` bytes at the same time, so the time of an exchange, which is returned, is
 * the time of one direction. buffer: twice as many bytes. */
static double exchange(MPI_Comm comm, int peer, char *buffer, int bytes)
{
    double begin_s = clock_s();
    if (MPI_Sendrecv(buffer, bytes, MPI_BYTE, peer, TAG_PAIR, buffer + bytes, bytes, MPI_BYTE, peer,
                     TAG_PAIR, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        die_lost("MPI_Sendrecv with another node failed");
    return clock_s() - begin_s;
}

/* Called by both ends of a pair. budget_s: seconds for the large messages. */
static struct Pair measure_pair(MPI_Comm comm, int rank, int peer, char *buffer, double budget_s)
{
    enum { SMALL_BYTES = 8 };
    struct Pair pair = {.latency_s = INFINITY};
    for (int i = 0; i < PINGS; ++i)
        pair.latency_s = fmin(pair.latency_s, exchange(comm, peer, buffer, SMALL_BYTES));
    double best_s = exchange(comm, peer, buffer, LARGE_BYTES);
    /* the lower rank decides how many messages follow */
    double more = fmin(fmax(budget_s / best_s, 1), LARGE_MESSAGES_MAX), theirs;
    if (MPI_Sendrecv(&more, 1, MPI_DOUBLE, peer, TAG_PAIR, &theirs, 1, MPI_DOUBLE, peer, TAG_PAIR,
                     comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        die_lost("MPI_Sendrecv with another node failed");
    if (peer < rank) more = theirs;
    for (int i = 0; i < (int)more; ++i)
        best_s = fmin(best_s, exchange(comm, peer, buffer, LARGE_BYTES));
    /* The ends measure different times, because a send may return while its data are still in a
     * local buffer. The longer time includes the transfer. */
    double mine[2] = {pair.latency_s, best_s}, other[2];
    if (MPI_Sendrecv(mine, 2, MPI_DOUBLE, peer, TAG_PAIR, other, 2, MPI_DOUBLE, peer, TAG_PAIR,
                     comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        die_lost("MPI_Sendrecv with another node failed");
    pair.latency_s = fmax(mine[0], other[0]);
    pair.bytes_per_s = LARGE_BYTES / fmax(mine[1], other[1]);
    return pair;
}

static void measure(Doctor *d, void *mine)
{
    Network *network = mine;
    const World *leaders = &d->leaders;
    if (!d->is_leader || leaders->size < 2) return;
    Card *before = mem_new(2 * CARDS_MAX * sizeof *before), *after = before + CARDS_MAX;
    char *buffer = mem_pages_new(2 * LARGE_BYTES);
    int *ranks = world_job_ranks(leaders), rounds = pairs_rounds(leaders->size);
    int cards_before = cards_read(d->options->root, before);
    for (int round = 0; round < rounds; ++round) {
        int peer = pairs_peer(leaders->size, round, leaders->rank);
        world_barrier(leaders);
        if (peer < 0) continue;
        struct Pair *pair = &network->pair[network->peers++];
        *pair = measure_pair(leaders->comm, leaders->rank, peer, buffer, BUDGET_S / 2 / rounds);
        pair->peer = ranks[peer];
    }
    int cards_after = cards_read(d->options->root, after);
    /* a card counts as used if it sent at least one large message for each peer */
    cards_compare(before, cards_before, after, cards_after, (double)LARGE_BYTES * network->peers,
                  network);
    mem_free(&ranks);
    mem_pages_free(buffer, 2 * LARGE_BYTES);
    mem_free(&before);
}

/* ---- judging ---- */

/* A metric of pairs in which more is better. */
typedef struct PairMetric {
    double (*value)(const struct Pair *pair);
    /* a node or a pair below this fraction of the median is reported */
    double fraction_min;
    /* printf format for a value and the median */
    const char *text;
    /* print the inverse of both */
    bool inverse;
    const char *remedy;
} PairMetric;

static void metric_text(char *out, size_t bytes, const PairMetric *m, double value, double usual)
{
    snprintf(out, bytes, m->text, m->inverse ? 1 / value : value, m->inverse ? 1 / usual : usual);
}

/* Judges each node by its best pair: if the node's own link is good, at least one of its pairs is.
 * Fills best[rank]. Returns the median of the nodes' best pairs. */
static double judge_nodes(const Allocation *a, const Network *n, const PairMetric *m, double *best,
                          Report *report)
{
    char text[160];
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) best[r] = fmax(best[r], m->value(&n[r].pair[i]));
    double usual = median_of_nodes(a, best, sizeof *best, 0);
    for (int r = 0; r < a->ranks; ++r) {
        if (best[r] == 0 || best[r] >= m->fraction_min * usual) continue;
        metric_text(text, sizeof text, m, best[r], usual);
        report_add_host(report, SEVERITY_WARN, r, m->remedy, "best pair %s, the median of nodes",
                        text);
    }
    return usual;
}

/* Judges each pair of good nodes, which shows the path between them. best, usual: results of
 * judge_nodes. Returns the median of all pairs. */
static double judge_paths(const Allocation *a, const Network *n, const PairMetric *m,
                          const double *best, double usual, Report *report)
{
    const double best_min = m->fraction_min * usual;
    char text[160];
    int count = 0;
    double *value = mem_new(((size_t)a->ranks * PEERS_MAX + 1) * sizeof *value);
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) value[count++] = m->value(&n[r].pair[i]);
    double usual_pair = count ? median(value, count) : 0;
    mem_free(&value);
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) {
            int peer = n[r].pair[i].peer;
            double pair_value = m->value(&n[r].pair[i]);
            bool bad_node = best[r] < best_min || best[peer] < best_min;
            /* both ends have measured the pair: report it once */
            if (r > peer || bad_node || pair_value >= m->fraction_min * usual_pair) continue;
            metric_text(text, sizeof text, m, pair_value, usual_pair);
            report_add_host(report, SEVERITY_WARN, r, m->remedy,
                            "pair with %s: %s, the median of pairs", a->place[peer].host, text);
        }
    return usual_pair;
}

/* Returns the median of all pairs; 0 if there are none. */
static double judge_pairs(const Allocation *a, const void *all, const PairMetric *metric,
                          Report *report)
{
    double *best = mem_new((size_t)a->ranks * sizeof *best);
    double usual = judge_nodes(a, all, metric, best, report);
    double usual_pair = judge_paths(a, all, metric, best, usual, report);
    mem_free(&best);
    return usual_pair;
}

static const char *sample_note(const Allocation *a)
{
    return a->nodes > PEERS_MAX + 1 ? " over 63 pairs of each node" : "";
}

/* in 1/us */
static double inverse_latency(const struct Pair *pair)
{
    return 1e-6 / pair->latency_s;
}

/* in MB/s */
static double rate(const struct Pair *pair)
{
    return 1e-6 * pair->bytes_per_s;
}

static void judge_latency(const Check *check, const Allocation *a, const void *all, Report *report)
{
    PairMetric metric = {
        .value = inverse_latency,
        .fraction_min = 1 / check->threshold,
        .text = "%.1f us for 8 bytes, more than three times %.1f",
        .inverse = true,
        .remedy = "ethtool -S; other jobs on that node; another node (sbatch --exclude)"};
    double usual = judge_pairs(a, all, &metric, report);
    if (usual > 0)
        report_set_summary(report, "%.1f us between nodes, the median%s", 1 / usual,
                           sample_note(a));
    else
        report_set_summary(report, "one node");
}

static void judge_rate(const Check *check, const Allocation *a, const void *all, Report *report)
{
    PairMetric metric = {
        .value = rate,
        .fraction_min = check->threshold,
        .text = "%.0f MB/s, less than 80 %% of %.0f",
        .remedy = "cable, card, switch: ethtool, ibstat; another node (sbatch --exclude)"};
    double usual = judge_pairs(a, all, &metric, report);
    if (usual > 0)
        report_set_summary(report, "%.0f MB/s between nodes each way, the median%s", usual,
                           sample_note(a));
    else
        report_set_summary(report, "one node");
}

/* Judges the card that carried the messages: whether most nodes use one of this name and MTU, and
 * whether a faster card of the node was idle. */
static void judge_card(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Network *n = all;
    const char *usual = most_frequent_text(a, all, sizeof *n, offsetof(Network, used.name));
    double *mtus = mem_new((size_t)a->ranks * sizeof *mtus);
    for (int r = 0; r < a->ranks; ++r) mtus[r] = n[r].used.mtu;
    double usual_mtu = median_of_nodes(a, mtus, sizeof *mtus, 0);
    mem_free(&mtus);
    if (usual || a->nodes == 1)
        report_set_summary(report, "%s", usual ? usual : "one node");
    else
        report_skip(report, "not known");
    for (int r = 0; r < a->ranks; ++r) {
        const Card *used = &n[r].used, *fastest = &n[r].fastest;
        if (!*used->name || !is_node_leader(a, r)) continue;
        if (strcmp(used->name, usual) != 0)
            report_add_host(report, SEVERITY_WARN, r,
                            "mpirun --mca btl_tcp_if_include NETWORK/BITS, UCX_NET_DEVICES",
                            "messages go over %s, on most nodes over %s", used->name, usual);
        else if (used->mtu > 0 && used->mtu != (int)usual_mtu)
            report_add_host(report, SEVERITY_WARN, r,
                            "ip link set CARD mtu SIZE (the administrator)",
                            "packets of %d bytes on %s, on most nodes of %.0f", used->mtu,
                            used->name, usual_mtu);
        if (used->bytes_per_s > 0 && fastest->bytes_per_s > used->bytes_per_s &&
            fastest->sent < check->threshold * used->sent)
            report_add_host(
                report, SEVERITY_WARN, r,
                "UCX_NET_DEVICES, mpirun --mca btl_tcp_if_include; ompi_info | grep ucx",
                "messages go over %s (%.0f MB/s), and %s (%.0f MB/s) is idle", used->name,
                1e-6 * used->bytes_per_s, fastest->name, 1e-6 * fastest->bytes_per_s);
    }
}

const Check check_latency = {
    .name = "latency",
    .threshold_meaning = "multiple of the median",
    .threshold = 3,
    .limit_s = 12,
    .bytes = sizeof(Network),
    .measure = measure,
    .judge = judge_latency,
};
const Check check_rate = {
    .name = "bandwidth",
    .threshold_meaning = "fraction of the median",
    .threshold = 0.8,
    .bytes = sizeof(Network),
    .judge = judge_rate,
};
const Check check_card = {
    .name = "network card",
    .threshold_meaning = "fraction of what the card in use sent",
    .threshold = 0.1,
    .bytes = sizeof(Network),
    .judge = judge_card,
};
