/* Orders against brute force, trees, places, slow pairs, files, and the tournament of pairs. */
#include "harness.h"
#include "topo.h"
#include "topo/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Makes a topology of ranks dealt to nodes in turn, as mpirun --map-by node does. Links within
 * nodes are `near` times as fast as those between. levels: number of different rates of a class. */
static Topology make(int ranks, int nodes, double near, int levels, int seed)
{
    size_t n = (size_t)ranks;
    Topology t = {.ranks = ranks,
                  .nodes = nodes,
                  .host = mem_new((size_t)nodes * sizeof *t.host),
                  .node = mem_new(n * sizeof *t.node),
                  .cpus = mem_new(n * sizeof *t.cpus),
                  .latency_s = mem_new(n * n * sizeof *t.latency_s),
                  .bytes_per_s = mem_new(n * n * sizeof *t.bytes_per_s),
                  .together_bytes_per_s = mem_new(n * n * sizeof *t.together_bytes_per_s)};
    RngKey key = rng_key((uint64_t)seed, RNG_TEST, 0, 0);
    for (int i = 0; i < nodes; ++i) t.host[i] = mem_format("host%d", i);
    for (int a = 0; a < ranks; ++a) {
        t.node[a] = a % nodes;
        t.cpus[a] = mem_text("0-1");
        for (int b = 0; b < a; ++b) {
            double drawn = 1 + rng_u32(key, (uint64_t)(a * ranks + b)) % (uint32_t)levels;
            double rate = 1e9 * drawn * (a % nodes == b % nodes ? near : 1);
            t.bytes_per_s[a * ranks + b] = t.bytes_per_s[b * ranks + a] = rate;
            t.together_bytes_per_s[a * ranks + b] = t.together_bytes_per_s[b * ranks + a] =
                rate / 2;
            t.latency_s[a * ranks + b] = t.latency_s[b * ranks + a] = 1e-6;
        }
    }
    return t;
}

/* Returns the rate of the slowest link of the best row that begins with row[0 .. fixed-1]. */
static double brute(const Topology *t, int *row, int fixed, bool ring)
{
    double best = 0;
    if (fixed == t->ranks) {
        best = INFINITY;
        for (int i = 0; i + 1 < t->ranks; ++i) best = fmin(best, topo_rate(t, row[i], row[i + 1]));
        return ring && t->ranks > 1 ? fmin(best, topo_rate(t, row[t->ranks - 1], row[0])) : best;
    }
    for (int r = 0; r < t->ranks; ++r) {
        bool used = false;
        for (int i = 0; i < fixed; ++i) used = used || row[i] == r;
        if (used) continue;
        row[fixed] = r;
        best = fmax(best, brute(t, row, fixed + 1, ring));
    }
    return best;
}

static bool is_permutation(const int *rank, int ranks)
{
    bool seen[1024] = {false};
    for (int i = 0; i < ranks; ++i) {
        if (rank[i] < 0 || rank[i] >= ranks || seen[rank[i]]) return false;
        seen[rank[i]] = true;
    }
    return true;
}

static void test_exact(void)
{
    for (int ranks = 1; ranks <= 7; ++ranks)
        for (int seed = 0; seed < 12; ++seed) {
            Topology t = make(ranks, 1, 1, 3 + seed, 100 * ranks + seed);
            Order ring, path;
            int row[8] = {0};
            topo_ring(&t, &ring);
            topo_path(&t, &path);
            CU_ASSERT_EQUAL(ring.search, ORDER_EXACT);
            CU_ASSERT_EQUAL(ring.rank[0], 0);
            CU_ASSERT(is_permutation(ring.rank, ranks) && is_permutation(path.rank, ranks));
            CU_ASSERT_EQUAL(ring.slowest, brute(&t, row, 1, true));
            CU_ASSERT_EQUAL(path.slowest, brute(&t, row, 0, false));
            order_fini(&ring);
            order_fini(&path);
            topo_fini(&t);
        }
}

/* Returns true if links of at least this rate connect all ranks. */
static bool connects(const Topology *t, double least)
{
    bool reached[64] = {true};
    for (int again = 1; again--;)
        for (int a = 0; a < t->ranks; ++a)
            for (int b = 0; b < t->ranks && reached[a]; ++b)
                if (!reached[b] && topo_rate(t, a, b) >= least) reached[b] = true, again = 1;
    for (int a = 0; a < t->ranks; ++a)
        if (!reached[a]) return false;
    return true;
}

