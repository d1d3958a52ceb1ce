/* Finds out which GPU each rank has and whether NCCL can join the GPUs, and makes the
 * communicators. Rank 0 broadcasts the id of the communicator of all ranks. The communicators of
 * the grid's dp_world, pp_world and tp_world are split from this communicator. Refuses GPUs of
 * several models if results must be the same on any grid, and refuses a GPU that ranks share if
 * transport nccl is configured; both are ERR_CONFIG. Tests may share a GPU
 * (WEFT_TEST_SHARED_GPU). */
#include "nccl.h"
#include "../world/abort.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* longest wait for one call that makes a communicator */
static const double INIT_LIMIT_S = 120;
/* Environment variable for tests. With value "1" NCCL joins ranks of one node even if they share a
 * GPU. */
static const char SHARED_GPU[] = "WEFT_TEST_SHARED_GPU";

/* ---- identities ---- */

/* The GPU of one rank. It contains no pointers, because it is gathered from all ranks as bytes. */
typedef struct Gpu {
    /* number of the first rank on the same node */
    int node;
    /* number of GPUs that the process may use */
    int visible;
    /* multiprocessors of the GPU */
    int processors;
    /* true: the environment variable SHARED_GPU of this rank is "1" */
    bool may_share;
    /* PCI bus id */
    char bus[32];
    /* name of the GPU's model, for example "NVIDIA H200" */
    char model[256];
} Gpu;

static Status gpu_identify(const Backend *backend, Gpu *gpu)
{
    struct cudaDeviceProp properties;
    int device = backend->options.device;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(gpu->bus, sizeof gpu->bus, device);
    if (error == cudaSuccess) error = cudaGetDeviceCount(&gpu->visible);
    if (error != cudaSuccess)
        return fail(ERR_CONFIG, "GPU %d: reading its identity: %s (%s)", device,
                    cudaGetErrorString(error), cudaGetErrorName(error));
    gpu->processors = properties.multiProcessorCount;
    const char *shared = getenv(SHARED_GPU);
    gpu->may_share = shared && !strcmp(shared, "1");
    snprintf(gpu->model, sizeof gpu->model, "%s", properties.name);
    return OK;
}

/* Refuses GPUs of several models if bits (train.reproducible) is REPRODUCIBLE_ANY_GRID, because
 * matrix products may differ in their last bits between models. Otherwise warns that the GPUs
 * differ. */
static Status check_models(const Gpu *gpu, int ranks, int bits)
{
    int r = 1;
    while (r < ranks && strcmp(gpu[r].model, gpu[0].model) == 0 &&
           gpu[r].processors == gpu[0].processors)
        ++r;
    if (r >= ranks) return OK;
    char *who = mem_format("rank 0 has a GPU %s (%d processors), rank %d a %s (%d)", gpu[0].model,
                           gpu[0].processors, r, gpu[r].model, gpu[r].processors);
    Status st = OK;
    if (bits == REPRODUCIBLE_ANY_GRID)
        st = fail(
            ERR_CONFIG,
            "train.reproducible: %s: results on different models are not identical to the last "
            "bit; start "
            "on nodes with one model (Slurm: --constraint), or set train.reproducible=same_grid",
            who);
    else
        log_warn("%s: each step is as slow as the slowest", who);
    mem_free(&who);
    return st;
}

/* Returns whether two ranks share a GPU. Sets *a and *b to the first such pair. */
static bool find_sharers(const Gpu *gpu, int ranks, int *a, int *b)
{
    for (*b = 1; *b < ranks; ++*b)
        for (*a = gpu[*b].node; *a < *b; ++*a)
            if (gpu[*a].node == gpu[*b].node && strcmp(gpu[*a].bus, gpu[*b].bus) == 0) return true;
    return false;
}

/* Warns if two ranks of a node can each use only one GPU. The launcher then probably hides the
 * other GPUs of the node, so that NCCL may be unable to reach them directly. */
