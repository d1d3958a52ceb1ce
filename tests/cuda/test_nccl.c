/* Tests the functions of NCCL that weft uses, without a trainer, on a machine with one GPU. First
 * one rank sends to itself. Then two processes share the GPU as two hosts (NCCL_HOSTID); one of
 * them waits for a message that is never sent, and aborts. Without a GPU the program says so and
 * passes.
 *
 * The second process is forked before CUDA is used, and waits until it receives a communicator's
 * id. It exits with 0 if all its checks pass. */
#include "base.h"
#include "harness.h"
#include "parallel/nccl/nccl.h"
#include "tensor.h"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLOATS = 1 << 20, PEER = 1, PEER_LIMIT_S = 100 };
static const double LIMIT_S = 40, PATIENCE_S = 0.5;

/* A communicator with a stream and memory on the GPU. */
typedef struct Line {
    ncclComm_t comm;
    cudaStream_t stream;
    /* owned, [FLOATS] each, on the GPU */
    float *from, *to;
} Line;

static pid_t peer;
/* pipes to the second process and from it */
static int to_peer[2], from_peer[2];

static void nap(void)
{
    usleep(1000);
}

/* Waits at most LIMIT_S until comm is no longer in progress. Returns its result. */
static ncclResult_t settled(ncclComm_t comm, ncclResult_t result)
{
    for (double start = clock_s(); result == ncclInProgress && clock_s() - start < LIMIT_S; nap()) {
        ncclResult_t polled = nccl.comm_async_error(comm, &result);
        if (polled != ncclSuccess) return polled;
    }
    return result;
}

/* Returns true if NCCL's thread has set *comm. */
static bool is_made(ncclComm_t *comm)
{
    return __atomic_load_n(comm, __ATOMIC_ACQUIRE) != NULL;
}

static bool good(ncclComm_t comm, ncclResult_t result, const char *call)
{
    result = settled(comm, result);
    if (result == ncclSuccess) return true;
    printf("  %s: %s: %s\n", call, nccl.error_string(result), nccl.last_error(comm));
    return false;
}

/* ---- a communicator, its stream and memory ---- */

/* Makes the stream and the memory of a line, but not the communicator. */
static bool line_begin(Line *line)
{
    *line = (Line){0};
    return cudaStreamCreateWithFlags(&line->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cudaMalloc((void **)&line->from, FLOATS * sizeof(float)) == cudaSuccess &&
           cudaMalloc((void **)&line->to, FLOATS * sizeof(float)) == cudaSuccess;
}

static bool line_open(Line *line, ncclUniqueId id, int ranks, int rank)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (!line_begin(line)) return false;
    ncclResult_t result = nccl.comm_init(&line->comm, ranks, id, rank, &config);
    return good(line->comm, result, "ncclCommInitRankConfig");
}

/* Aborts the communicator; NCCL may finish that in a separate thread. */
static bool aborted(Line *line)
{
    ncclResult_t result = nccl.comm_abort(line->comm);
    line->comm = NULL;
    return result == ncclSuccess || result == ncclInProgress;
}

/* aborts: the communicator is aborted; finalizing it would wait for other ranks */
static bool line_close(Line *line, bool aborts)
{
    bool closed = true;
    if (line->comm && aborts) closed = aborted(line);
    if (line->comm && !aborts)
        closed = good(line->comm, nccl.comm_finalize(line->comm), "ncclCommFinalize") &&
                 nccl.comm_destroy(line->comm) == ncclSuccess;
    closed = cudaStreamDestroy(line->stream) == cudaSuccess && closed;
    closed = cudaFree(line->from) == cudaSuccess && closed;
    return cudaFree(line->to) == cudaSuccess && closed;
}

