/* Tests how buckets are divided into shards if there are many more replicas than places where a
 * bucket may be cut. Each value belongs to one replica. Replicas have about equally many values,
 * and receive about equally many in halving. Two stages cut the tensors that they share in the same
 * way, and so do the ranks of a tensor-parallel group. */
#include "draft.h"

#include "pipeline/plan/plan.h"

enum { RANKS = 1024, TIED_RANKS = 24, MOST_STAGES = 2 };

static void open_case(Fixture *f, const char *model, int side, int stages)
{
    *f = (Fixture){.how = {.model = model,
                           .table = &backend_cpu,
                           .side = side,
                           .shape = {stages, 1, 2},
                           .schedule = SCHEDULE_GPIPE}};
    CHECK_OK(open_graph(f));
    CHECK_OK(make_schedule(f));
    f->first = random_cut(f->graph, stages, 0);
}

static void close_case(Fixture *f)
{
    schedule_free(&f->schedule);
    mem_free(&f->first);
    graph_free(&f->graph);
    backend_close(&f->backend);
    config_free(&f->config);
}

static Plan *plan_of(const Fixture *f, int dp, int stage)
{
    Plan *plan = NULL;
    PlanOptions options = {.shape = {dp, f->how.shape.stages, 1},
                           .stage = stage,
                           .schedule = f->schedule,
                           .chunk_begin = f->first,
                           .bucket_bytes = (size_t)4 << 20,
                           .zero = ZERO_STATE,
                           .param_sharers = 1};
    CHECK_OK(plan_new(&plan, f->graph, &options));
    return plan;
}

/* Adds to received[rank] the number of elements of a bucket that each rank receives in halving. In
 * round k a rank keeps the slices whose owners have the same k lowest bits as the rank. */
static void add_received(const Bounds *b, double *received)
{
    for (int rank = 0; rank < RANKS; ++rank)
        for (int bit = 1; bit < RANKS; bit *= 2)
            for (int i = 0; i < b->count; ++i)
                if (((b->rank[i] ^ rank) & (2 * bit - 1)) == 0)
                    received[rank] += (double)(b->begin[i + 1] - b->begin[i]);
}

static void all_have_as_much(void)
{
    Fixture f;
    static double received[RANKS];
    open_case(&f, "model: {name: mlp, hidden: [1024, 1024, 1024, 1024, 1024, 1024, 1024]}\n", 8, 1);
    Plan *plan = plan_of(&f, RANKS, 0);
    const Buckets *buckets = &plan->chunk[0].buckets;
    int64_t all = 0, values = 0, most = 0;
    double most_received = 0, mean = 0;
    for (int i = 0; i < f.graph->param_count; ++i) values += f.graph->param[i].elements;
    for (int r = 0; r < RANKS; ++r) {
        int64_t mine = 0;
        for (int i = 0; i < f.graph->param_count; ++i) {
            int64_t first, count;
            plan_shard(plan, i, r, &first, &count);
            mine += count;
        }
        all += mine;
        most = mine > most ? mine : most;
    }
    CU_ASSERT_EQUAL(all, values);
    /* the mean is 1.6 FLAT_CHUNK; a rank that had a FLAT_CHUNK of each bucket would have 7 */
    CU_ASSERT_TRUE(most < 5 * FLAT_CHUNK);
    CU_ASSERT_TRUE(buckets->count > 5);
    for (int b = 0; b < buckets->count; ++b)
        if (bucket_has_params(plan, &plan->chunk[0], b))
            add_received(&plan->chunk[0].shard[b], received);
    for (int r = 0; r < RANKS; ++r) {
        mean += received[r] / RANKS;
        most_received = received[r] > most_received ? received[r] : most_received;
    }
    CU_ASSERT_TRUE(most_received < 1.25 * mean);
    plan_free(&plan);
    close_case(&f);
}

/* The weights of the embedding and of the head are tied, so two stages have the tensor, in buckets
 * with different numbers. */
