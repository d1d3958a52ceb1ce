/* Messages between two ranks, and exchanges, in which every rank may send a message to every other
 * rank. Beginning an exchange and waiting for it are separate calls, so that computation overlaps
 * with it. A rank that waits for a long time can sleep and leave its core to other threads. */
#include "mpi_check.h"
#include "parallel.h"

#include <limits.h>
#include <string.h>
#include <time.h>

/* Tags of this file, which differ from the tags of the other files of this folder. Sparse exchanges
 * alternate between TAG_SPARSE and TAG_SPARSE + 1. */
enum { TAG_ALLTOALL = 18, TAG_MESSAGE, TAG_CONTROL, TAG_SPARSE, TAG_RECEIPT = TAG_SPARSE + 2 };

/* Returns `bytes` as an int, the type of MPI's counts. Dies if the number is too large. */
static int message_bytes(size_t bytes)
{
    if (bytes > INT_MAX)
        die_as(ERR_CONFIG,
               "a message between two ranks has %zu bytes, but MPI sends at most %d: lower "
               "train.batch or start more ranks",
               bytes, INT_MAX);
    return (int)bytes;
}

/* State of the polls of a waiting rank. The wait functions of MPI poll without a pause and so
 * occupy a core that computing ranks need. Therefore a rank that waits for a long time sleeps
 * between polls, longer each time. */
typedef struct Pause {
    /* number of polls so far */
    int polls;
    /* length of the last sleep, in nanoseconds */
    long ns;
} Pause;

/* seconds that this rank has slept so far; world_slept_s returns them */
static double slept_s;

/* Tells the watchdog that this rank waits, until beat_mark_previous is called. */
static void mark_wait(void)
{
    beat_mark_plain("messages of other ranks", true);
}

double world_slept_s(void)
{
    return slept_s;
}

static void pause_a_little(Pause *pause)
{
    enum { SHORTEST_NS = 2000, LONGEST_NS = 500000, POLLS_FIRST = 100 };
    if (++pause->polls < POLLS_FIRST) return;
    pause->ns = pause->ns < SHORTEST_NS  ? SHORTEST_NS
                : pause->ns > LONGEST_NS ? LONGEST_NS
                                         : pause->ns + pause->ns / 8;
    const double begun = clock_s();
    nanosleep(&(struct timespec){.tv_nsec = pause->ns}, NULL);
    slept_s += clock_s() - begun;
}

int mpi_await_any(int count, MPI_Request *request)
{
    Pause pause = {0};
    int index, done;
    MPI_CHECK(MPI_Testany(count, request, &index, &done, MPI_STATUS_IGNORE));
    if (done) return index;
    Phase before = phase_wait_begin();
    mark_wait();
    while (!done) {
        pause_a_little(&pause);
        MPI_CHECK(MPI_Testany(count, request, &index, &done, MPI_STATUS_IGNORE));
    }
    beat_mark_previous();
    phase_wait_end(before);
    return index;
}

void mpi_await(MPI_Request *request)
{
    (void)mpi_await_any(1, request);
}

void mpi_await_all(int count, MPI_Request *request)
{
    while (mpi_await_any(count, request) != MPI_UNDEFINED) continue;
}

struct WorldAlltoall {
    /* borrowed */
    const World *world;
    /* true: the rank sleeps between polls while it waits; false: it polls without a pause */
    bool sleeps;
    /* requests, with room for one send and one receive per rank, [2 * world->size]; owned */
    MPI_Request *request;
    /* number of requests of the exchange in flight */
    int count;
};

WorldAlltoall *world_alltoall_new(const World *world, bool sleeps)
{
    WorldAlltoall *exchange = mem_new(sizeof *exchange);
    exchange->world = world;
    exchange->sleeps = sleeps;
    exchange->request = mem_new(2 * (size_t)world->size * sizeof *exchange->request);
    return exchange;
}

void world_alltoall_free(WorldAlltoall **exchange)
{
    if (!*exchange) return;
    mem_free(&(*exchange)->request);
    mem_free(exchange);
}