static void test_tree(void)
{
    for (int ranks = 2; ranks <= 30; ++ranks) {
        Topology t = make(ranks, 1, 1, 50, ranks);
        RankTree tree;
        topo_tree(&t, &tree);
        CU_ASSERT(connects(&t, tree.slowest));
        CU_ASSERT(!connects(&t, tree.slowest * (1 + 1e-9)));
        int deepest = 0;
        for (int r = 0; r < ranks; ++r) {
            int depth = 0;
            for (int at = r; tree.parent[at] >= 0 && depth <= ranks; at = tree.parent[at]) {
                CU_ASSERT(topo_rate(&t, at, tree.parent[at]) >= tree.slowest);
                ++depth;
            }
            deepest = depth > deepest ? depth : deepest;
        }
        CU_ASSERT_EQUAL(deepest, tree.depth);
        CU_ASSERT_EQUAL(tree.parent[tree.root], -1);
        tree_fini(&tree);
        topo_fini(&t);
    }
    /* a chain hangs from its middle */
    Topology t = make(7, 1, 1, 1, 0);
    for (int a = 0; a + 1 < 7; ++a)
        t.bytes_per_s[a * 7 + a + 1] = t.bytes_per_s[(a + 1) * 7 + a] = 2e9;
    RankTree tree;
    topo_tree(&t, &tree);
    CU_ASSERT_EQUAL(tree.root, 3);
    CU_ASSERT_EQUAL(tree.depth, 3);
    tree_fini(&tree);
    topo_fini(&t);
}

/* Ranks of a node follow each other in rings and places, and a slow link is left out. */
static void test_levels(void)
{
    Topology t = make(64, 8, 10, 4, 1);
    Order ring;
    OrderSearch search;
    GridShape shape = {.dp = 4, .pp = 4, .tp = 4};
    topo_ring(&t, &ring);
    CU_ASSERT_EQUAL(ring.search, ORDER_LEVELS);
    CU_ASSERT(is_permutation(ring.rank, 64));
    int *map = topo_places(&t, &search);
    CU_ASSERT_EQUAL(search, ORDER_LEVELS);
    CU_ASSERT_EQUAL(map[0], 0);
    CU_ASSERT(is_permutation(map, 64));
    int crossings[2] = {0};
    for (int i = 0; i + 1 < 64; ++i) {
        crossings[0] += t.node[ring.rank[i]] != t.node[ring.rank[i + 1]];
        crossings[1] += t.node[map[i]] != t.node[map[i + 1]];
    }
    CU_ASSERT_EQUAL(crossings[0], 7);
    CU_ASSERT_EQUAL(crossings[1], 7);
    GridLinks before = topo_grid_links(&t, shape, NULL), after = topo_grid_links(&t, shape, map);
    CU_ASSERT(before.tp < 10e9 && after.tp >= 10e9);
    mem_free(&map);
    order_fini(&ring);
    topo_fini(&t);

    for (int nodes = 1; nodes <= 7; ++nodes) {
        t = make(24, nodes, 1, 1, 5);
        int *found = topo_places(&t, &search), *by_node = topo_places_by_node(&t);
        CU_ASSERT_EQUAL(memcmp(found, by_node, 24 * sizeof *found), 0);
        mem_free(&by_node);
        mem_free(&found);
        topo_fini(&t);
    }

    /* node 0 is the middle of the fastest path: its links to the other two nodes are fast */
    t = make(24, 3, 1, 1, 5);
    for (int a = 0; a < 24; ++a)
        for (int b = 0; b < 24; ++b)
            if (t.node[a] != t.node[b] && t.node[a] && t.node[b]) t.bytes_per_s[a * 24 + b] = 1e8;
    topo_path(&t, &ring);
    CU_ASSERT(ring.search == ORDER_LEVELS && is_permutation(ring.rank, 24));
    CU_ASSERT_EQUAL(ring.slowest, 1e9);
    order_fini(&ring);
    topo_fini(&t);

    t = make(30, 1, 1, 1000, 2);
    topo_ring(&t, &ring);
    CU_ASSERT_EQUAL(ring.search, ORDER_HEURISTIC);
    CU_ASSERT(is_permutation(ring.rank, 30));
    order_fini(&ring);
    topo_fini(&t);
}

/* The heuristic takes a time in proportion to the square of the ranks. With the cube it would take
 * a minute of the processor. */
