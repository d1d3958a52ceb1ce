/* Checks latency and bandwidth between pairs of nodes, and which network card carries the messages.
 * One rank of each node takes part. Pairs are measured in the rounds of a tournament
 * (topo/pairs.h). In a round every node is in at most one pair, so a node exchanges one message at
 * a time. If there are more than 64 nodes, each is paired with at most 63 others, in rounds spread
 * evenly over the tournament. The best of several messages counts. The time of each round is
 * limited, so that even with a slow link the check ends within its time limit and reports the
 * link. */
#include "measurements.h"
#include "private.h"

#include "topo/pairs.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* time limits for all pairs of a node together. PINGS_S: small messages; LARGE_S: large messages */
static const double PINGS_S = 1, LARGE_S = 3;

/* ---- measuring ---- */

static void measure(Doctor *d, void *mine)
{
    Network *network = mine;
    const World *leaders = &d->leaders;
    if (!d->is_leader || leaders->size < 2) return;
    Card *before = mem_new(2 * CARDS_MAX * sizeof *before), *after = before + CARDS_MAX;
    PairLink link = {.comm = leaders->comm, .buffer = mem_pages_new(2 * PAIR_BYTES_MAX)};
    double sent_min = 0;
    int *ranks = world_job_ranks(leaders), rounds = pairs_rounds(leaders->size, PEERS_MAX);
    int cards_before = cards_read(d->options->root, before);
    for (int round = 0; round < rounds; ++round) {
        int bytes;
        link.peer = pairs_peer(leaders->size, rounds, round, leaders->rank);
        world_barrier(leaders);
        if (link.peer < 0) continue;
        struct Pair *pair = &network->pair[network->peers++];
        pair->peer = ranks[link.peer];
        pair->latency_s = pairs_latency(&link, PINGS_S / rounds);
        pair->bytes_per_s = pairs_rate(&link, LARGE_S / rounds, &bytes);
        sent_min += bytes;
    }
    int cards_after = cards_read(d->options->root, after);
    /* a card counts as used if it sent at least sent_min bytes: the bytes of one message to each
     * peer, of the size that pairs_rate has returned */
    cards_compare(before, cards_before, after, cards_after, sent_min, network);
    mem_free(&ranks);
    mem_pages_free(link.buffer, 2 * PAIR_BYTES_MAX);
    mem_free(&before);
}

void cards_compare(const Card *before, int count_before, const Card *after, int count,
                   double sent_min, Network *network)
{
    network->used = network->fastest = (Card){0};
    for (int i = 0; i < count; ++i) {
        Card card = after[i];
        if (card.sent_bytes < 0) continue;
        for (int b = 0; b < count_before; ++b)
            if (!strcmp(before[b].name, card.name)) card.sent_bytes -= before[b].sent_bytes;
        if (card.sent_bytes >= sent_min && card.sent_bytes > network->used.sent_bytes)
            network->used = card;
        if (card.up && card.bytes_per_s > network->fastest.bytes_per_s) network->fastest = card;
    }
}

/* ---- judging ---- */

/* A metric by which pairs of nodes are compared. */
typedef struct PairMetric {
    /* Returns the metric of a pair; a larger value is better. */
    double (*value)(const struct Pair *pair);
    /* a node or a pair whose value is below this fraction of the median is reported */
    double fraction_min;
    /* printf format for three numbers: the value, fraction_min in percent, and the median. If
     * `inverse` is true, the numbers are 1 / value, 1 / fraction_min and 1 / median. */
    const char *format;
    /* true: reciprocals are printed, because the reciprocal is the usual quantity */
    bool inverse;
    const char *remedy;
} PairMetric;

static void metric_text(char *out, size_t bytes, const PairMetric *m, double value,
                        double median_value)
{
    if (m->inverse)
        snprintf(out, bytes, m->format, 1 / value, 1 / m->fraction_min, 1 / median_value);
    else
        snprintf(out, bytes, m->format, value, 100 * m->fraction_min, median_value);
}

/* Judges each node by its best pair, because a node with a good link has at least one good pair.
 * best: values of the nodes' best pairs, [ranks], zeroed by the caller; the entries of node leaders
 * are filled. Returns their median. */
static double judge_nodes(const Allocation *a, const Network *n, const PairMetric *m, double *best,
                          Report *report)
{
    char text[160];
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) best[r] = fmax(best[r], m->value(&n[r].pair[i]));
    double median_best = median_of_nodes(a, best, sizeof *best, 0);
    for (int r = 0; r < a->ranks; ++r) {
        if (best[r] == 0 || best[r] >= m->fraction_min * median_best) continue;
        metric_text(text, sizeof text, m, best[r], median_best);
        report_add_host(report, SEVERITY_WARN, r, m->remedy, "best pair %s, the median of nodes",
                        text);
    }
    return median_best;
}

/* Judges each pair in which judge_nodes has found both nodes good. If such a pair is slow, the
 * fault is on the path between the nodes. best, median_best: results of judge_nodes. Returns the
 * median of all pairs, or 0 if there are none. */