/* Sets `from` to first, first + 1, ... and all of `to` to -1. */
static bool line_fill(Line *line, float first)
{
    float *host = mem_new(FLOATS * sizeof *host);
    for (int i = 0; i < FLOATS; ++i) host[i] = first + (float)i;
    bool filled = cudaMemcpyAsync(line->from, host, FLOATS * sizeof *host, cudaMemcpyHostToDevice,
                                  line->stream) == cudaSuccess &&
                  cudaStreamSynchronize(line->stream) == cudaSuccess;
    for (int i = 0; i < FLOATS; ++i) host[i] = -1;
    filled = filled &&
             cudaMemcpyAsync(line->to, host, FLOATS * sizeof *host, cudaMemcpyHostToDevice,
                             line->stream) == cudaSuccess &&
             cudaStreamSynchronize(line->stream) == cudaSuccess;
    mem_free(&host);
    return filled;
}

/* Returns true if to[i] = first + times * i for i < count, and the rest of `to` is unchanged. */
static bool line_holds(Line *line, float first, float times, int count)
{
    float *host = mem_new(FLOATS * sizeof *host);
    bool same = cudaMemcpyAsync(host, line->to, FLOATS * sizeof *host, cudaMemcpyDeviceToHost,
                                line->stream) == cudaSuccess &&
                cudaStreamSynchronize(line->stream) == cudaSuccess;
    for (int i = 0; same && i < FLOATS; ++i)
        same = host[i] == (i < count ? first + times * (float)i : -1);
    mem_free(&host);
    return same;
}

static ncclResult_t send_to(Line *line, int to, int floats)
{
    return nccl.send(line->from, (size_t)floats * 4, ncclUint8, to, line->comm, line->stream);
}

static ncclResult_t receive_from(Line *line, int from, int floats)
{
    return nccl.recv(line->to, (size_t)floats * 4, ncclUint8, from, line->comm, line->stream);
}

/* Sends `floats` floats to rank `to` and receives as many from rank `from`, as one group. */
static bool swap(Line *line, int to, int from, int floats)
{
    ncclResult_t sent, received;
    if (nccl.group_start() != ncclSuccess) return false;
    sent = send_to(line, to, floats);
    received = receive_from(line, from, floats);
    bool noted = (sent == ncclSuccess || sent == ncclInProgress) &&
                 (received == ncclSuccess || received == ncclInProgress);
    return good(line->comm, nccl.group_end(), "ncclGroupEnd") && noted;
}

static bool add(Line *line)
{
    return good(
        line->comm,
        nccl.all_reduce(line->from, line->to, FLOATS, ncclFloat, ncclSum, line->comm, line->stream),
        "ncclAllReduce");
}

static bool open_alone(Line *line)
{
    ncclUniqueId id;
    return nccl.get_unique_id(&id) == ncclSuccess && line_open(line, id, 1, 0);
}

/* ---- one rank ---- */

static void test_itself(void)
{
    Line line;
    const int floats[] = {1, 1000, FLOATS};
    CU_ASSERT_FATAL(open_alone(&line));
    for (int i = 0; i < 3; ++i) {
        CU_ASSERT_TRUE(line_fill(&line, 7) && swap(&line, 0, 0, floats[i]));
        CU_ASSERT_TRUE(line_holds(&line, 7, 1, floats[i]));
    }
    CU_ASSERT_TRUE(line_fill(&line, 3) && add(&line) && line_holds(&line, 3, 1, FLOATS));
    ncclResult_t state = ncclInternalError;
    CU_ASSERT_EQUAL(nccl.comm_async_error(line.comm, &state), ncclSuccess);
    CU_ASSERT_EQUAL(state, ncclSuccess);
    CU_ASSERT_TRUE(line_close(&line, false));
}