void world_alltoall_begin(WorldAlltoall *exchange, const MemoryRange *to, const MemoryRange *from)
{
    const World *world = exchange->world;
    exchange->count = 0;
    for (int k = 1; k < world->size; ++k) {
        int r = (world->rank + world->size - k) % world->size;
        if (from[r].bytes == 0) continue;
        MPI_CHECK(MPI_Irecv(from[r].at, message_bytes(from[r].bytes), MPI_BYTE, r, TAG_ALLTOALL,
                            world->comm, &exchange->request[exchange->count++]));
    }
    for (int k = 1; k < world->size; ++k) {
        int r = (world->rank + k) % world->size;
        if (to[r].bytes == 0) continue;
        MPI_CHECK(MPI_Isend(to[r].at, message_bytes(to[r].bytes), MPI_BYTE, r, TAG_ALLTOALL,
                            world->comm, &exchange->request[exchange->count++]));
    }
}

void world_alltoall_wait(WorldAlltoall *exchange)
{
    Pause pause = {0};
    int done = 0;
    if (exchange->count == 0) return;
    mark_wait();
    while (exchange->sleeps && !done) {
        MPI_CHECK(MPI_Testall(exchange->count, exchange->request, &done, MPI_STATUSES_IGNORE));
        if (!done) pause_a_little(&pause);
    }
    if (!done) MPI_CHECK(MPI_Waitall(exchange->count, exchange->request, MPI_STATUSES_IGNORE));
    exchange->count = 0;
    beat_mark_previous();
}

void world_alltoall(const World *world, const MemoryRange *to, const MemoryRange *from)
{
    WorldAlltoall *exchange = world_alltoall_new(world, false);
    world_alltoall_begin(exchange, to, from);
    world_alltoall_wait(exchange);
    world_alltoall_free(&exchange);
}

/* ---- sparse exchanges ---- */

/* State of a sparse exchange. The receiver of a message sends an empty message back, a receipt
 * (mpi/channel_mpi.c says why sends are not synchronous). A rank enters the barrier once it has the
 * receipts of all messages that it has sent. Therefore a rank that has passed the barrier has
 * received all messages that were sent to it. A rank may begin the next exchange while another rank
 * still probes for messages of this exchange, so consecutive exchanges use different tags. */
struct WorldSparse {
    /* borrowed */
    const World *world;
    /* true: the rank sleeps between polls while it waits */
    bool sleeps;
    /* true: an exchange has been begun and not been waited for */
    bool begun;
    /* duplicate of world's communicator, for messages and barriers; made by the first exchange;
     * owned */
    MPI_Comm comm;
    /* tag of the messages of the current exchange */
    int tag;
    /* requests, with room for one send and its receipt per rank, [2 * world->size]; owned */
    MPI_Request *request;
    /* number of requests of the current exchange */
    int requests;
    /* received messages, one after the other; owned */
    char *in;
    /* bytes of the received messages in `in` */
    size_t in_bytes;
    /* bytes allocated for `in` */
    size_t in_capacity;
    /* the message from each rank, a part of `in`, [world->size]; owned */
    MemoryRange *from;
};

WorldSparse *world_sparse_new(const World *world, bool sleeps)
{
    WorldSparse *exchange = mem_new(sizeof *exchange);
    *exchange = (WorldSparse){.world = world, .sleeps = sleeps, .comm = MPI_COMM_NULL};
    exchange->request = mem_new(2 * (size_t)world->size * sizeof *exchange->request);
    exchange->from = mem_new((size_t)world->size * sizeof *exchange->from);
    return exchange;
}

void world_sparse_free(WorldSparse **exchange)
{
    if (!*exchange) return;
    if ((*exchange)->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_free(&(*exchange)->comm));
    mem_free(&(*exchange)->request);
    mem_free(&(*exchange)->from);
    mem_free(&(*exchange)->in);
    mem_free(exchange);
}

