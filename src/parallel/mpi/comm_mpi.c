/* Makes ordered sums by messages (comm_mpi and comm_nodes), for ranks on several nodes or with
 * grid.transport: mpi. A range moves in pieces, and a piece has one slice for each rank. If the
 * range is cut evenly, a piece is a consecutive part of the range, cut into even slices. If the
 * range is cut into shards at given bounds, a piece is either the next slice of every shard, or a
 * consecutive part of the range, in which the slice of a rank is the overlap with its shard
 * (sum_by_slices). A piece has two phases. Collect: every rank sends each peer the peer's slice,
 * and sums its own slice over all ranks in tree order. Spread: every rank sends the sum of its
 * slice to all peers. In both phases together a rank sends the same number of bytes as in a ring,
 * but here the order of additions is fixed. A reduce-scatter has only the first phase, an
 * all-gather only the second. A push has the first phase; after it each rank adds its slices to the
 * partial sums of a tree, piece after piece in the order in which the pieces were begun. The last
 * push of a tree with PUSH_TO_ALL also has the second phase. Between many ranks a phase consists of
 * rounds of halving instead (order/halving.h). In some pushes these rounds join only sets of
 * neighbouring ranks. One round all to all between the sets is then added to the phase.
 *
 * Ranks of a node form groups (node_group.h). A group has one rank in comm_mpi, and
 * comm_group_width ranks in comm_nodes. The rail of a rank consists of the ranks that have the same
 * number in their groups; the other ranks of the rail are its peers. A rank handles the slices of
 * all ranks of its rail: it sums these slices over its group in shared memory before messages are
 * sent, and copies received sums to its group. Therefore each byte crosses the network once per
 * group, and a rank has as many peers as there are other groups.
 *
 * A few pieces are in flight at a time, each in a slot with staging memory. So memory is bounded
 * for any range, and counts of MPI stay far below 2^31. A progress thread (progress_thread.h) moves
 * and sums the pieces while the layers compute. */
#include "pieces.h"
#include "../world/mpi_check.h"

#include <sched.h>
#include <string.h>

/* In comm_wait a rank first polls for POLL_S without sleeping. After that it sleeps until the
 * progress thread has moved something, at most SLEEP_S at a time. comm_allgather_poll and
 * comm_push_poll sleep in the same way from the start. */
static const double POLL_S = 2e-4, SLEEP_S = 1e-3;
/* interval between checks that the group's ranks are alive */
static const double CHECK_S = 0.1;

static ProgressPoll poll(void *user);

/* Returns the bytes of staging memory of one slot: one slice per rank of the rail. On a rail of two
 * ranks, which never uses halving, one slice is enough. */
static size_t slot_bytes(int ranks, int width, int64_t elements)
{
    int rail = ranks / width, slices = rail - (rail <= 2);
    return (size_t)slices * (size_t)sum_slice_elements(ranks, width, elements) * sizeof(float);
}

size_t comm_mpi_staging(int ranks, int width, int64_t elements)
{
    return (size_t)sum_pieces_in_flight(width, elements) * slot_bytes(ranks, width, elements);
}

static Status mpi_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    int width = comm->group_width;
    MpiState *m = mem_new(sizeof *m);
    MPI_CHECK(MPI_Comm_split(comm->world->comm, comm->rank % width, comm->rank, &m->comm));
    Status mine = node_group_init(&m->group, comm->world, width, arena_bytes);
    Status status = status_agree(comm->world, mine);
    if (status != OK) {
        if (mine == OK) node_group_fini(&m->group);
        MPI_CHECK(MPI_Comm_free(&m->comm));
        mem_free(&m);
        return status;
    }
    m->rail_size = comm->size / width;
    m->rail_rank = comm->rank / width;
    m->halving = halving_new(m->rail_rank, m->rail_size);
    m->slots = sum_pieces_in_flight(width, comm->arena_elements);
    m->slice_elements = sum_slice_elements(comm->size, width, comm->arena_elements);
    m->even_elements = sum_piece_elements(comm->size, width, comm->arena_elements);
    m->uneven_elements = sum_range_elements(comm->size, width, comm->arena_elements);
    size_t peers = (size_t)m->rail_size - 1;
    m->staging_bytes = slot_bytes(comm->size, width, comm->arena_elements);
    for (int i = 0; i < m->slots; ++i) {
        Slot *slot = &m->slot[i];
        slot->staging = mem_pages_new(m->staging_bytes);
        /* touches the pages now, so that memory use does not depend on the number of pieces in
         * flight later */
        memset(slot->staging, 0, m->staging_bytes);
        slot->in = mem_new((peers + 1) * sizeof(float *));
        slot->request = mem_new(2 * peers * sizeof(MPI_Request));
    }
    if (width == 1) m->group.arena[0] = backend->table->alloc(backend, arena_bytes);
    comm->arena = m->group.arena[m->group.rank];
    comm->impl = m;
    m->progress = progress_thread_new(poll, comm);
    return OK;
}