static void test_many_ranks(void)
{
    Topology t = make(1000, 1, 1, 1000000, 4);
    Order path;
    clock_t begin = clock();
    topo_path(&t, &path);
    CU_ASSERT((double)(clock() - begin) / CLOCKS_PER_SEC < 5);
    CU_ASSERT_EQUAL(path.search, ORDER_HEURISTIC);
    CU_ASSERT(is_permutation(path.rank, 1000));
    order_fini(&path);
    topo_fini(&t);
}

static void test_slow(void)
{
    Topology t = make(6, 2, 10, 1, 0);
    SlowPair *pair;
    CU_ASSERT_EQUAL(topo_slow_pairs(&t, &pair), 0);
    mem_free(&pair);
    t.bytes_per_s[0 * 6 + 2] = t.bytes_per_s[2 * 6 + 0] = 7.9e9;
    t.bytes_per_s[1 * 6 + 4] = t.bytes_per_s[4 * 6 + 1] = 0.5e9;
    CU_ASSERT_EQUAL_FATAL(topo_slow_pairs(&t, &pair), 2);
    CU_ASSERT(pair[0].a == 1 && pair[0].b == 4 && pair[0].class_median == 1e9);
    CU_ASSERT(pair[1].a == 0 && pair[1].b == 2 && pair[1].class_median == 10e9);
    mem_free(&pair);
    topo_fini(&t);
}

/* With a slow node among three, most links between nodes are slow: the node is named, not they. */
static void test_slow_node(void)
{
    Topology t = make(6, 3, 10, 1, 0);
    SlowNode *node;
    SlowPair *pair;
    CU_ASSERT_EQUAL(topo_slow_nodes(&t, &node), 0);
    mem_free(&node);
    for (int a = 0; a < 6; ++a)
        for (int b = 0; b < 6; ++b)
            if (t.node[a] != t.node[b] && (t.node[a] == 1 || t.node[b] == 1))
                t.bytes_per_s[a * 6 + b] = 1e8;
    CU_ASSERT_EQUAL_FATAL(topo_slow_nodes(&t, &node), 1);
    CU_ASSERT(node[0].node == 1 && node[0].bytes_per_s == 1e8 && node[0].nodes_median == 1e9);
    mem_free(&node);
    CU_ASSERT_EQUAL(topo_slow_pairs(&t, &pair), 0);
    mem_free(&pair);
    t.bytes_per_s[0 * 6 + 2] = t.bytes_per_s[2 * 6 + 0] = 5e8;
    CU_ASSERT_EQUAL_FATAL(topo_slow_pairs(&t, &pair), 1);
    CU_ASSERT(pair[0].a == 0 && pair[0].b == 2 && pair[0].class_median == 1e9);
    mem_free(&pair);
    topo_fini(&t);
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0) die("%s: cannot be written", path);
}

