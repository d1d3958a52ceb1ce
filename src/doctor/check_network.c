/* Latency and bandwidth between pairs of nodes, one rank each. In a round every node is in one pair
 * (a round-robin tournament), so a node exchanges one message at a time, and p nodes need p - 1
 * rounds. With five nodes and an empty place (5, -):
 *     round 0    0-5(-)  1-4  2-3
 *     round 1    1-0     2-5(-)  3-4      ...
 * With more than 64 nodes, each is paired with 63 others, spread evenly. The best of several
 * messages counts. */
#include "cards.h"
#include "pairs.h"
#include "private.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { TAG_PAIR = 22, PINGS = 20, LARGE_BYTES = 1 << 20, LARGE_MOST = 8 };
/* seconds that a node spends on all its pairs */
static const double BUDGET_S = 6;

int pairs_rounds(int size)
{
    int rounds = size + size % 2 - 1;
    return size < 2 ? 0 : rounds < PEERS ? rounds : PEERS;
}

int pairs_peer(int size, int round, int rank)
{
    int n = size + size % 2, rounds = pairs_rounds(size), peer;
    /* number of this round among all n - 1 rounds of the tournament */
    int turn = (int)((int64_t)round * (n - 1) / rounds);
    if (rank == n - 1)
        peer = (int)((int64_t)turn * (n / 2) % (n - 1));
    else
        peer = (turn - rank + n - 1) % (n - 1);
    if (peer == rank) peer = n - 1;
    return peer < size ? peer : -1;
}

/* ---- measuring ---- */