void world_sparse_begin(WorldSparse *exchange, const MemoryRange *to)
{
    const World *world = exchange->world;
    exchange->begun = world->size > 1;
    exchange->requests = 0;
    if (!exchange->begun) return;
    if (exchange->comm == MPI_COMM_NULL) MPI_CHECK(MPI_Comm_dup(world->comm, &exchange->comm));
    exchange->tag = exchange->tag == TAG_SPARSE ? TAG_SPARSE + 1 : TAG_SPARSE;
    for (int k = 1; k < world->size; ++k) {
        int r = (world->rank + k) % world->size;
        if (to[r].bytes == 0) continue;
        MPI_CHECK(MPI_Isend(to[r].at, message_bytes(to[r].bytes), MPI_BYTE, r, exchange->tag,
                            exchange->comm, &exchange->request[exchange->requests++]));
        MPI_CHECK(MPI_Irecv(NULL, 0, MPI_BYTE, r, TAG_RECEIPT, exchange->comm,
                            &exchange->request[exchange->requests++]));
    }
}

/* Receives a message if one has arrived; otherwise returns false. Until all messages have arrived,
 * exchange->from[r].at is an offset into `in`, because `in` may be reallocated. */
static bool sparse_receive(WorldSparse *exchange)
{
    MPI_Message message;
    MPI_Status status;
    int found = 0, bytes = 0;
    MPI_CHECK(
        MPI_Improbe(MPI_ANY_SOURCE, exchange->tag, exchange->comm, &found, &message, &status));
    if (!found) return false;
    MPI_CHECK(MPI_Get_count(&status, MPI_BYTE, &bytes));
    size_t end = exchange->in_bytes + (size_t)bytes;
    if (end > exchange->in_capacity) {
        exchange->in_capacity = end + end / 2;
        exchange->in = mem_resize(exchange->in, exchange->in_capacity);
    }
    MPI_CHECK(
        MPI_Mrecv(exchange->in + exchange->in_bytes, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    /* MPI buffers an empty message, so this send does not wait */
    MPI_CHECK(MPI_Send(NULL, 0, MPI_BYTE, status.MPI_SOURCE, TAG_RECEIPT, exchange->comm));
    exchange->from[status.MPI_SOURCE] = (MemoryRange){(void *)exchange->in_bytes, (size_t)bytes};
    exchange->in_bytes = end;
    return true;
}

static void sparse_receive_all(WorldSparse *exchange)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    Pause pause = {0};
    for (int sent = 0, done = 0; !done;) {
        if (sparse_receive(exchange)) continue;
        if (sent) {
            MPI_CHECK(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE));
        } else {
            MPI_CHECK(
                MPI_Testall(exchange->requests, exchange->request, &sent, MPI_STATUSES_IGNORE));
            if (sent) MPI_CHECK(MPI_Ibarrier(exchange->comm, &barrier));
        }
        if (exchange->sleeps && !done) pause_a_little(&pause);
    }
}

const MemoryRange *world_sparse_wait(WorldSparse *exchange)
{
    if (!exchange->begun) return exchange->from;
    memset(exchange->from, 0, (size_t)exchange->world->size * sizeof *exchange->from);
    exchange->in_bytes = 0;
    mark_wait();
    sparse_receive_all(exchange);
    beat_mark_previous();
    for (int r = 0; r < exchange->world->size; ++r)
        if (exchange->from[r].bytes > 0)
            exchange->from[r].at = exchange->in + (size_t)exchange->from[r].at;
    exchange->begun = false;
    return exchange->from;
}

void world_send(const World *world, int rank, const void *data, size_t bytes)
{
    /* MPI buffers messages below this size, so that their sends do not wait */
    enum { WAITS_BYTES = 1024 };
    if (bytes >= WAITS_BYTES) mark_wait();
    MPI_CHECK(MPI_Send(data, message_bytes(bytes), MPI_BYTE, rank, TAG_MESSAGE, world->comm));
    if (bytes >= WAITS_BYTES) beat_mark_previous();
}