static void test_files(void)
{
    char topo_path_[] = "/tmp/weft-topo-XXXXXX", map_path[] = "/tmp/weft-map-XXXXXX";
    close(mkstemp(topo_path_));
    close(mkstemp(map_path));
    Topology t = make(5, 2, 3, 1000, 3), back;
    CHECK_OK(topo_write(&t, topo_path_));
    CHECK_OK(topo_read(&back, topo_path_));
    CU_ASSERT(back.ranks == 5 && back.nodes == 2 && strcmp(back.host[1], "host1") == 0);
    CU_ASSERT_EQUAL(memcmp(back.node, t.node, 5 * sizeof *t.node), 0);
    CU_ASSERT_EQUAL(memcmp(back.bytes_per_s, t.bytes_per_s, 25 * sizeof *t.bytes_per_s), 0);
    CU_ASSERT_EQUAL(memcmp(back.latency_s, t.latency_s, 25 * sizeof *t.latency_s), 0);
    topo_fini(&back);
    topo_fini(&t);

#define HEAD "{weft_topology: 1, hosts: [a], cpus: ['0', '1'], "
#define GOOD "latency_s: [[0, 1], [1, 0]], together_bytes_s: [[0, 1], [1, 0]], "
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"[]", "expected a mapping"},
        {"{weft_topology: 2}", ":1:1: key `hosts` is missing"},
        {"{hast: 1}", "unknown key 'hast'; did you mean 'hosts'?"},
        {"{zz: 1}", "unknown key 'zz'; there are: weft_topology, hosts, node, cpus, latency_s, "},
        {"{weft_topology: 2, hosts: [a], cpus: ['0'], node: [0]}",
         ":1:17: this weft reads version 1, not 2"},
        {"{weft_topology: 1, hosts: [a, b], cpus: ['0'], node: [0]}", "node 1, b, has no rank"},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, 2], [1, 0]]}",
         "bytes_s is not symmetric: 1 from rank 1 to 0, but 2 back"},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, 'x'], [1, 0]]}", "to 1e+30, not \"x\""},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, []], [1, 0]]}", "to 1e+30, not a list"},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, -2], [-2, 0]]}", "to 1e+30, not -2"},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, .nan], [1, 0]]}", "expected a number from 1"},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, 1]]}",
         "bytes_s: expected a row for each of 2 ranks, not 1"},
        {HEAD GOOD "node: [0, 0], bytes_s: [[0, 1], [1]]}",
         "bytes_s: expected a number for each of 2 ranks, not 1"},
        {HEAD GOOD "node: [0, 1], bytes_s: [[0, 1], [1, 0]]}", "expected 0, not 1"},
        {HEAD GOOD "node: [0], bytes_s: [[0]]}", "expected 1 texts, one for each rank, not 2"},
        {HEAD GOOD "node: [], bytes_s: []}", "expected 0 texts, one for each rank, not 2"},
        {HEAD GOOD "node: [0, 0]}", "key `bytes_s` is missing: latency_s, bytes_s and"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        write_text(topo_path_, bad[i].text);
        CHECK_FAILS(topo_read(&t, topo_path_), ERR_CONFIG, bad[i].message);
    }
    write_text(topo_path_, "{weft_topology: 1, hosts: [\"a\\e[2J\"], cpus: ['0'], node: [0]}");
    CHECK_OK(topo_read(&t, topo_path_));
    CU_ASSERT_STRING_EQUAL(t.host[0], "a\\u001b[2J");
    topo_fini(&t);
    static const int places[] = {0, 2, 1};
    int *map;
    CHECK_OK(places_write(places, 3, map_path));
    CHECK_OK(places_read(&map, 3, map_path));
    CU_ASSERT_EQUAL(memcmp(map, places, sizeof places), 0);
    mem_free(&map);
    CHECK_FAILS(places_read(&map, 4, map_path), ERR_CONFIG, "a process for each of 4 ranks");
    write_text(map_path, "[0, 1, 1]");
    CHECK_FAILS(places_read(&map, 3, map_path), ERR_CONFIG, "process 1 is listed twice");
    write_text(map_path, "[1, 0, 2]");
    CHECK_FAILS(places_read(&map, 3, map_path), ERR_CONFIG, "process 0 must play rank 0");
    unlink(topo_path_);
    unlink(map_path);
}

/* In each round the pairing is mutual and nobody is in two pairs; over all rounds no pair occurs
 * twice, and up to 64 nodes every pair occurs. */
static void test_tournament(void)
{
    enum { MOST = 63 };
    static const int sizes[] = {2, 3, 4, 5, 8, 63, 64, 65, 200, 1001};
    CU_ASSERT_EQUAL(pairs_rounds(1, MOST), 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        int size = sizes[s], rounds = pairs_rounds(size, MOST), wrong = 0, least = size;
        char *seen = mem_new((size_t)size * (size_t)size);
        for (int round = 0; round < rounds; ++round)
            for (int rank = 0; rank < size; ++rank) {
                int peer = pairs_peer(size, rounds, round, rank);
                if (peer < 0) continue;
                wrong += peer == rank || pairs_peer(size, rounds, round, peer) != rank;
                wrong += seen[rank * size + peer]++ != 0;
            }
        for (int rank = 0; rank < size; ++rank) {
            int count = 0;
            for (int peer = 0; peer < size; ++peer) count += seen[rank * size + peer];
            least = count < least ? count : least;
        }
        CU_ASSERT_EQUAL(wrong, 0);
        CU_ASSERT(size > 64 ? least >= MOST - 1 : least == size - 1);
        mem_free(&seen);
    }
}

TEST_MAIN("topo", {"exact orders", test_exact}, {"trees", test_tree}, {"levels", test_levels},
          {"many ranks", test_many_ranks}, {"slow pairs", test_slow},
          {"slow nodes", test_slow_node}, {"files", test_files}, {"tournament", test_tournament})
