/* The parts of a replay on several nodes, with times by hand: events, connections, sums. */
#include "../../src/machine/replay.h"
#include "../harness.h"

enum { KB64 = 65536 };
/* 64 KiB take 1 s */
static const double S_PER_BYTE = 1.0 / KB64;

/* ---- events ---- */

static void test_events(void)
{
    Events events = {0};
    Event event;
    for (int i = 0; i < 1000; ++i) events_add(&events, i * 389 % 1000 / 2, EVENT_RANK, i);
    double last = -1;
    int64_t number = -1;
    for (int i = 0; i < 1000; ++i) {
        CU_ASSERT_TRUE_FATAL(events_take(&events, &event));
        CU_ASSERT_TRUE(event.at > last || (event.at == last && event.number > number));
        CU_ASSERT_EQUAL(event.at, i / 2);
        last = event.at;
        number = event.number;
    }
    CU_ASSERT_FALSE(events_take(&events, &event));
    mem_free(&events.event);
}

/* ---- the network ---- */

typedef struct Rig {
    Events events;
    Network network;
    StageSums sums;
    /* time at which each message arrived */
    double arrival[8];
} Rig;

static void rig_init(Rig *rig)
{
    *rig = (Rig){0};
    network_init(&rig->network, 4, S_PER_BYTE);
}

static void rig_fini(Rig *rig)
{
    network_fini(&rig->network);
    mem_free(&rig->events.event);
}

/* Plays all events before a time. */
static void play_until(Rig *rig, double end)
{
    Event event;
    while (rig->events.count > 0 && rig->events.event[0].at < end) {
        events_take(&rig->events, &event);
        if (event.kind == EVENT_LEFT) {
            network_left(&rig->network, &rig->events, event.at, event.index);
        } else {
            Parcel parcel = network_arrived(&rig->network, event.at, event.index);
            if (parcel.message >= 0)
                rig->arrival[parcel.message] = event.at;
            else
                stage_sums_arrived(&rig->sums, &rig->network, &rig->events, event.at, 0);
        }
    }
}

/* Sends message number `message`, with a latency of 0.25 s. */
static void send(Rig *rig, double now, int message, int from, int to, double bytes)
{
    network_send(
        &rig->network, &rig->events, now,
        (Parcel){.from = from, .to = to, .bytes = bytes, .latency_s = 0.25, .message = message});
}

/* A message waits for all messages that its node began to send earlier, to any receiver. */
static void test_sender(void)
{
    Rig rig;
    rig_init(&rig);
    send(&rig, 0, 0, 0, 1, KB64);
    send(&rig, 0, 1, 0, 2, KB64);
    send(&rig, 0, 2, 1, 0, KB64);
    play_until(&rig, 5);
    send(&rig, 5, 3, 0, 1, KB64);
    play_until(&rig, 100);
    CU_ASSERT_EQUAL(rig.arrival[0], 1.25);
    CU_ASSERT_EQUAL(rig.arrival[1], 2.25);
    CU_ASSERT_EQUAL(rig.arrival[2], 1.25);
    CU_ASSERT_EQUAL(rig.arrival[3], 6.25);
    rig_fini(&rig);
}

/* A node receives from two others at its own rate. A sender is not held back by a receiver that is
 * busy. */
static void test_receiver(void)
{
    Rig rig;
    rig_init(&rig);
    send(&rig, 0, 0, 0, 2, KB64);
    send(&rig, 0, 1, 1, 2, KB64);
    send(&rig, 0, 2, 1, 3, KB64);
    play_until(&rig, 100);
    CU_ASSERT_EQUAL(rig.arrival[0], 1.25);
    CU_ASSERT_EQUAL(rig.arrival[1], 2.25);
    CU_ASSERT_EQUAL(rig.arrival[2], 2.25);
    rig_fini(&rig);
}

/* A message waits for one part of a long one, not for all of it. */
static void test_parts(void)
{
    Rig rig;
    rig_init(&rig);
    send(&rig, 0, 0, 0, 1, 3 * KB64);
    send(&rig, 0, 1, 0, 1, KB64);
    play_until(&rig, 100);
    CU_ASSERT_EQUAL(rig.arrival[1], 2.25);
    CU_ASSERT_EQUAL(rig.arrival[0], 4.25);
    rig_fini(&rig);
}

static void test_inside(void)
{
    Rig rig;
    rig_init(&rig);
    send(&rig, 0, 0, 0, 1, KB64);
    network_send_inside(&rig.network, &rig.events, 0.5,
                        (Parcel){.latency_s = 0.125, .bytes = KB64, .message = 1});
    play_until(&rig, 100);
    CU_ASSERT_EQUAL(rig.arrival[1], 0.625);
    CU_ASSERT_EQUAL(rig.arrival[0], 1.25);
    rig_fini(&rig);
}

/* ---- sums ---- */

/* Two ranks on each of nodes 0 and 1 make a sum of two rounds, and then one of a single round. */
static void test_sums(void)
{
    Rig rig;
    StageSum sum[2] = {
        {.ranks_left = 4, .on_node_s = 0.5, .rounds = 2, .round_bytes = KB64, .latency_s = 0.125},
        {.ranks_left = 4, .rounds = 1, .round_bytes = KB64}};
    rig_init(&rig);
    rig.sums = (StageSums){.sum = sum, .count = 2, .last_node = 1, .node_ranks = 2};
    for (int rank = 0; rank < 4; ++rank) {
        play_until(&rig, rank);
        stage_sums_complete(&rig.sums, &rig.network, &rig.events, rank, 0, 0);
        stage_sums_complete(&rig.sums, &rig.network, &rig.events, rank, 0, 1);
    }
    /* the last rank is there at 3 s, and the first round ends at 3 + 2 + 0.125 + 0.5 s */
    play_until(&rig, 4);
    send(&rig, 4, 0, 0, 1, KB64);
    play_until(&rig, 100);
    CU_ASSERT_EQUAL(rig.arrival[0], 6.25);
    /* the second round waits on node 0 for the message, until 6 s: it ends at 8.125 s */
    CU_ASSERT_EQUAL(rig.sums.end_s, 8.125 + 2);
    CU_ASSERT_EQUAL(rig.sums.next, 2);
    rig_fini(&rig);
}

TEST_MAIN("replays", {"events", test_events}, {"sender", test_sender}, {"receiver", test_receiver},
          {"parts", test_parts}, {"inside a node", test_inside}, {"sums", test_sums})
