/* comm_nccl: ordered sums between GPUs. A range is cut in one slice a rank; slices travel to their rank by grouped sends,
 * are added there in the tree's order, and travel back: the bytes of a ring, the bits of the tree. All of it is queued
 * on a stream of its own, which waits for the compute stream at sum_begin; wait makes the compute stream wait in turn.
 * Needs a GPU for each rank. */
#include "nccl.h"
#include "parallel.h"
#include "../tree_sum.h"

#include <cuda_runtime_api.h>
#include <string.h>
#include <time.h>

enum { SLICE_SLACK = 32 }; /* slices begin on 16 floats */
static const int64_t PIECE_ELEMENTS =
    8 << 20; /* a longer range is summed in pieces: the scratch stays 32 MB */
static const double INIT_LIMIT_S = 120;

typedef struct NcclState {
    ncclComm_t comm;
    Stream *stream;           /* owned */
    Event *computed, *summed; /* owned */
    float *scratch;           /* owned: a slice from each other rank */
    size_t scratch_bytes;
    int64_t slice_elements; /* room for one slice */
    bool in_flight;
    NcclWatch watch;
} NcclState;

static cudaStream_t raw_stream(const Comm *comm)
{
    const NcclState *state = comm->impl;
    return comm->backend->table->stream_handle(state->stream);
}

/* Inside a step: anything but success is die(). The communicator does not block, so a call may still be in progress;
 * it must be over before the next one. */
static void settle(ncclComm_t comm, ncclResult_t result, const char *call)
{
    while (result == ncclInProgress) {
        ncclResult_t asked = nccl.comm_async_error(comm, &result);
        if (asked != ncclSuccess) result = asked;
    }
    if (result != ncclSuccess)
        die("%s: %s: %s", call, nccl.error_string(result), nccl.last_error(comm));
}

/* In a group a call is only noted down. */
static void noted(ncclComm_t comm, ncclResult_t result, const char *call)
{
    if (result != ncclInProgress) settle(comm, result, call);
}

/* ---- opening ---- */

typedef struct Gpu { /* plain bytes: gathered from all ranks */
    cudaUUID_t uuid;
    char bus[32];
} Gpu;

static Status gpu_identify(const Backend *backend, Gpu *gpu)
{
    struct cudaDeviceProp properties;
    int device = backend->options.device;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(gpu->bus, sizeof gpu->bus, device);
    if (error != cudaSuccess)
        return fail(ERR_CONFIG, "GPU %d: reading its identity: %s (%s)", device,
                    cudaGetErrorString(error), cudaGetErrorName(error));
    gpu->uuid = properties.uuid;
    return OK;
}

/* The same on every rank. Collective. */
static Status gpus_distinct(const World *world, const Gpu *mine)
{
    Gpu *gpu = mem_new((size_t)world->size * sizeof *gpu);
    Status st = OK;
    world_gather(world, mine, sizeof *mine, gpu);
    for (int b = 1; b < world->size && st == OK; ++b)
        for (int a = 0; a < b && st == OK; ++a)
            if (memcmp(&gpu[a].uuid, &gpu[b].uuid, sizeof gpu[a].uuid) == 0)
                st = fail(ERR_CONFIG,
                          "ranks %d and %d share the GPU %s, and NCCL needs one for each rank: "
                          "start at most as many "
                          "ranks on a node as it has GPUs, or use train.device=cpu",
                          a, b, gpu[a].bus);
    mem_free(&gpu);
    return st;
}

static Status make_id(const World *world, ncclUniqueId *id)
{
    if (world->rank != 0) return OK;
    ncclResult_t result = nccl.get_unique_id(id);
    if (result == ncclSuccess) return OK;
    return fail(ERR_CONFIG, "ncclGetUniqueId: %s: %s; NCCL_DEBUG=INFO says more",
                nccl.error_string(result), nccl.last_error(NULL));
}

/* Without blocking, so that a rank that never comes is a message. */
static Status join(NcclState *state, const World *world, ncclUniqueId id)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    double start = clock_s();
    ncclResult_t result = nccl.comm_init(&state->comm, world->size, id, world->rank, &config);
    while (result == ncclInProgress && clock_s() - start < INIT_LIMIT_S) {
        nanosleep(&nap, NULL);
        ncclResult_t asked = nccl.comm_async_error(state->comm, &result);
        if (asked != ncclSuccess) result = asked;
    }
    if (result == ncclSuccess) return OK;
    Status st =
        result == ncclInProgress
            ? fail(ERR_CONFIG,
                   "NCCL: the %d ranks did not find each other in %.0f s; NCCL_DEBUG=INFO says why",
                   world->size, INIT_LIMIT_S)
            : fail(ERR_CONFIG, "ncclCommInitRankConfig: %s: %s; NCCL_DEBUG=INFO says more",
                   nccl.error_string(result), nccl.last_error(state->comm));
    if (state->comm) nccl.comm_abort(state->comm);
    state->comm = NULL;
    return st;
}

/* Collective: every rank leaves each line with the same status. */
static Status connect(NcclState *state, const World *world, const Backend *backend)
{
    Gpu gpu = {0};
    ncclUniqueId id = {0};
    TRY(status_agree(world, nccl_load()));
    TRY(status_agree(world, gpu_identify(backend, &gpu)));
    TRY(gpus_distinct(world, &gpu));
    TRY(status_agree(world, make_id(world, &id)));
    world_bcast(world, &id, sizeof id, 0);
    TRY(status_agree(world, join(state, world, id)));
    return status_agree(world, nccl_watch_start(&state->watch, state->comm));
}