static void warn_hidden(const Gpu *gpu, int ranks)
{
    for (int b = 1; b < ranks; ++b)
        for (int a = gpu[b].node; a < b; ++a)
            if (gpu[a].node == gpu[b].node && gpu[a].visible == 1 && gpu[b].visible == 1) {
                log_warn(
                    "ranks %d and %d share a node and see one GPU each, so NCCL may be unable to "
                    "use NVLink between them: make all GPUs of a node visible to each rank (Slurm: "
                    "--gpus-per-node instead of --gpus-per-task, or --gpu-bind=none; otherwise "
                    "CUDA_VISIBLE_DEVICES); each rank still uses a different one",
                    a, b);
                return;
            }
}

/* Returns whether NCCL may join ranks that share a GPU, as tests need: all ranks are on one node,
 * and SHARED_GPU is "1" for all. */
static bool sharing_is_allowed(const Gpu *gpu, int ranks)
{
    for (int r = 0; r < ranks; ++r)
        if (!gpu[r].may_share || gpu[r].node != gpu[0].node) return false;
    return true;
}

typedef struct Verdict {
    /* true: NCCL joins the GPUs; false: sums and messages go through host memory */
    bool join;
    /* true: each rank presents itself to NCCL as a separate host (pose_as_host) */
    bool as_hosts;
} Verdict;

/* Decides whether NCCL joins the GPUs; all ranks make the same decision. ERR_CONFIG: check_models
 * refuses the GPUs, or transport is nccl and ranks share a GPU. */
static Status decide(const Gpu *gpu, int ranks, int transport, int bits, Verdict *verdict)
{
    int a, b;
    *verdict = (Verdict){.join = transport == TRANSPORT_AUTO || transport == TRANSPORT_NCCL};
    TRY(check_models(gpu, ranks, bits));
    if (!verdict->join) return OK;
    if (!find_sharers(gpu, ranks, &a, &b)) {
        warn_hidden(gpu, ranks);
        return OK;
    }
    if (sharing_is_allowed(gpu, ranks)) {
        log_warn("%s: ranks %d and %d share the GPU %s, and NCCL joins them through sockets as if "
                 "each were a separate host: slow, and for tests only",
                 SHARED_GPU, a, b, gpu[a].bus);
        verdict->as_hosts = true;
        return OK;
    }
    verdict->join = false;
    if (transport == TRANSPORT_NCCL)
        return fail(ERR_CONFIG,
                    "grid.transport: nccl needs a GPU for each rank, and ranks %d and %d share %s: "
                    "start at most as many ranks on a node as it has GPUs, or use auto",
                    a, b, gpu[a].bus);
    log_warn(
        "ranks %d and %d share the GPU %s, and NCCL needs one for each rank: sums and messages "
        "go through host memory, which is slow; start at most as many ranks on a node as "
        "it has GPUs",
        a, b, gpu[a].bus);
    return OK;
}

/* ---- communicators ---- */

/* Waits at set-up until the newest call on `comm`, which returned `result`, is complete. call: name
 * of the called function. ranks: number of ranks that take part, for messages. If `child` is not
 * NULL, also waits until NCCL has set *child, because NCCL 2.28.9 reports a split as complete
 * before its thread sets *child. ERR_CONFIG if the call fails or is not complete after
 * INIT_LIMIT_S. */
static Status await(ncclComm_t comm, ncclResult_t result, const char *call, int ranks,
                    ncclComm_t *child)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    double start = clock_s();
    bool made = !child;
    for (;;) {
        if (result == ncclSuccess && !made) made = __atomic_load_n(child, __ATOMIC_ACQUIRE) != NULL;
        if ((result == ncclSuccess && made) || clock_s() - start >= INIT_LIMIT_S) break;
        if (result != ncclSuccess && result != ncclInProgress) break;
        nanosleep(&nap, NULL);
        ncclResult_t polled = nccl.comm_async_error(comm, &result);
        if (polled != ncclSuccess) result = polled;
    }
    if (result == ncclSuccess && made) return OK;
    if (result == ncclSuccess || result == ncclInProgress)
        return fail(
            ERR_CONFIG,
            "NCCL: the %d ranks did not find each other in %.0f s; NCCL_DEBUG=INFO says why", ranks,
            INIT_LIMIT_S);
    return fail(ERR_CONFIG, "%s: %s: %s; NCCL_DEBUG=INFO says more", call,
                nccl.error_string(result), nccl.last_error(comm));
}