static double exchange(MPI_Comm comm, int peer, char *buffer, int bytes)
{
    double begin_s = clock_s();
    if (MPI_Sendrecv(buffer, bytes, MPI_BYTE, peer, TAG_PAIR, buffer + bytes, bytes, MPI_BYTE, peer,
                     TAG_PAIR, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        die_lost("MPI_Sendrecv with another node failed");
    return clock_s() - begin_s;
}

/* Both ends send at the same time, so the time of an exchange is the time of one direction. */
static struct Pair measure_pair(MPI_Comm comm, int rank, int peer, char *buffer, double budget_s)
{
    enum { SMALL_BYTES = 8, WARM = 2 };
    struct Pair pair = {.latency_s = INFINITY};
    for (int i = 0; i < PINGS + WARM; ++i)
        pair.latency_s = fmin(pair.latency_s, exchange(comm, peer, buffer, SMALL_BYTES));
    double best_s = exchange(comm, peer, buffer, LARGE_BYTES);
    /* the lower rank decides how many messages follow */
    double more = fmin(fmax(budget_s / best_s, 1), LARGE_MOST), theirs;
    if (MPI_Sendrecv(&more, 1, MPI_DOUBLE, peer, TAG_PAIR, &theirs, 1, MPI_DOUBLE, peer, TAG_PAIR,
                     comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        die_lost("MPI_Sendrecv with another node failed");
    if (peer < rank) more = theirs;
    for (int i = 0; i < (int)more; ++i)
        best_s = fmin(best_s, exchange(comm, peer, buffer, LARGE_BYTES));
    /* An end may finish while its data still wait in its own buffers: the slower end saw the
     * link. */
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
    if (!d->leads || leaders->size < 2) return;
    Card *before = mem_new(2 * CARDS * sizeof *before), *after = before + CARDS;
    char *buffer = mem_pages_new(2 * LARGE_BYTES);
    int *ranks = world_job_ranks(leaders), rounds = pairs_rounds(leaders->size);
    int cards = cards_read(d->options->root, before);
    for (int round = 0; round < rounds; ++round) {
        int peer = pairs_peer(leaders->size, round, leaders->rank);
        world_barrier(leaders);
        if (peer < 0) continue;
        struct Pair *pair = &network->pair[network->peers++];
        *pair = measure_pair(leaders->comm, leaders->rank, peer, buffer, BUDGET_S / 2 / rounds);
        pair->rank = ranks[peer];
    }
    int cards_after = cards_read(d->options->root, after);
    /* the card that carried the larger part of the bytes */
    cards_compare(before, cards, after, cards_after, (double)LARGE_BYTES * network->peers, network);
    mem_free(&ranks);
    mem_pages_free(buffer, 2 * LARGE_BYTES);
    mem_free(&before);
}

/* ---- judging ---- */

/* A figure in which more is better. A node is judged by its best pair: if its own link is good,
 * then at least one of its pairs is. Pairs between good nodes are judged singly: they show the
 * paths between nodes. */
typedef struct PairFigure {
    double (*value)(const struct Pair *pair);
    /* a node or a pair below this share of the median is reported */
    double bad;
    /* printf format of the figure and the median; inverse: print the inverse of both */
    const char *text;
    bool inverse;
    const char *cure;
} PairFigure;

static double best_of(const Network *n, const PairFigure *b)
{
    double best = 0;
    for (int i = 0; i < n->peers; ++i) best = fmax(best, b->value(&n->pair[i]));
    return best;
}

static void figure_text(char *out, size_t room, const PairFigure *b, double value, double usual)
{
    snprintf(out, room, b->text, b->inverse ? 1 / value : value, b->inverse ? 1 / usual : usual);
}

/* Fills best[rank]. Returns the median of the nodes' best pairs. */
static double judge_nodes(const Allocation *a, const Network *n, const PairFigure *b, double *best,
                          Report *report)
{
    char text[160];
    for (int r = 0; r < a->ranks; ++r) best[r] = best_of(&n[r], b);
    double usual = median_of_nodes(a, best, sizeof *best, 0);
    for (int r = 0; r < a->ranks; ++r) {
        if (best[r] == 0 || best[r] >= b->bad * usual) continue;
        figure_text(text, sizeof text, b, best[r], usual);
        report_host(report, SEVERITY_WARN, r, b->cure, "%s, the median of nodes, at best", text);
    }
    return usual;
}

static double judge_paths(const Allocation *a, const Network *n, const PairFigure *b,
                          const double *best, double usual, Report *report)
{
    char text[160];
    int count = 0;
    double *value = mem_new(((size_t)a->ranks * PEERS + 1) * sizeof *value);
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) value[count++] = b->value(&n[r].pair[i]);
    double middle = count ? median(value, count) : 0;
    mem_free(&value);
    for (int r = 0; r < a->ranks; ++r)
        for (int i = 0; i < n[r].peers; ++i) {
            int peer = n[r].pair[i].rank;
            double mine = b->value(&n[r].pair[i]);
            bool of_bad_node = best[r] < b->bad * usual || best[peer] < b->bad * usual;
            if (r > peer || of_bad_node || mine >= b->bad * middle) continue;
            figure_text(text, sizeof text, b, mine, middle);
            report_host(report, SEVERITY_WARN, r, b->cure, "with %s: %s, the median of pairs",
                        a->place[peer].host, text);
        }
    return middle;
}

/* Returns the median of all pairs; 0 if there are none. */
static double judge_pairs(const Allocation *a, const void *all, const PairFigure *figure,
                          Report *report)
{
    double *best = mem_new((size_t)a->ranks * sizeof *best);
    double usual = judge_nodes(a, all, figure, best, report);
    double middle = judge_paths(a, all, figure, best, usual, report);
    mem_free(&best);
    return middle;
}

static const char *sample_note(const Allocation *a)
{
    return a->nodes > PEERS + 1 ? ", of 63 pairs for each node" : "";
}

static double inverse_latency(const struct Pair *pair)
{
    return 1e-6 / pair->latency_s;
}

static double rate(const struct Pair *pair)
{
    return 1e-6 * pair->bytes_per_s;
}

static void judge_latency(const Check *check, const Allocation *a, const void *all, Report *report)
{
    PairFigure figure = {inverse_latency, 1 / check->threshold,
                         "%.1f us for 8 bytes, more than three times %.1f", true,
                         "ethtool -S; other jobs on that node; another node (sbatch --exclude)"};
    double middle = judge_pairs(a, all, &figure, report);
    if (middle > 0)
        report_summary(report, "%.1f us between nodes, the median%s", 1 / middle, sample_note(a));
    else
        report_summary(report, "one node");
}

static void judge_rate(const Check *check, const Allocation *a, const void *all, Report *report)
{
    PairFigure figure = {rate, check->threshold, "%.0f MB/s, less than 80 %% of %.0f", false,
                         "cable, card, switch: ethtool, ibstat; another node (sbatch --exclude)"};
    double middle = judge_pairs(a, all, &figure, report);
    if (middle > 0)
        report_summary(report, "%.0f MB/s between nodes each way, the median%s", middle,
                       sample_note(a));
    else
        report_summary(report, "one node");
}

/* Judges which card carried the messages: if a faster one carried none, it is not in use. */
static void judge_card(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Network *n = all;
    const char *most = most_common(a, all, sizeof *n, offsetof(Network, used.name));
    double mtu = 0, *mtus = mem_new((size_t)a->ranks * sizeof *mtus);
    for (int r = 0; r < a->ranks; ++r) mtus[r] = n[r].used.mtu;
    mtu = median_of_nodes(a, mtus, sizeof *mtus, 0);
    mem_free(&mtus);
    if (most || a->nodes == 1)
        report_summary(report, "%s", most ? most : "one node");
    else
        report_skip(report, "not known");
    for (int r = 0; r < a->ranks; ++r) {
        const Card *used = &n[r].used, *fastest = &n[r].fastest;
        if (!*used->name || !place_leads(a, r)) continue;
        if (strcmp(used->name, most) != 0)
            report_host(report, SEVERITY_WARN, r,
                        "mpirun --mca btl_tcp_if_include NETWORK/BITS, UCX_NET_DEVICES",
                        "messages go over %s, on most nodes over %s", used->name, most);
        else if (used->mtu > 0 && used->mtu != (int)mtu)
            report_host(report, SEVERITY_WARN, r, "ip link set CARD mtu SIZE (the administrator)",
                        "packets of %d bytes on %s, on most nodes of %.0f", used->mtu, used->name,
                        mtu);
        if (used->bytes_per_s > 0 && fastest->bytes_per_s > used->bytes_per_s &&
            fastest->sent < check->threshold * used->sent)
            report_host(report, SEVERITY_WARN, r,
                        "UCX_NET_DEVICES, mpirun --mca btl_tcp_if_include; ompi_info | grep ucx",
                        "messages go over %s (%.0f MB/s), and %s (%.0f MB/s) stood still",
                        used->name, 1e-6 * used->bytes_per_s, fastest->name,
                        1e-6 * fastest->bytes_per_s);
    }
}

const Check check_latency = {
    .name = "latency",
    .what = "multiple of the median",
    .threshold = 3,
    .limit_s = 12,
    .bytes = sizeof(Network),
    .measure = measure,
    .judge = judge_latency,
};
const Check check_rate = {
    .name = "bandwidth",
    .what = "fraction of the median",
    .threshold = 0.8,
    .bytes = sizeof(Network),
    .judge = judge_rate,
};
const Check check_card = {
    .name = "network card",
    .what = "fraction of what the card in use sent",
    .threshold = 0.1,
    .bytes = sizeof(Network),
    .judge = judge_card,
};