static void open_memory(Comm *comm, NcclState *state, size_t arena_bytes)
{
    Backend *backend = comm->backend;
    int64_t piece = comm->arena_elements < PIECE_ELEMENTS ? comm->arena_elements : PIECE_ELEMENTS;
    state->slice_elements = piece / comm->size + SLICE_SLACK;
    state->scratch_bytes = (size_t)state->slice_elements * (size_t)(comm->size - 1) * sizeof(float);
    state->scratch = backend->table->alloc(backend, state->scratch_bytes);
    state->stream = backend->table->stream_new(backend);
    state->computed = backend->table->event_new(backend);
    state->summed = backend->table->event_new(backend);
    comm->arena = backend->table->alloc(backend, arena_bytes);
}

static void close_connection(NcclState *state)
{
    nccl_watch_stop(&state->watch);
    if (!state->comm) return;
    settle(state->comm, nccl.comm_finalize(state->comm), "ncclCommFinalize");
    ncclResult_t result = nccl.comm_destroy(state->comm);
    if (result != ncclSuccess) die("ncclCommDestroy: %s", nccl.error_string(result));
}

static void nccl_close(Comm *comm)
{
    NcclState *state = comm->impl;
    Backend *backend = comm->backend;
    const BackendTable *table = backend->table;
    if (state->stream) table->sync(state->stream);
    close_connection(state);
    if (comm->arena)
        table->release(backend, comm->arena, (size_t)comm->arena_elements * sizeof(float));
    if (state->scratch) table->release(backend, state->scratch, state->scratch_bytes);
    if (state->computed) table->event_free(&state->computed);
    if (state->summed) table->event_free(&state->summed);
    if (state->stream) table->stream_free(&state->stream);
    mem_free(&state);
    comm->impl = NULL;
}

static Status nccl_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    NcclState *state = comm->impl = mem_new(sizeof *state);
    Status st = connect(state, comm->world, backend);
    if (st == OK)
        open_memory(comm, state, arena_bytes);
    else
        nccl_close(comm);
    return st;
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

static void send(Comm *comm, Slice slice, int peer)
{
    NcclState *state = comm->impl;
    if (slice.elements > 0)
        noted(state->comm,
              nccl.send(comm->arena + slice.offset, (size_t)slice.elements, ncclFloat, peer,
                        state->comm, raw_stream(comm)),
              "ncclSend");
}

static void receive(Comm *comm, float *to, int64_t elements, int peer)
{
    NcclState *state = comm->impl;
    if (elements > 0)
        noted(state->comm,
              nccl.recv(to, (size_t)elements, ncclFloat, peer, state->comm, raw_stream(comm)),
              "ncclRecv");
}

static void group_end(NcclState *state)
{
    settle(state->comm, nccl.group_end(), "ncclGroupEnd");
}

/* Where rank `peer`'s part of my slice lies: my own in the arena, the others' in the scratch. */
static float *part_of(Comm *comm, Slice mine, int peer)
{
    NcclState *state = comm->impl;
    if (peer == comm->rank) return comm->arena + mine.offset;
    return state->scratch + state->slice_elements * (peer < comm->rank ? peer : peer - 1);
}

static void scatter(Comm *comm, int64_t offset, int64_t count, Slice mine)
{
    NcclState *state = comm->impl;
    noted(state->comm, nccl.group_start(), "ncclGroupStart");
    for (int peer = 0; peer < comm->size; ++peer) {
        if (peer == comm->rank) continue;
        send(comm, slice_of(comm, offset, count, peer), peer);
        receive(comm, part_of(comm, mine, peer), mine.elements, peer);
    }
    group_end(state);
}

static void add_in_order(Comm *comm, Slice mine)
{
    const BackendTable *table = comm->backend->table;
    NcclState *state = comm->impl;
    float *level[32];
    if (mine.elements == 0) return;
    for (int rank = 0; rank < comm->size; ++rank) {
        TreeStep step = tree_step(rank, comm->size);
        level[step.write] = part_of(comm, mine, rank);
        for (int j = 0; j < step.join_count; ++j) {
            float *to = level[step.to[j]];
            table->flat->add(state->stream, to, to, level[step.to[j] + 1], mine.elements);
        }
    }
    float *sum = comm->arena + mine.offset;
    if (level[0] != sum)
        table->copy(state->stream, sum, level[0], (size_t)mine.elements * sizeof(float));
}

static void gather(Comm *comm, int64_t offset, int64_t count, Slice mine)
{
    NcclState *state = comm->impl;
    noted(state->comm, nccl.group_start(), "ncclGroupStart");
    for (int peer = 0; peer < comm->size; ++peer) {
        if (peer == comm->rank) continue;
        Slice theirs = slice_of(comm, offset, count, peer);
        send(comm, mine, peer);
        receive(comm, comm->arena + theirs.offset, theirs.elements, peer);
    }
    group_end(state);
}

static void nccl_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    const BackendTable *table = comm->backend->table;
    NcclState *state = comm->impl;
    table->event_record(state->computed, table->stream(comm->backend));
    table->event_wait(state->computed, state->stream);
    for (int64_t done = 0; done < count; done += PIECE_ELEMENTS) {
        int64_t piece = count - done < PIECE_ELEMENTS ? count - done : PIECE_ELEMENTS;
        Slice mine = slice_of(comm, offset + done, piece, comm->rank);
        scatter(comm, offset + done, piece, mine);
        add_in_order(comm, mine);
        gather(comm, offset + done, piece, mine);
    }
    table->event_record(state->summed, state->stream);
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