static void test_split(void)
{
    Line line, part;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t none = NULL;
    config.blocking = 0;
    CU_ASSERT_FATAL(open_alone(&line) && line_begin(&part));
    CU_ASSERT_TRUE(good(line.comm, nccl.comm_split(line.comm, 0, 0, &part.comm, &config), "split"));
    /* NCCL 2.28.9 reports that the parent is done before its thread sets the child. */
    for (double start = clock_s(); !is_made(&part.comm) && clock_s() - start < LIMIT_S;) nap();
    CU_ASSERT_PTR_NOT_NULL_FATAL(part.comm);
    CU_ASSERT_TRUE(good(part.comm, ncclInProgress, "split"));
    CU_ASSERT_TRUE(line_fill(&part, 5) && swap(&part, 0, 0, 100) && line_holds(&part, 5, 1, 100));
    CU_ASSERT_TRUE(good(line.comm,
                        nccl.comm_split(line.comm, NCCL_SPLIT_NOCOLOR, 0, &none, &config),
                        "split without a color"));
    CU_ASSERT_PTR_NULL(none);
    CU_ASSERT_TRUE(line_close(&part, false));
    CU_ASSERT_TRUE(line_close(&line, false));
}

/* If work of two communicators is queued in turns, the work of both completes. */
static void test_two(void)
{
    Line line[2];
    CU_ASSERT_FATAL(open_alone(&line[0]) && open_alone(&line[1]));
    CU_ASSERT_TRUE(line_fill(&line[0], 1) && line_fill(&line[1], 2));
    for (int i = 0; i < 20; ++i)
        CU_ASSERT_TRUE(i % 2 ? swap(&line[i / 2 % 2], 0, 0, FLOATS) : add(&line[i / 2 % 2]));
    for (int i = 0; i < 2; ++i) CU_ASSERT_TRUE(line_holds(&line[i], 1 + (float)i, 1, FLOATS));
    for (int i = 0; i < 2; ++i) CU_ASSERT_TRUE(line_close(&line[i], false));
}

static void test_refusal(void)
{
    Line line;
    CU_ASSERT_FATAL(open_alone(&line));
    CU_ASSERT_EQUAL(settled(line.comm, send_to(&line, 5, 1)), ncclInvalidArgument);
    CU_ASSERT_TRUE(strlen(nccl.last_error(line.comm)) > 0);
    CU_ASSERT_TRUE(line_close(&line, true));
    CU_ASSERT_FATAL(open_alone(&line));
    CU_ASSERT_TRUE(line_fill(&line, 9) && swap(&line, 0, 0, 10) && line_holds(&line, 9, 1, 10));
    CU_ASSERT_TRUE(line_close(&line, false));
}

/* ---- two processes ---- */

/* Makes this process look like a separate host (NCCL_HOSTID), since NCCL refuses two ranks of one
 * host on one GPU. */