static Status make_id(const World *world, ncclUniqueId *id)
{
    if (world->rank != 0) return OK;
    ncclResult_t result = nccl.get_unique_id(id);
    if (result == ncclSuccess) return OK;
    return fail(ERR_CONFIG, "ncclGetUniqueId: %s: %s; NCCL_DEBUG=INFO says more",
                nccl.error_string(result), nccl.last_error(NULL));
}

/* If `st`, on which all ranks agree, is an error, aborts the communicator and sets *comm to NULL.
 * Without this, comm_finalize would later wait for ranks that have no communicator. Returns st. */
static Status abort_if_failed(ncclComm_t *comm, Status st)
{
    if (st != OK && *comm) {
        nccl.comm_abort(*comm);
        *comm = NULL;
    }
    return st;
}

/* Makes the communicator of all ranks. Collective. */
static Status connect(ncclComm_t *comm, const World *world)
{
    ncclUniqueId id = {0};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    TRY(status_agree(world, make_id(world, &id)));
    world_bcast(world, &id, sizeof id, 0);
    ncclResult_t result = nccl.comm_init(comm, world->size, id, world->rank, &config);
    Status st = await(*comm, result, "ncclCommInitRankConfig", world->size, NULL);
    return abort_if_failed(comm, status_agree(world, st));
}

/* Splits the communicator grid->nccl_comm[0]: makes the communicator of the ranks that pass the
 * same color, numbered as in the world `part`. Collective on grid->world. */
static Status split(ncclComm_t *comm, const Grid *grid, const World *part, int color)
{
    ncclComm_t parent = grid->nccl_comm[0]->comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result = nccl.comm_split(parent, color, part->rank, comm, &config);
    Status st = await(parent, result, "ncclCommSplit", grid->world->size, comm);
    if (st == OK) st = await(*comm, ncclInProgress, "ncclCommSplit", part->size, NULL);
    return abort_if_failed(comm, status_agree(grid->world, st));
}

static NcclComm *nccl_comm_new(Backend *backend, int bits, bool on_compute_stream)
{
    const BackendTable *table = backend->table;
    NcclComm *nccl_comm = mem_new(sizeof *nccl_comm);
    *nccl_comm = (NcclComm){.backend = backend, .any_order = bits == REPRODUCIBLE_SAME_GRID};
    if (!on_compute_stream) nccl_comm->separate = table->stream_new(backend);
    nccl_comm->stream = on_compute_stream ? table->stream(backend) : nccl_comm->separate;
    return nccl_comm;
}

static void nccl_comm_free(NcclComm **nccl_comm)
{
    NcclComm *g = *nccl_comm;
    if (!g) return;
    const BackendTable *table = g->backend->table;
    table->sync(g->stream);
    if (g->comm) {
        nccl_settle(g, nccl.comm_finalize(g->comm), "ncclCommFinalize");
        ncclResult_t result = nccl.comm_destroy(g->comm);
        if (result != ncclSuccess) die("ncclCommDestroy: %s", nccl.error_string(result));
    }
    if (g->separate) table->stream_free(&g->separate);
    mem_free(nccl_comm);
}

/* Starts the thread that watches the communicators. Collective on the grid's world. */
static Status watch_new(Grid *grid, const Gpu *mine)
{
    const World *world = grid->world;
    World node = {.rank = world->node_rank, .size = world->node_size, .one_node = true};
    NcclWatch *watch = grid->nccl_comm[0]->watch = mem_new(sizeof *watch);
    node.comm = world->node;
    Status st = OK;
    if (node.size > 1) {
        st = shm_segments_init(&watch->node, &node, sizeof(int), "the GPU watchdog");
        watch->has_node = st == OK;
    }
    TRY(status_agree(world, st));
    snprintf(watch->gpu, sizeof watch->gpu, "GPU %d (%.60s, %s)",
             grid->nccl_comm[0]->backend->options.device, mine->model, mine->bus);
    for (int i = 0; i < WATCH_COMMS; ++i)
        watch->comm[i] = grid->nccl_comm[i] ? grid->nccl_comm[i]->comm : NULL;
    for (int i = 1; i < WATCH_COMMS; ++i)
        if (grid->nccl_comm[i]) grid->nccl_comm[i]->watch = watch;
    return status_agree(world, nccl_watch_start(watch));
}

