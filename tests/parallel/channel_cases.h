/* Tests of channels between any number of ranks, over shared memory, over MPI, and over both at the
 * same time. Every message arrives once, complete and in order. The depth of a channel limits the
 * sender. Sums in flight are not disturbed. */
#include "mpi_main.h"

#include <time.h>

enum { MESSAGES = 301, SPECS_MAX = 64 };

/* The ways in which each test runs: over one transport, with the transport auto, or (WAY_NODES) in
 * a world whose ranks are divided into nodes. */
typedef enum Way { WAY_SHM, WAY_MPI, WAY_AUTO, WAY_NODES, WAYS } Way;
static const int way_transport[WAYS] = {TRANSPORT_SHM, TRANSPORT_MPI, TRANSPORT_AUTO,
                                        TRANSPORT_AUTO};

/* Makes a world in which ranks 2i and 2i+1 are on one node. */
static void pretend_nodes(World *world)
{
    *world = test_world;
    world->one_node = false;
    MPI_Comm_split(test_world.comm, test_world.rank / 2, test_world.rank, &world->node);
    MPI_Comm_rank(world->node, &world->node_rank);
    MPI_Comm_size(world->node, &world->node_size);
}

/* The channels of a test. */
typedef struct Rig {
    World world;
    Channels *channels;
    ChannelSpec spec[SPECS_MAX];
    /* count: number of channels; sent, taken: numbers of messages that this rank has sent to and
     * received from each channel; bad: number of wrong words and of slots that are not aligned */
    int count, sent[SPECS_MAX], taken[SPECS_MAX], bad;
} Rig;

static void rig_add(Rig *rig, int from, int to, int depth, size_t bytes)
{
    rig->spec[rig->count++] = (ChannelSpec){from, to, depth, bytes};
}

static void rig_open(Rig *rig, Way way)
{
    rig->world = test_world;
    if (way == WAY_NODES) pretend_nodes(&rig->world);
    CHECK_OK(channels_new(&rig->channels, &rig->world, rig->spec, rig->count, way_transport[way]));
}

static void rig_close(Rig *rig, Way way)
{
    channels_free(&rig->channels);
    CU_ASSERT_PTR_NULL(rig->channels);
    CU_ASSERT_EQUAL(rig->bad, 0);
    if (way == WAY_NODES) MPI_Comm_free(&rig->world.node);
}

/* Returns word `at` of message `number` of a channel. */
static uint32_t word_of(int channel, int number, size_t at)
{
    return ((uint32_t)channel * 1000003u + (uint32_t)number * 7919u + (uint32_t)at) * 2654435761u;
}

/* Sends the next message of channel i if the channel has a free slot. Returns whether it did. */
static bool try_send(Rig *rig, int i)
{
    uint32_t *data = channel_slot(rig->channels, i);
    if (!data) return false;
    rig->bad += (uintptr_t)data % 64 != 0;
    for (size_t w = 0; w < rig->spec[i].bytes / 4; ++w) data[w] = word_of(i, rig->sent[i], w);
    channel_send(rig->channels, i);
    ++rig->sent[i];
    return true;
}

/* Receives and checks the next message of channel i if it has arrived. Returns whether it has. */
static bool try_take(Rig *rig, int i)
{
    const uint32_t *data = channel_message(rig->channels, i);
    if (!data) return false;
    for (size_t w = 0; w < rig->spec[i].bytes / 4; ++w)
        rig->bad += data[w] != word_of(i, rig->taken[i], w);
    channel_release(rig->channels, i);
    ++rig->taken[i];
    return true;
}

/* Sleeps for up to 200 microseconds in one of 50 calls, at random and differently on each rank. at:
 * number of the call. */
static void stagger(const Rig *rig, int at)
{
    uint32_t draw = rng_u32(rng_key(7, RNG_TEST, (uint64_t)rig->world.rank, 5), (uint64_t)at);
    if (draw % 50 == 0) nanosleep(&(struct timespec){.tv_nsec = draw % 200000}, NULL);
}

/* Sends and receives `messages` messages of each channel; each rank works at its own pace. comm: a
 * communicator that is polled meanwhile and may have a sum in flight; NULL: none. */
