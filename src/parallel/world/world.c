/* The world of ranks: starts and ends MPI, and provides the collectives that set-up needs. A
 * process that was started without a launcher never calls MPI. If launcher and MPI disagree about
 * the number of ranks, world_init fails: the launcher then belongs to another MPI, and every
 * process would act as rank 0. */
#include "launcher.h"
#include "leaks.h"
#include "mpi_check.h"
#include "abort.h"

#include "base/start.h"

#include <limits.h>
#include <string.h>

enum { MESSAGE_BYTES = 2048 };
/* bytes of the largest message; counts of MPI are ints */
static const size_t PIECE_BYTES = (size_t)1 << 30;
static const World ALONE = {
    .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};

/* Returns whether an error class of MPI means a wrong argument of the call; false means an error of
 * a message, a link or a peer. */
static bool is_argument_error(int class)
{
    static const int classes[] = {
        MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TAG,     MPI_ERR_COMM,    MPI_ERR_RANK,
        MPI_ERR_ROOT,   MPI_ERR_GROUP, MPI_ERR_OP,   MPI_ERR_REQUEST, MPI_ERR_DIMS,    MPI_ERR_ARG,
        MPI_ERR_FILE,   MPI_ERR_INFO,  MPI_ERR_WIN,  MPI_ERR_KEYVAL,  MPI_ERR_TRUNCATE};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; ++i)
        if (classes[i] == class) return true;
    return false;
}

void mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS) return;
    char words[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0, class = MPI_ERR_OTHER;
    MPI_Error_string(code, words, &length);
    MPI_Error_class(code, &class);
    if (class == MPI_ERR_NO_MEM)
        die_as(ERR_MEMORY, "%.*s: %s", (int)strcspn(call, "("), call, words);
    if (is_argument_error(class)) die("%.*s: %s", (int)strcspn(call, "("), call, words);
    die_lost(
        "%.*s: %s; most likely another rank has died or a link has failed, and its own message or "
        "the system's log says why",
        (int)strcspn(call, "("), call, words);
}

bool world_launched(int *local_size)
{
    Launcher launcher = launcher_find();
    *local_size = launcher.local_size > 0 ? launcher.local_size : 1;
    return launcher.name != NULL;
}

void world_context(const World *world, const char *coordinates)
{
    if (world->comm == MPI_COMM_NULL) return;
    char node[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_CHECK(MPI_Get_processor_name(node, &length));
    char whole[MPI_MAX_PROCESSOR_NAME + 128];
    snprintf(whole, sizeof whole, "rank %d of %d%s on %s", world->rank, world->size, coordinates,
             node);
    die_context(whole, world_abort);
}

static void init_node(World *world)
{
    MPI_CHECK(MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL,
                                  &world->node));
    MPI_CHECK(MPI_Comm_rank(world->node, &world->node_rank));
    MPI_CHECK(MPI_Comm_size(world->node, &world->node_size));
    world->one_node = world->node_size == world->size;
}

World world_alone(void)
{
    return ALONE;
}

Status world_init(World *world, int *argc, char ***argv)
{
    *world = ALONE;
    Launcher launcher = launcher_find();
    if (launcher.size == 1) {
        log_init(true);
        return OK;
    }
    launcher_tune_mpi(&launcher);
    int provided = MPI_THREAD_SINGLE;
    start_reach(START_MPI);
    leaks_ignore_begin();
    int code = MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    leaks_ignore_end();
    mpi_check(code, "MPI_Init_thread");
    start_reach(START_NODE);
    world->comm = MPI_COMM_WORLD;
    MPI_CHECK(MPI_Comm_set_errhandler(world->comm, MPI_ERRORS_RETURN));
    MPI_CHECK(MPI_Comm_rank(world->comm, &world->rank));
    MPI_CHECK(MPI_Comm_size(world->comm, &world->size));
    log_init(world->rank == 0);
    world_context(world, "");
    init_node(world);
    start_reach(START_SET_UP);
    if (launcher.size > 0 && world->size != launcher.size)
        return fail(ERR_CONFIG,
                    "%s started %d processes, but MPI counts %d: weft was built with another MPI "
                    "than this launcher's; use that MPI's own mpirun, or srun --mpi=pmix",
                    launcher.name, launcher.size, world->size);
    if (provided < MPI_THREAD_SERIALIZED)
        return fail(ERR_CONFIG, "this MPI was built without threads (MPI_THREAD_SERIALIZED), which "
                                "the sums need; use one built with them");
    return OK;
}

void world_fini(World *world)
{
    if (world->node != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_free(&world->node));
    if (world->comm != MPI_COMM_NULL) {
        leaks_check();
        mpi_check(MPI_Finalize(), "MPI_Finalize");
    }
    *world = ALONE;
    die_context("", NULL);
}

/* Makes the world of the ranks that pass the same color, in the order of their keys. */
static Status split(World *part, const World *world, int color, int key)
{
    *part = ALONE;
    if (world->comm == MPI_COMM_NULL) return OK;
    MPI_CHECK(MPI_Comm_split(world->comm, color, key, &part->comm));
    MPI_CHECK(MPI_Comm_size(part->comm, &part->size));
    /* MPI_Comm_free sets part->comm to MPI_COMM_NULL, its value in a world of one rank */
    if (part->size == 1) {
        MPI_CHECK(MPI_Comm_free(&part->comm));
        return OK;
    }
    MPI_CHECK(MPI_Comm_set_errhandler(part->comm, MPI_ERRORS_RETURN));
    MPI_CHECK(MPI_Comm_rank(part->comm, &part->rank));
    init_node(part);
    return OK;
}