static double judge_paths(const Allocation *a, const Network *n, const PairMetric *m,
                          const double *best, double median_best, Report *report)
{
    const double best_min = m->fraction_min * median_best;
    char text[160];
    int count = 0;
    double *value = mem_new(((size_t)a->ranks * PEERS_MAX + 1) * sizeof *value);
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) value[count++] = m->value(&n[r].pair[i]);
    double median_pair = count ? median(value, count) : 0;
    mem_free(&value);
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) {
            int peer = n[r].pair[i].peer;
            double pair_value = m->value(&n[r].pair[i]);
            bool bad_node = best[r] < best_min || best[peer] < best_min;
            /* both nodes have measured the pair, so it is reported only by the lower rank */
            if (r > peer || bad_node || pair_value >= m->fraction_min * median_pair) continue;
            metric_text(text, sizeof text, m, pair_value, median_pair);
            report_add_host(report, SEVERITY_WARN, r, m->remedy,
                            "pair with %s: %s, the median of pairs", a->place[peer].host, text);
        }
    return median_pair;
}

/* Judges the nodes, and then the pairs of good nodes. Returns the median of all pairs, or 0 if
 * there are none. */
static double judge_pairs(const Allocation *a, const void *all, const PairMetric *metric,
                          Report *report)
{
    double *best = mem_new((size_t)a->ranks * sizeof *best);
    double median_best = judge_nodes(a, all, metric, best, report);
    double median_pair = judge_paths(a, all, metric, best, median_best, report);
    mem_free(&best);
    return median_pair;
}

/* Returns words for the summary that say how many pairs were measured; "": all pairs. */
static const char *sample_note(const Allocation *a)
{
    return a->nodes > PEERS_MAX + 1 ? " over 63 pairs of each node" : "";
}

/* Returns the reciprocal of the pair's latency, in 1/us. */
static double inverse_latency(const struct Pair *pair)
{
    return 1e-6 / pair->latency_s;
}

/* Returns the pair's rate in MB/s. */
static double rate(const struct Pair *pair)
{
    return 1e-6 * pair->bytes_per_s;
}

static void judge_latency(const Check *check, const Allocation *a, const void *all, Report *report)
{
    PairMetric metric = {
        .value = inverse_latency,
        .fraction_min = 1 / check->threshold,
        .format = "%.1f us for 8 bytes, more than %.0f times %.1f",
        .inverse = true,
        .remedy = "ethtool -S; other jobs on that node; another node (sbatch --exclude)"};
    double median_pair = judge_pairs(a, all, &metric, report);
    if (median_pair > 0)
        report_set_summary(report, "%.1f us between nodes, the median%s", 1 / median_pair,
                           sample_note(a));
    else
        report_set_summary(report, "one node");
}

static void judge_rate(const Check *check, const Allocation *a, const void *all, Report *report)
{
    PairMetric metric = {
        .value = rate,
        .fraction_min = check->threshold,
        .format = "%.0f MB/s, less than %.0f %% of %.0f",
        .remedy = "cable, card, switch: ethtool, ibstat; another node (sbatch --exclude)"};
    double median_pair = judge_pairs(a, all, &metric, report);
    if (median_pair > 0)
        report_set_summary(report, "%.0f MB/s between nodes each way, the median%s", median_pair,
                           sample_note(a));
    else
        report_set_summary(report, "one node");
}

/* Returns the median MTU (largest packet) of the cards that the nodes have used. Returns 0 if no
 * MTU is known, as for InfiniBand. *share: result of most_or_other for this MTU. */
static int median_mtu(const Allocation *a, const Network *n, const char **share)
{
    double *mtu = mem_new((size_t)a->ranks * sizeof *mtu);
    for (int r = 0; r < a->ranks; ++r) mtu[r] = n[r].used.mtu;
    const int result = (int)median_of_nodes(a, mtu, sizeof *mtu, 0);
    mem_free(&mtu);
    int cards = 0, alike = 0;
    for (int r = 0; r < a->ranks; ++r) {
        if (n[r].used.mtu <= 0 || !is_node_leader(a, r)) continue;
        ++cards;
        alike += n[r].used.mtu == result;
    }
    *share = most_or_other(alike, cards);
    return result;
}

/* Judges the card that carried a node's messages. Warns if its name is not the most frequent one,
 * if its MTU is not the median of the nodes, or if a faster card of the node was idle. */
static void judge_card(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Network *n = all;
    const char *share, *mtu_share;
    const char *usual = most_frequent_text(a, all, sizeof *n, offsetof(Network, used.name), &share);
    const int usual_mtu = median_mtu(a, n, &mtu_share);
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
                            "messages go over %s, on %s nodes over %s", used->name, share, usual);
        else if (used->mtu > 0 && used->mtu != usual_mtu)
            report_add_host(report, SEVERITY_WARN, r,
                            "ip link set CARD mtu SIZE (the administrator)",
                            "packets of %d bytes on %s, on %s nodes of %d", used->mtu, used->name,
                            mtu_share, usual_mtu);
        if (used->bytes_per_s > 0 && fastest->bytes_per_s > used->bytes_per_s &&
            fastest->sent_bytes < check->threshold * used->sent_bytes)
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