static void exchange(Rig *rig, int messages, Comm *comm)
{
    double start = clock_s();
    for (int open = 1, turn = 0; open > 0; ++turn) {
        bool moved = false;
        open = 0;
        for (int i = 0; i < rig->count; ++i) {
            if (rig->spec[i].from == rig->world.rank && rig->sent[i] < messages)
                moved = try_send(rig, i) || moved, open += rig->sent[i] < messages;
            if (rig->spec[i].to == rig->world.rank && rig->taken[i] < messages)
                moved = try_take(rig, i) || moved, open += rig->taken[i] < messages;
        }
        stagger(rig, turn);
        if (comm) comm_progress(comm);
        if (moved)
            start = clock_s();
        else
            channels_wait(rig->channels, clock_s() - start);
    }
}

/* Messages go around a ring of all ranks in both directions, with depths 1 to 4 and several
 * sizes. */
static void rings(void)
{
    static const size_t sizes[] = {0, 64, 4096, 64 * 3001};
    int n = test_world.size;
    for (Way way = 0; way < WAYS; ++way)
        for (int depth = 1; depth <= 4; ++depth) {
            Rig rig = {0};
            for (int r = 0; r < n; ++r) rig_add(&rig, r, (r + 1) % n, depth, sizes[depth - 1]);
            for (int r = 0; r < n; ++r) rig_add(&rig, r, (r + n - 1) % n, depth, 64);
            rig_open(&rig, way);
            exchange(&rig, MESSAGES, NULL);
            rig_close(&rig, way);
        }
}

/* Every pair of ranks has several channels with different sizes, in both directions. */
static void all_pairs(void)
{
    for (Way way = 0; way < WAYS; ++way) {
        Rig rig = {0};
        for (int a = 0; a < test_world.size; ++a)
            for (int b = 0; b < test_world.size; ++b)
                for (int twin = 0; twin < 3 && a != b; ++twin)
                    rig_add(&rig, a, b, 2 + twin, (size_t)(64 * (100 * twin + a + 2 * b)));
        rig_open(&rig, way);
        exchange(&rig, MESSAGES, NULL);
        rig_close(&rig, way);
    }
}

/* No rank receives until the sender has stopped. The sender has then sent as many messages as the
 * depth, or over MPI up to twice as many. */
static void limited_by_depth(void)
{
    for (Way way = 0; way < WAYS; ++way)
        for (int depth = 2; depth <= 4; ++depth) {
            Rig rig = {0};
            rig_add(&rig, 0, 1, depth, 128);
            rig_add(&rig, 0, test_world.size - 1, depth, 0);
            rig_open(&rig, way);
            for (int i = 0; i < 2 && test_world.rank == 0; ++i) {
                bool pipe =
                    way == WAY_SHM || way == WAY_AUTO || (way == WAY_NODES && rig.spec[i].to == 1);
                for (int k = 0; k < 2000; ++k) {
                    try_send(&rig, i);
                    channels_progress(rig.channels);
                }
                CU_ASSERT_TRUE(rig.sent[i] >= depth);
                CU_ASSERT_TRUE(rig.sent[i] <= (pipe ? depth : 2 * depth));
                CU_ASSERT_PTR_NULL(channel_slot(rig.channels, i));
            }
            world_barrier(&test_world);
            exchange(&rig, 31, NULL);
            rig_close(&rig, way);
        }
}

/* Messages are exchanged while sums over all ranks begin and are in flight. */
static void among_sums(void)
{
    enum { ELEMENTS = 200000 };
    int n = test_world.size;
    Backend backend = {.table = &host_table, .options = {.threads = 1}};
    for (Way way = WAY_SHM; way <= WAY_MPI; ++way) {
        Comm *comm = NULL;
        Rig rig = {0};
        for (int r = 0; r < n; ++r) rig_add(&rig, r, (r + 1) % n, 2, 8192);
        rig_open(&rig, way);
        CHECK_OK(comm_new(&comm, &test_world, &backend, way_transport[way], ELEMENTS));
        for (int round = 1; round <= 5; ++round) {
            for (int e = 0; e < ELEMENTS; ++e) comm->arena[e] = (float)(round + test_world.rank);
            comm_allreduce_begin(comm, 0, ELEMENTS / 2);
            comm_allreduce_begin(comm, ELEMENTS / 2, ELEMENTS / 2);
            exchange(&rig, 40 * round, comm);
            comm_wait(comm);
            int wrong = 0;
            float want = (float)(n * round + n * (n - 1) / 2);
            for (int e = 0; e < ELEMENTS; ++e) wrong += comm->arena[e] != want;
            CU_ASSERT_EQUAL(wrong, 0);
            world_barrier(&test_world);
        }
        comm_free(&comm);
        rig_close(&rig, way);
    }
}