Status world_split(World *part, const World *world, int color)
{
    return split(part, world, color, world->rank);
}

Status world_order(World *ordered, const World *world, int rank)
{
    return split(ordered, world, 0, rank);
}

void world_node(World *node, const World *world)
{
    *node = ALONE;
    if (world->comm == MPI_COMM_NULL || world->node_size == 1) return;
    MPI_CHECK(MPI_Comm_dup(world->node, &node->comm));
    node->rank = world->node_rank;
    node->size = world->node_size;
    init_node(node);
}

void world_part_fini(World *part)
{
    if (part->node != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_free(&part->node));
    if (part->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_free(&part->comm));
    *part = ALONE;
}

Status status_agree(const World *world, Status mine)
{
    if (world->comm == MPI_COMM_NULL) return mine;
    /* The largest vote is the vote of the rank with the worst status; if several ranks have this
     * status, of the lowest of them. */
    int64_t vote = ((int64_t)mine << 32) | (INT_MAX - world->rank), worst = 0;
    MPI_Request request;
    MPI_CHECK(MPI_Iallreduce(&vote, &worst, 1, MPI_INT64_T, MPI_MAX, world->comm, &request));
    mpi_await(&request);
    Status status = (Status)(worst >> 32);
    if (status == OK) return OK;
    int root = INT_MAX - (int)(worst & INT_MAX);
    char text[MESSAGE_BYTES] = "";
    if (world->rank == root) {
        int job_rank = 0;
        MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &job_rank));
        /* true: an earlier status_agree in a part of the world has already put the rank before the
         * message */
        bool named = strncmp(fail_message(), "rank ", 5) == 0;
        if (job_rank > 0 && !named)
            snprintf(text, sizeof text, "rank %d: %s", job_rank, fail_message());
        else
            snprintf(text, sizeof text, "%s", fail_message());
    }
    world_bcast(world, text, sizeof text, root);
    return fail(status, "%s", text);
}

void world_bcast(const World *world, void *data, size_t bytes, int root)
{
    MPI_Request request;
    if (world->comm == MPI_COMM_NULL) return;
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        MPI_CHECK(
            MPI_Ibcast((char *)data + done, (int)piece, MPI_BYTE, root, world->comm, &request));
        mpi_await(&request);
    }
}

void world_barrier(const World *world)
{
    MPI_Request request;
    if (world->comm == MPI_COMM_NULL) return;
    MPI_CHECK(MPI_Ibarrier(world->comm, &request));
    mpi_await(&request);
}

char *world_bcast_text(const World *world, char *mine)
{
    uint64_t bytes = mine ? strlen(mine) + 1 : 0;
    world_bcast(world, &bytes, sizeof bytes, 0);
    if (bytes == 0) return NULL;
    char *text = world->rank == 0 ? mine : mem_new((size_t)bytes);
    world_bcast(world, text, (size_t)bytes, 0);
    return text;
}

int world_min(const World *world, int mine)
{
    int least = mine;
    MPI_Request request;
    if (world->comm == MPI_COMM_NULL) return least;
    MPI_CHECK(MPI_Iallreduce(&mine, &least, 1, MPI_INT, MPI_MIN, world->comm, &request));
    mpi_await(&request);
    return least;
}

/* Sums `count` integers or doubles, of 8 bytes each, over all ranks in place. MPI chooses the order
 * of additions; world_allreduce and world_allreduce_disjoint pass only numbers for which the order
 * does not change the result. */
static void sum(const World *world, void *data, int64_t count, MPI_Datatype type)
{
    const int64_t most = (int64_t)(PIECE_BYTES / sizeof(int64_t));
    if (world->comm == MPI_COMM_NULL) return;
    for (int64_t done = 0; done < count; done += most) {
        int piece = (int)(count - done < most ? count - done : most);
        MPI_Request request;
        MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, (int64_t *)data + done, piece, type, MPI_SUM,
                                 world->comm, &request));
        mpi_await(&request);
    }
}

void world_allreduce(const World *world, int64_t *data, int64_t count)
{
    sum(world, data, count, MPI_INT64_T);
}

void world_allreduce_disjoint(const World *world, double *data, int64_t count)
{
    sum(world, data, count, MPI_DOUBLE);
}

void world_allgather(const World *world, const void *mine, size_t bytes, void *out)
{
    if (world->comm != MPI_COMM_NULL && bytes <= PIECE_BYTES) {
        MPI_Request request;
        MPI_CHECK(MPI_Iallgather(mine, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, world->comm,
                                 &request));
        mpi_await(&request);
        return;
    }
    memmove((char *)out + (size_t)world->rank * bytes, mine, bytes);
    for (int r = 0; r < world->size; ++r)
        world_bcast(world, (char *)out + (size_t)r * bytes, bytes, r);
}