static void stages_cut_alike(void)
{
    Fixture f;
    int64_t part[MOST_STAGES][TIED_RANKS][2];
    open_case(&f, "model: {name: gpt2, layers: 2, width: 48, heads: 2, context: 8}\n", 0, 2);
    int param[MOST_STAGES] = {0, 0};
    for (int i = 0; i < f.graph->param_count; ++i)
        if (f.graph->param[i].tied_param >= 0) {
            param[0] = f.graph->param[i].tied_param;
            param[1] = i;
        }
    CU_ASSERT_NOT_EQUAL(param[0], param[1]);
    for (int stage = 0; stage < MOST_STAGES; ++stage) {
        Plan *plan = plan_of(&f, TIED_RANKS, stage);
        for (int r = 0; r < TIED_RANKS; ++r)
            plan_shard(plan, param[stage], r, &part[stage][r][0], &part[stage][r][1]);
        plan_free(&plan);
    }
    CU_ASSERT_EQUAL(memcmp(part[0], part[1], sizeof part[0]), 0);
    close_case(&f);
}

/* Makes a rank's part of the model in a tensor-parallel group, and its plan. */
static Plan *plan_of_group(const Fixture *f, Graph **graph, int rank, int dp, size_t bucket_bytes)
{
    enum { GROUP = 2 };
    Plan *plan = NULL;
    CHECK_OK(graph_build(graph, f->config, f->input, 1000));
    CHECK_OK(graph_split(graph, f->config, rank, GROUP, 0));
    CHECK_OK(graph_fuse(*graph, &backend_cpu));
    CHECK_OK(graph_plan(*graph, f->backend));
    int first[] = {0, (*graph)->node_count};
    PlanOptions options = {.shape = {dp, 1, GROUP},
                           .schedule = f->schedule,
                           .chunk_begin = first,
                           .bucket_bytes = bucket_bytes,
                           .zero = ZERO_STATE,
                           .param_sharers = 1};
    CHECK_OK(plan_new(&plan, *graph, &options));
    return plan;
}

/* Without replicas, a rank of a tensor-parallel group has memory for the floats that the group
 * sums, for the floats that other ranks send, and for pieces of the tensors that the group
 * exchanges. */
static void group_has_memory(void)
{
    Fixture f;
    Graph *graph;
    open_case(&f, "model: {name: gpt2, layers: 2, width: 60, heads: 3, context: 12}\n", 0, 1);
    Plan *plan = plan_of_group(&f, &graph, 0, 1, 4096);
    CU_ASSERT(plan_group_floats(plan, 0) > METRIC_REQUESTS);
    CU_ASSERT_EQUAL(plan->message_bytes, 2 * sizeof(float) * (size_t)plan_group_floats(plan, 0) +
                                             exchange_sum_bytes(2) +
                                             (size_t)EXCHANGE_PIECE_BYTES * (1 + EXCHANGE_DEPTH));
    plan_free(&plan);
    graph_free(&graph);
    close_case(&f);
}

/* One rank has two of three attention heads, the other rank has one. Their slices differ in length,
 * and so do the unused parts of their buckets. */
static void groups_cut_alike(void)
{
    Fixture f;
    int64_t bad = 0, whole = 0;
    open_case(&f, "model: {name: gpt2, layers: 2, width: 60, heads: 3, context: 12}\n", 0, 1);
    for (int dp = 2; dp < 200; dp += 1 + dp / 4)
        for (size_t bytes = 4096; bytes <= 1 << 20; bytes *= 2) {
            Graph *graph[2];
            Plan *plan[2];
            for (int r = 0; r < 2; ++r) plan[r] = plan_of_group(&f, &graph[r], r, dp, bytes);
            for (int i = 0; i < graph[0]->param_count; ++i)
                for (int d = 0; d < dp && graph[0]->param[i].split.parts == 0; ++d) {
                    int64_t first[2], count[2];
                    for (int r = 0; r < 2; ++r) plan_shard(plan[r], i, d, &first[r], &count[r]);
                    bad += first[0] != first[1] || count[0] != count[1];
                    ++whole;
                }
            for (int r = 0; r < 2; ++r) {
                plan_free(&plan[r]);
                graph_free(&graph[r]);
            }
        }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT_TRUE(whole > 10000);
    close_case(&f);
}

TEST_MAIN("shards", {"all have as much", all_have_as_much}, {"stages cut alike", stages_cut_alike},
          {"groups cut alike", groups_cut_alike}, {"a group has memory", group_has_memory})