/* The two parts of a divided world use their own channels at the same time. A part may be a single
 * rank. */
static void in_parts(void)
{
    for (int transport = TRANSPORT_AUTO; transport <= TRANSPORT_MPI; ++transport) {
        Rig rig = {0};
        CHECK_OK(world_split(&rig.world, &test_world, test_world.rank % 2));
        for (int r = 0; r + 1 < rig.world.size; ++r) rig_add(&rig, r, r + 1, 2, 640);
        CHECK_OK(channels_new(&rig.channels, &rig.world, rig.spec, rig.count, transport));
        exchange(&rig, MESSAGES, NULL);
        rig_close(&rig, WAY_AUTO);
        world_part_fini(&rig.world);
    }
}

/* Returns the number of times that the first thread of a process has given up its core to sleep. */
static long sleeps_of(int process)
{
    char path[64], line[256];
    long count = -1;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", process, process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1) break;
    if (file) fclose(file);
    return count;
}

/* A receiver in channels_wait sleeps repeatedly until the message arrives, and then receives it.
 * The sender sends only after the receiver has slept SLEEPS times. */
static void woken_from_sleep(void)
{
    enum { SLEEPS = 20 };
    const double limit_s = 100;
    int last = test_world.size - 1, process = (int)getpid();
    MPI_Bcast(&process, 1, MPI_INT, last, test_world.comm);
    for (Way way = 0; way < WAYS; ++way) {
        Rig rig = {0};
        rig_add(&rig, 0, last, 2, 4096);
        rig_open(&rig, way);
        if (test_world.rank == 0) {
            double start = clock_s();
            long before = sleeps_of(process), now = before;
            for (; now < before + SLEEPS && clock_s() - start < limit_s; now = sleeps_of(process))
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            CU_ASSERT(before >= 0 && now >= before + SLEEPS);
        }
        exchange(&rig, 1, NULL);
        rig_close(&rig, way);
    }
}

/* Wrong specs and impossible transports are errors. */
static void refused(void)
{
    World two_nodes = test_world;
    Channels *channels = NULL;
    ChannelSpec good = {0, 1, 2, 64}, spec = good;
    int n = test_world.size;
    two_nodes.one_node = false;
    CHECK_FAILS(channels_new(&channels, &two_nodes, &good, 1, TRANSPORT_SHM), ERR_CONFIG,
                "on one node");
    CHECK_FAILS(channels_new(&channels, &test_world, &good, 1, TRANSPORT_NCCL), ERR_CONFIG,
                "use auto");
    spec.to = 0;
    CHECK_FAILS(channels_new(&channels, &test_world, &spec, 1, TRANSPORT_AUTO), ERR_BUG,
                "to itself");
    spec.to = n;
    CHECK_FAILS(channels_new(&channels, &test_world, &spec, 1, TRANSPORT_AUTO), ERR_BUG, "to rank");
    spec = good, spec.depth = 0;
    CHECK_FAILS(channels_new(&channels, &test_world, &spec, 1, TRANSPORT_AUTO), ERR_BUG,
                "0 messages");
    spec = good, spec.bytes = 100;
    CHECK_FAILS(channels_new(&channels, &test_world, &spec, 1, TRANSPORT_AUTO), ERR_BUG,
                "100 bytes");
    spec = good, spec.depth = test_world.rank == n - 1 ? 3 : 2;
    CHECK_FAILS(channels_new(&channels, &test_world, &spec, 1, TRANSPORT_AUTO), ERR_BUG, "differs");
    spec = good, spec.bytes = (size_t)1 << 45;
    CHECK_FAILS(channels_new(&channels, &test_world, &spec, 1, TRANSPORT_SHM), ERR_CONFIG,
                "of shared memory for the pipeline's messages, and ");
    CU_ASSERT_PTR_NULL(channels);
}

#define CHANNEL_CASES                                                                              \
    {"rings", rings}, {"all pairs", all_pairs}, {"limited by depth", limited_by_depth},            \
        {"among sums", among_sums}, {"in parts", in_parts},                                        \
        {"woken from sleep", woken_from_sleep},                                                    \
    {                                                                                              \
        "refused", refused                                                                         \
    }