static Status mpi_params_open(Comm *comm, size_t bytes)
{
    MpiState *m = comm->impl;
    TRY(status_agree(comm->world, node_group_params(&m->group, bytes)));
    if (m->group.size == 1) {
        TRY(comm_params_alloc(comm, bytes));
        m->group.params[0] = comm->params;
    }
    comm->params = m->group.params[m->group.rank];
    return OK;
}

static void mpi_close(Comm *comm)
{
    MpiState *m = comm->impl;
    int width = m->group.size;
    progress_thread_free(&m->progress);
    for (int i = 0; i < m->slots; ++i) {
        mem_pages_free(m->slot[i].staging, m->staging_bytes);
        mem_free(&m->slot[i].in);
        mem_free(&m->slot[i].request);
    }
    mem_free(&m->op);
    halving_free(&m->halving);
    MPI_CHECK(MPI_Comm_free(&m->comm));
    if (width == 1) {
        comm_params_release(comm);
        comm->backend->table->release(comm->backend, comm->arena,
                                      (size_t)comm->arena_elements * sizeof(float));
    }
    node_group_fini(&m->group);
    mem_free(&comm->impl);
    comm->arena = comm->params = NULL;
}

/* Decides whether the operation uses halving, and whether its pieces are slices or consecutive
 * ranges. */
static void choose_algorithm(const Comm *comm, Operation *op)
{
    const MpiState *m = comm->impl;
    const Cut *cut = &op->cut;
    const SumShape shape = {.ranks = comm->size,
                            .width = m->group.size,
                            .arena_elements = comm->arena_elements,
                            .elements = cut->count,
                            .is_push = op->push.partial != NULL,
                            .longest = cut->bounds ? cut_longest(cut, comm->size) : 0};
    SumAlgorithm algorithm = sum_algorithm(&shape, comm->sum_algorithm);
    op->halves = algorithm == COMM_HALVING;
    op->slices = sum_by_slices(&shape, algorithm);
}

static void begin(Comm *comm, Operation op)
{
    MpiState *m = comm->impl;
    mpi_lock();
    if (m->op_first == m->op_count) m->op_first = m->op_count = 0;
    if (m->op_count == m->op_capacity) {
        m->op_capacity = m->op_capacity ? 2 * m->op_capacity : 64;
        m->op = mem_resize(m->op, (size_t)m->op_capacity * sizeof *m->op);
    }
    op.id = ++m->begun;
    choose_algorithm(comm, &op);
    m->op[m->op_count++] = op;
    if (!op.collect) m->gathers = op.number;
    node_group_mark(&m->group, MARK_BEGUN, m->begun);
    /* in a group of several ranks the first poll, with the sum inside the group, is left to the
     * progress thread */
    if (m->group.size == 1) poll(comm);
    progress_thread_wake(m->progress);
    mpi_unlock();
}

static float *const *arenas(const Comm *comm)
{
    return ((const MpiState *)comm->impl)->group.arena;
}

static void mpi_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    begin(comm, (Operation){.base = arenas(comm),
                            .cut = {.offset = offset, .count = count},
                            .collect = true,
                            .spread = true});
}

static void mpi_reduce_begin(Comm *comm, const Bounds *bounds)
{
    begin(comm, (Operation){.base = arenas(comm), .cut = cut_at(bounds), .collect = true});
}

static void mpi_gather_begin(Comm *comm, const Bounds *bounds, int64_t shift)
{
    begin(comm, (Operation){.base = ((const MpiState *)comm->impl)->group.params,
                            .shift = shift,
                            .cut = cut_at(bounds),
                            .spread = true,
                            .number = comm->gathers});
}

static void mpi_push_begin(Comm *comm, const CommPush *push)
{
    begin(comm, (Operation){.base = arenas(comm),
                            .shift = push->shift,
                            .cut = cut_at(push->bounds),
                            .collect = true,
                            .spread = push->to == PUSH_TO_ALL && push_is_last(comm, push),
                            .push = *push,
                            .number = comm->pushes});
}

/* Returns true if an operation still has pieces that have not been started, and all ranks of the
 * group have begun the oldest such operation. */