/* Warns if NCCL is older than 2.26, the first version that reads NCCL_LAUNCH_ORDER_IMPLICIT. With
 * this variable a GPU starts the work of several communicators in the order in which the host
 * issued it. */
static void warn_unordered(void)
{
    int running = 0;
    if (nccl.get_version(&running) != ncclSuccess || running >= NCCL_VERSION(2, 26, 0)) return;
    log_warn(
        "NCCL %d.%d does not keep the order of several communicators' work on a GPU, so that ranks "
        "may wait for each other for ever: use 2.26 or newer, or one of grid.dp, grid.pp and "
        "grid.tp alone",
        running / 10000, running / 100 % 100);
}

/* Makes NCCL accept several ranks of one host on one GPU, which it otherwise refuses. NCCL treats
 * ranks with different NCCL_HOSTID as ranks of different hosts. Unless the user has set
 * NCCL_SOCKET_IFNAME, the ranks connect over the interface lo. NCCL reads both variables when it
 * makes its first communicator. */
static void pose_as_host(int rank)
{
    char name[32];
    snprintf(name, sizeof name, "weft-rank-%d", rank);
    setenv("NCCL_HOSTID", name, 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

/* Makes all communicators. Collective on the grid's world. */
static Status join(Grid *grid, Backend *backend, int bits, const Gpu *mine)
{
    World *part[WATCH_COMMS] = {NULL, &grid->dp_world, &grid->pp_world, &grid->tp_world};
    GridShape s = grid->shape;
    int color[WATCH_COMMS] = {0, grid->pp_rank * s.tp + grid->tp_rank,
                              grid->dp_rank * s.tp + grid->tp_rank,
                              grid->pp_rank * s.dp + grid->dp_rank};
    bool several = (s.dp > 1) + (s.pp > 1) + (s.tp > 1) > 1;
    if (several) setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    TRY(status_agree(grid->world, nccl_load()));
    if (several) warn_unordered();
    grid->nccl_comm[0] = nccl_comm_new(backend, bits, false);
    TRY(connect(&grid->nccl_comm[0]->comm, grid->world));
    for (int i = 1; i < WATCH_COMMS; ++i) {
        /* part[i]->size is the same on every rank, so all ranks make the same splits */
        if (part[i]->size == 1) continue;
        grid->nccl_comm[i] = nccl_comm_new(backend, bits, part[i] == &grid->tp_world);
        TRY(split(&grid->nccl_comm[i]->comm, grid, part[i], color[i]));
        part[i]->nccl_comm = grid->nccl_comm[i];
    }
    return watch_new(grid, mine);
}

Status grid_join_gpus(Grid *grid, Backend *backend, int transport, int bits)
{
    const World *world = grid->world;
    Verdict verdict;
    if (backend->table->host_memory || world->size == 1) return OK;
    int *node = world_node_leaders(world);
    Gpu mine = {.node = node[world->rank]};
    mem_free(&node);
    TRY(status_agree(world, gpu_identify(backend, &mine)));
    Gpu *all = mem_new((size_t)world->size * sizeof *all);
    world_allgather(world, &mine, sizeof mine, all);
    Status st = decide(all, world->size, transport, bits, &verdict);
    mem_free(&all);
    TRY(status_agree(world, st));
    if (!verdict.join) return OK;
    if (verdict.as_hosts) pose_as_host(world->rank);
    return join(grid, backend, bits, &mine);
}

void grid_release_gpus(Grid *grid)
{
    if (!grid->nccl_comm[0]) return;
    NcclWatch **watch = &grid->nccl_comm[0]->watch;
    if (*watch) {
        nccl_watch_stop(*watch);
        if ((*watch)->has_node) shm_segments_fini(&(*watch)->node);
        mem_free(watch);
    }
    for (int i = 1; i < WATCH_COMMS; ++i)
        if (grid->nccl_comm[i]) grid->nccl_comm[i]->watch = NULL;
    /* Waits until all ranks have stopped their watch threads, before any rank destroys its
     * communicators. */
    world_barrier(grid->world);
    for (int i = WATCH_COMMS - 1; i >= 0; --i) nccl_comm_free(&grid->nccl_comm[i]);
    grid->dp_world.nccl_comm = grid->pp_world.nccl_comm = grid->tp_world.nccl_comm = NULL;
}
