/* comm_nccl: sums between GPUs. The ordered one cuts a range in one slice a rank; slices travel to their rank by grouped sends,
 * are added there in the tree's order, and travel back: the bytes of a ring, the bits of the tree. Where any order does, NCCL's own
 * all-reduce serves. All of it is queued on the communicator's stream, which waits for the compute stream at sum_begin;
 * wait makes the compute stream wait in turn. */
#include "nccl.h"
#include "../comm_values.h"
#include "../tree_sum.h"

#include <cuda_runtime_api.h>

enum { SLICE_SLACK = 32 }; /* slices begin on 16 floats */
static const int64_t PIECE_ELEMENTS =
    8 << 20; /* a longer range is summed in pieces: the scratch stays 32 MB */

typedef struct NcclState {
    Event *computed, *summed; /* owned */
    float *scratch;           /* owned: a slice from each other rank */
    size_t scratch_bytes;
    int64_t slice_elements; /* room for one slice */
    bool in_flight;
} NcclState;

static const Gpus *gpus_of(const Comm *comm)
{
    return comm->world->gpus;
}

static Stream *stream_of(const Comm *comm)
{
    return gpus_of(comm)->stream;
}

/* ---- opening ---- */

static Status nccl_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    NcclState *state = comm->impl = mem_new(sizeof *state);
    int64_t piece = comm->arena_elements < PIECE_ELEMENTS ? comm->arena_elements : PIECE_ELEMENTS;
    state->slice_elements = piece / comm->size + SLICE_SLACK;
    state->scratch_bytes = (size_t)state->slice_elements * (size_t)(comm->size - 1) * sizeof(float);
    if (gpus_of(comm)->any_order) state->scratch_bytes = 0;
    state->scratch = backend->table->alloc(backend, state->scratch_bytes);
    state->computed = backend->table->event_new(backend);
    state->summed = backend->table->event_new(backend);
    comm->arena = backend->table->alloc(backend, arena_bytes);
    return OK;
}

static void nccl_close(Comm *comm)
{
    NcclState *state = comm->impl;
    Backend *backend = comm->backend;
    const BackendTable *table = backend->table;
    table->sync(stream_of(comm));
    table->release(backend, comm->arena, (size_t)comm->arena_elements * sizeof(float));
    if (state->scratch) table->release(backend, state->scratch, state->scratch_bytes);
    table->event_free(&state->computed);
    table->event_free(&state->summed);
    mem_free(&state);
    comm->impl = NULL;
}

/* ---- sums ---- */

typedef struct Slice {
    int64_t offset, elements; /* in the arena */
} Slice;

static Slice slice_of(const Comm *comm, int64_t offset, int64_t count, int rank)
{
    int64_t from = slice_border(offset, count, comm->size, rank);
    return (Slice){from, slice_border(offset, count, comm->size, rank + 1) - from};
}

static size_t bytes_of(Slice slice)
{
    return (size_t)slice.elements * sizeof(float);
}

/* Where rank `peer`'s part of my slice lies: my own in the arena, the others' in the scratch. */
static float *part_of(const Comm *comm, Slice mine, int peer)
{
    const NcclState *state = comm->impl;
    if (peer == comm->rank) return comm->arena + mine.offset;
    return state->scratch + state->slice_elements * (peer < comm->rank ? peer : peer - 1);
}

static void scatter(const Comm *comm, int64_t offset, int64_t count, Slice mine)
{
    const Gpus *gpus = gpus_of(comm);
    nccl_group_begin(gpus);
    for (int peer = 0; peer < comm->size; ++peer) {
        if (peer == comm->rank) continue;
        Slice theirs = slice_of(comm, offset, count, peer);
        nccl_send(gpus, comm->arena + theirs.offset, bytes_of(theirs), peer);
        nccl_receive(gpus, part_of(comm, mine, peer), bytes_of(mine), peer);
    }
    nccl_group_end(gpus);
}

static void add_in_order(const Comm *comm, Slice mine)
{
    const BackendTable *table = comm->backend->table;
    Stream *stream = stream_of(comm);
    float *level[32];
    if (mine.elements == 0) return;
    for (int rank = 0; rank < comm->size; ++rank) {
        TreeStep step = tree_step(rank, comm->size);
        level[step.write] = part_of(comm, mine, rank);
        for (int j = 0; j < step.join_count; ++j) {
            float *to = level[step.to[j]];
            table->flat->add(stream, to, to, level[step.to[j] + 1], mine.elements);
        }
    }
    float *sum = comm->arena + mine.offset;
    if (level[0] != sum) table->copy(stream, sum, level[0], bytes_of(mine));
}

static void gather(const Comm *comm, int64_t offset, int64_t count, Slice mine)
{
    const Gpus *gpus = gpus_of(comm);
    nccl_group_begin(gpus);
    for (int peer = 0; peer < comm->size; ++peer) {
        if (peer == comm->rank) continue;
        Slice theirs = slice_of(comm, offset, count, peer);
        nccl_send(gpus, comm->arena + mine.offset, bytes_of(mine), peer);
        nccl_receive(gpus, comm->arena + theirs.offset, bytes_of(theirs), peer);
    }
    nccl_group_end(gpus);
}

static void sum_in_order(const Comm *comm, int64_t offset, int64_t count)
{
    for (int64_t done = 0; done < count; done += PIECE_ELEMENTS) {
        int64_t piece = count - done < PIECE_ELEMENTS ? count - done : PIECE_ELEMENTS;
        Slice mine = slice_of(comm, offset + done, piece, comm->rank);
        scatter(comm, offset + done, piece, mine);
        add_in_order(comm, mine);
        gather(comm, offset + done, piece, mine);
    }
}

static void sum_in_a_ring(const Comm *comm, int64_t offset, int64_t count)
{
    const Gpus *gpus = gpus_of(comm);
    float *at = comm->arena + offset;
    cudaStream_t stream = comm->backend->table->stream_handle(gpus->stream);
    nccl_settle(gpus,
                nccl.all_reduce(at, at, (size_t)count, ncclFloat, ncclSum, gpus->comm, stream),
                "ncclAllReduce");
}

static void nccl_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    const BackendTable *table = comm->backend->table;
    NcclState *state = comm->impl;
    Stream *stream = stream_of(comm);
    table->event_record(state->computed, table->stream(comm->backend));
    table->event_wait(state->computed, stream);
    if (gpus_of(comm)->any_order)
        sum_in_a_ring(comm, offset, count);
    else
        sum_in_order(comm, offset, count);
    table->event_record(state->summed, stream);
    state->in_flight = true;
}

static bool nccl_progress(Comm *comm)
{
    const NcclState *state = comm->impl;
    return !state->in_flight; /* the GPU needs no help */
}

static void nccl_wait(Comm *comm)
{
    const BackendTable *table = comm->backend->table;
    NcclState *state = comm->impl;
    if (!state->in_flight) return;
    table->event_wait(state->summed, table->stream(comm->backend));
    state->in_flight = false;
}

const CommTable comm_nccl = {
    .name = "nccl",
    .open = nccl_open,
    .close = nccl_close,
    .sum_begin = nccl_sum_begin,
    .progress = nccl_progress,
    .wait = nccl_wait,
};