static void pose_as_host(int rank)
{
    char name[32];
    snprintf(name, sizeof name, "test-nccl-%d", rank);
    setenv("NCCL_HOSTID", name, 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

/* The first exchange of the two processes: messages of two lengths, then an all-reduce. */
static bool meet(Line *line, int rank)
{
    int other = 1 - rank;
    const int floats[] = {1000, FLOATS};
    for (int i = 0; i < 2; ++i)
        if (!line_fill(line, (float)rank) || !swap(line, other, other, floats[i]) ||
            !line_holds(line, (float)other, 1, floats[i]))
            return false;
    return line_fill(line, (float)rank) && add(line) && line_holds(line, 1, 2, FLOATS);
}

/* Runs the second process. It never sends the message that the first process waits for, and ends
 * when it receives a byte from the first process. */
static int peer_run(void)
{
    ncclUniqueId id;
    Line line;
    char word;
    close(to_peer[1]);
    alarm(PEER_LIMIT_S);
    pose_as_host(PEER);
    if (read(to_peer[0], &id, sizeof id) != sizeof id) return 0;
    if (nccl_load() != OK || !line_open(&line, id, 2, PEER)) return 1;
    if (!meet(&line, PEER)) return 2;
    if (write(from_peer[1], "m", 1) != 1 || read(to_peer[0], &word, 1) != 1) return 3;
    return line_close(&line, true) ? 0 : 4;
}

/* Returns true if the receive completes within PATIENCE_S. If not, the communicator or the stream
 * is still in progress. */
static bool receive_is_over(Line *line)
{
    cudaEvent_t event = NULL;
    ncclResult_t state = ncclInProgress;
    bool over = false;
    for (double start = clock_s(); !over && clock_s() - start < PATIENCE_S; nap()) {
        nccl.comm_async_error(line->comm, &state);
        if (state == ncclInProgress) continue;
        if (!event && (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess ||
                       cudaEventRecord(event, line->stream) != cudaSuccess))
            return true;
        over = cudaEventQuery(event) != cudaErrorNotReady;
    }
    return over;
}

static void test_pair(void)
{
    ncclUniqueId id;
    Line line;
    char word;
    int status = -1;
    CU_ASSERT_EQUAL_FATAL(nccl.get_unique_id(&id), ncclSuccess);
    CU_ASSERT_EQUAL_FATAL(write(to_peer[1], &id, sizeof id), sizeof id);
    CU_ASSERT_TRUE_FATAL(line_open(&line, id, 2, 0));
    CU_ASSERT_TRUE(meet(&line, 0));
    CU_ASSERT_EQUAL_FATAL(read(from_peer[0], &word, 1), 1);
    CU_ASSERT_TRUE(line_fill(&line, 0));
    ncclResult_t result = receive_from(&line, PEER, 1000);
    CU_ASSERT_TRUE(result == ncclSuccess || result == ncclInProgress);
    CU_ASSERT_FALSE(receive_is_over(&line));
    double start = clock_s();
    CU_ASSERT_TRUE(aborted(&line));
    CU_ASSERT_EQUAL(cudaStreamSynchronize(line.stream), cudaSuccess);
    printf("  a receive was aborted in %.3f s\n", clock_s() - start);
    CU_ASSERT_TRUE(clock_s() - start < 10);
    CU_ASSERT_TRUE(line_holds(&line, 0, 0, 0));
    CU_ASSERT_TRUE(line_close(&line, false));
    CU_ASSERT_EQUAL(write(to_peer[1], "e", 1), 1);
    CU_ASSERT_EQUAL(waitpid(peer, &status, 0), peer);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    peer = 0;
    CU_ASSERT_FATAL(open_alone(&line));
    CU_ASSERT_TRUE(line_fill(&line, 4) && swap(&line, 0, 0, 10) && line_holds(&line, 4, 1, 10));
    CU_ASSERT_TRUE(line_close(&line, false));
}

/* ---- all tests ---- */

/* Closes the pipe to the second process. If that process is still waiting for a communicator's id,
 * it then exits. */
static void peer_release(void)
{
    close(to_peer[1]);
    if (peer > 0) waitpid(peer, NULL, 0);
}

static int run_tests(void)
{
    static const HarnessTest tests[] = {
        {"one rank and itself", test_itself},
        {"a part of a communicator", test_split},
        {"two communicators", test_two},
        {"a refusal, and a new start", test_refusal},
        {"two processes, and a receive that is aborted", test_pair}};
    const char *why = NULL;
    int running = 0;
    if (cuda_device_count(&why) == 0) {
        printf("  skipped: no GPU (%s)\nnccl: 0 passed, 0 failed\n", why);
        return 0;
    }
    if (nccl_load() != OK) {
        printf("%s\n", fail_message());
        return 1;
    }
    if (nccl.get_version(&running) == ncclSuccess) printf("NCCL %d\n", running);
    return harness_run("nccl", tests, sizeof tests / sizeof *tests, 0, NULL);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (pipe(to_peer) != 0 || pipe(from_peer) != 0 || (peer = fork()) < 0) {
        perror("a second process");
        return 1;
    }
    if (peer == 0) _exit(peer_run());
    close(to_peer[0]);
    close(from_peer[1]);
    pose_as_host(0);
    int rc = run_tests();
    peer_release();
    return rc;
}