static bool can_start(const MpiState *m)
{
    return m->op_first < m->op_count &&
           m->op[m->op_first].id <= node_group_least(&m->group, MARK_BEGUN);
}

/* Returns the largest number up to which all operations are done on this rank. With gathers = true,
 * considers only all-gathers, by their own numbers. */
static int64_t done_up_to(const MpiState *m, bool gathers)
{
    int64_t done = gathers ? m->gathers : m->begun;
    for (int i = 0; i < m->slots + m->op_count - m->op_first; ++i) {
        const Operation *op = i < m->slots ? &m->slot[i].op : &m->op[m->op_first + i - m->slots];
        bool open = i >= m->slots || m->slot[i].state != SLOT_IDLE;
        if (!open || (gathers && op->collect)) continue;
        int64_t number = gathers ? op->number : op->id;
        if (number <= done) done = number - 1;
        /* later operations have larger numbers */
        if (i >= m->slots) break;
    }
    return done;
}

/* Publishes this rank's marks to the group, and reads the minimum of each mark over the group.
 * Returns whether a minimum has changed. */
static bool exchange_marks(MpiState *m)
{
    bool moved = false;
    node_group_mark(&m->group, MARK_GATHERED, done_up_to(m, true));
    node_group_mark(&m->group, MARK_PUSHED, m->pushed);
    /* MARK_FINISHED is set last, as NodeMark requires */
    node_group_mark(&m->group, MARK_FINISHED, done_up_to(m, false));
    for (int i = 0; i < MARKS; ++i) {
        int64_t least = node_group_least(&m->group, i);
        moved |= least != m->seen[i];
        m->seen[i] = least;
    }
    return moved;
}

/* Polls all slots once. user: the Comm. */
static ProgressPoll poll(void *user)
{
    Comm *comm = user;
    MpiState *m = comm->impl;
    bool moved = false;
    for (int i = 0; i < m->slots; ++i) {
        Slot *slot = &m->slot[i];
        if (slot->state == SLOT_IDLE && can_start(m)) piece_start(comm, slot);
        moved |= piece_advance(comm, slot);
    }
    moved |= exchange_marks(m);
    return m->seen[MARK_FINISHED] >= m->begun ? PROGRESS_IDLE
           : moved                            ? PROGRESS_MOVED
                                              : PROGRESS_WAITING;
}

/* Sleeps until a poll of the progress thread has moved something or found nothing in flight, at
 * most for SLEEP_S. Every CHECK_S checks the ranks of the group, and ends the job if one has
 * ended. */
static void sleep_a_little(MpiState *m)
{
    progress_thread_wait(m->progress, SLEEP_S);
    double now = clock_s();
    if (m->group.size == 1 || now - m->checked_s < CHECK_S) return;
    m->checked_s = now;
    shm_segments_abort_if_peer_ended(&m->group.shared[0], "sum over ranks");
}

static void mpi_wait(Comm *comm)
{
    MpiState *m = comm->impl;
    double end = clock_s() + POLL_S;
    mpi_lock();
    while (poll(comm) != PROGRESS_IDLE) {
        if (clock_s() < end) {
            mpi_unlock();
            sched_yield();
            mpi_lock();
        } else {
            sleep_a_little(m);
        }
    }
    mpi_unlock();
}

static bool wait_a_little(Comm *comm, NodeMark mark, int64_t number)
{
    MpiState *m = comm->impl;
    mpi_lock();
    if (m->seen[mark] < number) sleep_a_little(m);
    bool done = m->seen[mark] >= number;
    mpi_unlock();
    return done;
}

static bool mpi_gather_poll(Comm *comm, int64_t number)
{
    return wait_a_little(comm, MARK_GATHERED, number);
}

static bool mpi_push_poll(Comm *comm, int64_t number)
{
    return wait_a_little(comm, MARK_PUSHED, number);
}

#define BY_MESSAGES                                                                                \
    .open = mpi_open, .close = mpi_close, .sum_begin = mpi_sum_begin, .shards = SHARDS_ALWAYS,     \
    .params_open = mpi_params_open, .reduce_begin = mpi_reduce_begin,                              \
    .gather_begin = mpi_gather_begin, .gather_poll = mpi_gather_poll,                              \
    .push_begin = mpi_push_begin, .push_poll = mpi_push_poll, .wait = mpi_wait

const CommTable comm_mpi = {.name = "mpi", BY_MESSAGES};
const CommTable comm_nodes = {.name = "shm and mpi", BY_MESSAGES};