void world_send_control(const World *world, int rank, const void *data, size_t bytes)
{
    MPI_CHECK(MPI_Send(data, message_bytes(bytes), MPI_BYTE, rank, TAG_CONTROL, world->comm));
}

void world_send_begin(WorldSend *send, const World *world, int rank, const void *data, size_t bytes)
{
    MPI_CHECK(MPI_Isend(data, message_bytes(bytes), MPI_BYTE, rank, TAG_MESSAGE, world->comm,
                        &send->request));
    send->begun = true;
}

void world_send_wait(WorldSend *send)
{
    if (send->begun) mpi_await(&send->request);
    send->begun = false;
}

/* Returns whether a message with tag `tag` has arrived from rank `rank`; -1: from any rank. If so,
 * fills *status. */
static bool has_arrived(const World *world, int rank, int tag, MPI_Status *status)
{
    int found = 0;
    MPI_CHECK(MPI_Iprobe(rank < 0 ? MPI_ANY_SOURCE : rank, tag, world->comm, &found, status));
    return found;
}

bool world_wait_for(const World *world, int rank, double patience_s)
{
    /* Upper limit, in seconds, for the time that one poll adds to `waited`: if a poll takes longer,
     * the process was probably stopped. Time is counted only while a message of another rank is
     * waiting, because then rank `rank` is behind. */
    const double most_s = 1;
    Pause pause = {0};
    bool found = false;
    mark_wait();
    for (double waited = 0, looked = clock_s(); waited < patience_s;) {
        found = has_arrived(world, rank, TAG_MESSAGE, MPI_STATUS_IGNORE) ||
                has_arrived(world, -1, TAG_CONTROL, MPI_STATUS_IGNORE);
        if (found) break;
        bool other = has_arrived(world, -1, TAG_MESSAGE, MPI_STATUS_IGNORE);
        pause_a_little(&pause);
        const double now = clock_s(), took = now - looked;
        waited = other ? waited + (took < most_s ? took : most_s) : 0;
        looked = now;
    }
    beat_mark_previous();
    return found;
}

int world_receive_any(const World *world, int rank, void *data, size_t bytes, bool *control)
{
    MPI_Status status;
    Pause pause = {0};
    mark_wait();
    for (;;) {
        *control = has_arrived(world, -1, TAG_CONTROL, &status);
        if (*control || has_arrived(world, rank, TAG_MESSAGE, &status)) break;
        pause_a_little(&pause);
    }
    MPI_CHECK(MPI_Recv(data, message_bytes(bytes), MPI_BYTE, status.MPI_SOURCE,
                       *control ? TAG_CONTROL : TAG_MESSAGE, world->comm, MPI_STATUS_IGNORE));
    beat_mark_previous();
    return status.MPI_SOURCE;
}

bool world_receive_control(const World *world, void *data, size_t bytes, bool waits)
{
    MPI_Status status;
    Pause pause = {0};
    if (waits) mark_wait();
    while (!has_arrived(world, -1, TAG_CONTROL, &status)) {
        if (!waits) return false;
        pause_a_little(&pause);
    }
    MPI_CHECK(MPI_Recv(data, message_bytes(bytes), MPI_BYTE, status.MPI_SOURCE, TAG_CONTROL,
                       world->comm, MPI_STATUS_IGNORE));
    if (waits) beat_mark_previous();
    return true;
}

int world_receive(const World *world, int rank, void *data, size_t bytes)
{
    MPI_Status status;
    Pause pause = {0};
    mark_wait();
    while (!has_arrived(world, rank, TAG_MESSAGE, &status)) pause_a_little(&pause);
    MPI_CHECK(MPI_Recv(data, message_bytes(bytes), MPI_BYTE, status.MPI_SOURCE, TAG_MESSAGE,
                       world->comm, MPI_STATUS_IGNORE));
    beat_mark_previous();
    return status.MPI_SOURCE;
}
